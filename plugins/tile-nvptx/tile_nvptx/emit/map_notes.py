"""Recipes of tensor maps on their way to the cubin: an attribute in MLIR, comments in LLVM IR and
PTX. Text that is saved and read in again keeps them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tile_cute.map_recipe import MapRecipe

from tile_core.diagnostics import CompileError

if TYPE_CHECKING:
    from tile_core.mlir import ir

#: Attribute of a kernel: an array of strings, a recipe (JSON) each.
ATTRIBUTE = "nv_tileas.tensor_maps"
_MARK = "tensor-map "
_COMMENT = {"llvm": "; ", "ptx": "// "}


def notes(module: ir.Operation) -> str:
    """The comments of LLVM IR that say the recipes of the kernels of `module`."""
    from tile_core.mlir import ir  # PTX is made without it

    found: list[str] = []
    for op in module.regions[0].blocks[0].operations:
        if ATTRIBUTE in op.attributes:
            texts = [ir.StringAttr(text).value for text in ir.ArrayAttr(op.attributes[ATTRIBUTE])]
            found += [_COMMENT["llvm"] + _MARK + text + "\n" for text in texts]
    return "".join(found)


def recipes_of(text: str, kind: str) -> dict[str, list[MapRecipe]]:
    """Kernel -> its recipes, from the comments of `text`, which is "llvm" or "ptx".

    Raises:
        CompileError: a comment that cannot be read.
    """
    found: dict[str, list[MapRecipe]] = {}
    start = _COMMENT[kind] + _MARK
    if start not in text:
        return found
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(start):
            try:
                recipe = MapRecipe.from_json(line.removeprefix(start))
            except ValueError as error:
                raise CompileError(f"line {number} of the {kind} text: {error}") from error
            found.setdefault(recipe.kernel, []).append(recipe)
    return found


def written(recipes: dict[str, list[MapRecipe]]) -> str:
    """The comments of PTX that say `recipes`."""
    start = _COMMENT["ptx"] + _MARK
    return "".join(f"{start}{r.to_json()}\n" for listed in recipes.values() for r in listed)
