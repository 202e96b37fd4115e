"""Random valid programs of CUDA Tile IR.

`generate(seed)` builds a program on the operation tables, so that it is valid by construction and
does nothing that the language leaves undefined (`guards` lists what that is). Facts that hold on
the data of the program's launches are then claimed by flags and assumptions (`facts`).
"""

from __future__ import annotations

from tile_fuzz.generator.maker import Settings
from tile_fuzz.generator.program import generate

__all__ = ["Settings", "generate"]
