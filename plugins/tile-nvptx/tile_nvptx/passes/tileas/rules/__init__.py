"""Rules of `convert-tileas-to-llvm`, a file per family; importing this registers what most programs
need. The others are loaded when they are (`ruleset.FAMILIES`)."""

from tile_nvptx.passes.tileas.rules import elementwise, program, shape, tiled
from tile_nvptx.passes.tileas.ruleset import rules

__all__ = ["elementwise", "program", "rules", "shape", "tiled"]
