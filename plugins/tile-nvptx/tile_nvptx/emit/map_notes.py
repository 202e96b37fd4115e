"""Recipes of tensor maps on their way to the cubin: an attribute in MLIR, comments in LLVM IR and
PTX. Text that is saved and read in again keeps them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_cute.map_recipe import MARK, MapRecipe, recipes_in

from tile_core.diagnostics import CompileError

if TYPE_CHECKING:
    from tile_core.mlir import ir

#: Attribute of a kernel: an array of strings, a recipe (JSON) each.
ATTRIBUTE = "nv_tileas.tensor_maps"
_COMMENT = {"llvm": "; ", "ptx": "// "}


def notes(module: ir.Operation) -> str:
    """The comments of LLVM IR that say the recipes of the kernels of `module`."""
    from tile_core.mlir import ir  # PTX is made without it

    found: list[str] = []
    for op in module.regions[0].blocks[0].operations:
        if ATTRIBUTE in op.attributes:
            texts = [ir.StringAttr(text).value for text in ir.ArrayAttr(op.attributes[ATTRIBUTE])]
            found += [_COMMENT["llvm"] + MARK + text + "\n" for text in texts]
    return "".join(found)


def recipes_of(text: str, kind: str) -> dict[str, list[MapRecipe]]:
    """Kernel -> its recipes, from the comments of `text`, which is "llvm" or "ptx".

    Raises:
        CompileError: a comment that cannot be read.
    """
    try:
        return recipes_in(text, _COMMENT[kind])
    except ValueError as error:
        raise CompileError(f"{kind} text, {error}") from error


def written(recipes: dict[str, list[MapRecipe]]) -> str:
    """The comments of PTX that say `recipes`."""
    start = _COMMENT["ptx"] + MARK
    return "".join(f"{start}{r.to_json()}\n" for listed in recipes.values() for r in listed)
