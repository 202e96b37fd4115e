"""Element types of views in tensor maps."""

from __future__ import annotations

from tile_tileaa.dialect.types import bits_of

from tile_core.mlir import ir
from tile_tileas.analysis.host_values import NotOnHost

#: Element type of a view -> element type of its map, where the names differ. Integers are
#: unsigned in maps of copies; floats of 8 bits are bytes; tf32 in memory is copied as it is.
_MAP_TYPES = {
    "i8": "u8", "i16": "u16", "i32": "u32", "i64": "u64", "f4E2M1FN": "b4x16", "tf32": "f32",
}  # fmt: skip
_SAME = ("f16", "bf16", "f32", "f64")


#: The element type of maps that round f32 to the nearest tf32, even ones of two (as NVIDIA's
#: compiler has it for the same conversion; measured by triton-lang/triton, pull request 11751).
_ROUNDS, _NEAREST = "tf32", "nearest_even"


def is_rounding(op: ir.OpView | ir.Operation) -> bool:
    """Whether `op` makes of a tile what a tensor map that rounds would have made of it in passing:
    f32 to the nearest tf32.
    """
    if op.operation.name != "nv_tileaa.fp_to_fp":
        return False
    if "rounding_mode" in op.attributes:
        mode = ir.StringAttr(op.attributes["rounding_mode"]).value
        if mode != _NEAREST:
            return False
    types = (value.type for value in (op.operands[0], op.results[0]))
    before, after = (getattr(type_, "element_type", type_) for type_ in types)
    return isinstance(before, ir.F32Type) and isinstance(after, ir.FloatTF32Type)


def map_type(element: ir.Type, box: ir.Type | None = None) -> str:
    """The element type of the map of a view of `element`, whose boxes have elements of `box`.

    Raises:
        NotOnHost: tensor maps have none.
    """
    name = str(element)
    if box is not None and box != element:
        assert (name, str(box)) == ("f32", "tf32"), "verified"
        return _ROUNDS
    if name in _SAME:
        return name
    if name not in _MAP_TYPES and bits_of(element) == 8:
        return "u8"
    if name not in _MAP_TYPES:
        raise NotOnHost(f"tensor maps have no elements of {name}")
    return _MAP_TYPES[name]
