"""The sample programs of `data/`."""

from __future__ import annotations

from pathlib import Path

DATA = Path(__file__).parent / "data"
PATHS = sorted(DATA.glob("*.tileirbc"))
NAMES = [path.name.removesuffix(".tileirbc") for path in PATHS]


def sample(name: str) -> bytes:
    """The bytes of a sample, e.g. `matmul.13.3`."""
    return (DATA / f"{name}.tileirbc").read_bytes()
