"""The PTX that nvcc made of the CUDA sources in `cuda/`."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tile_sim import Module

HERE = Path(__file__).parent / "cuda"


@cache
def load(name: str) -> Module:
    return Module((HERE / f"{name}.ptx").read_text())
