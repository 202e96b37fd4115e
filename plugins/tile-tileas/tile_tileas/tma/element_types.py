"""Element types of views in tensor maps."""

from __future__ import annotations

from tile_tileaa.dialect.types import bits_of

from tile_core.mlir import ir
from tile_tileas.analysis.host_values import NotOnHost

#: Element type of a view -> element type of its map, where the names differ. Integers are
#: unsigned in maps of copies; floats of 8 bits are bytes; tf32 in memory is copied as it is, which
#: maps of tf32 would round.
_MAP_TYPES = {
    "i8": "u8", "i16": "u16", "i32": "u32", "i64": "u64", "f4E2M1FN": "b4x16", "tf32": "f32",
}  # fmt: skip
_SAME = ("f16", "bf16", "f32", "f64")


def map_type(element: ir.Type) -> str:
    """The element type of the map of a view of `element`.

    Raises:
        NotOnHost: tensor maps have none.
    """
    name = str(element)
    if name in _SAME:
        return name
    if name not in _MAP_TYPES and bits_of(element) == 8:
        return "u8"
    if name not in _MAP_TYPES:
        raise NotOnHost(f"tensor maps have no elements of {name}")
    return _MAP_TYPES[name]
