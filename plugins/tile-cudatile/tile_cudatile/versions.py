"""The bytecode versions of CUDA Tile IR, as `(major, minor)` pairs that compare in order."""

from __future__ import annotations

from typing import TypeAlias

Version: TypeAlias = tuple[int, int]

V13_1: Version = (13, 1)
V13_2: Version = (13, 2)
V13_3: Version = (13, 3)
V13_4: Version = (13, 4)
V13_5: Version = (13, 5)

SUPPORTED: tuple[Version, ...] = (V13_1, V13_2, V13_3, V13_4, V13_5)
OLDEST, NEWEST = SUPPORTED[0], SUPPORTED[-1]


def version_text(version: Version) -> str:
    """`(13, 3)` -> `"13.3"`."""
    return f"{version[0]}.{version[1]}"


def parse_version(text: str) -> Version:
    """`"13.3"` -> `(13, 3)`; raises `ValueError` for anything but a supported version."""
    for version in SUPPORTED:
        if version_text(version) == text:
            return version
    known = ", ".join(version_text(v) for v in SUPPORTED)
    raise ValueError(f"unknown Tile IR version '{text}', expected one of {known}")
