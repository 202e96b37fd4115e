"""Hidden parameters from the recipes that stand in PTX: what host code does, without running it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tile_cute.map_recipe import Argument, MapRecipe, recipes_in
from tile_cute.tensor_map import SIZE

from tile_sim.errors import SimError
from tile_sim.program.layout import parameter_offsets
from tile_sim.program.program import Program


class RecipeFilled:
    """Fills the hidden parameters of kernels with the tensor maps of their recipes."""

    def __init__(
        self, recipes: Mapping[str, Sequence[MapRecipe]], programs: Mapping[str, Program]
    ) -> None:
        self._recipes = recipes
        self._programs = programs

    def fill(
        self, entry: str, visible: bytes, hidden: Sequence[tuple[int, int]], workspace: int = 0
    ) -> list[bytes]:
        """The maps in order of the parameters, which are those of the recipes.

        Raises SimError (`host`) where recipes and hidden parameters differ.
        """
        params = self._programs[entry].entry.params
        offsets = parameter_offsets(params)[0]
        wanted = [at for at, param in enumerate(params) if param.linkage == "hidden"]
        made = {recipe.parameter: recipe for recipe in self._recipes.get(entry, ())}
        if sorted(made) != wanted or any(size != SIZE for size, _ in hidden):
            raise SimError("host", f"kernel {entry!r}: hidden parameters and recipes differ")

        def argument(of: Argument) -> int:
            at = offsets[of.index]
            return int.from_bytes(visible[at : at + max(of.bits, 8) // 8], "little")

        return [_bytes(made[at].words(argument)) for at in wanted]


def recipes_of(ptx: str, programs: Mapping[str, Program]) -> RecipeFilled | None:
    """What fills the hidden parameters of the kernels of `ptx`; None if it has no recipes.

    Raises SimError (`syntax`) for a recipe that cannot be read.
    """
    try:
        found = recipes_in(ptx, "// ")
    except ValueError as error:
        raise SimError("syntax", str(error)) from error
    return RecipeFilled(found, programs) if found else None


def _bytes(words: Sequence[int]) -> bytes:
    return b"".join(word.to_bytes(8, "little") for word in words).ljust(SIZE, b"\0")
