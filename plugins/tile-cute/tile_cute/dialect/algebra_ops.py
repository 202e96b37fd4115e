"""cute: static values, layout construction, algebra, tiling, queries, tuple arithmetic.

All are pure; their result types follow from the operands (`tile_cute.infer`), and the verifier
compares. `static` makes a value of any static type.
"""

from tile_core.mlir import ir
from tile_cute.dialect.base import Cute, attributes_of, operand_of
from tile_cute.dialect.define import define
from tile_cute.errors import LayoutError
from tile_cute.infer import RULES, size
from tile_cute.int_tuple import Extent
from tile_cute.values import Operand, Value


def inferred(op: ir.OpView | ir.Operation) -> Operand:
    """The result that the operands and attributes of a pure operation determine."""
    attributes = attributes_of(op)
    operands = [operand_of(operand.type) for operand in op.operation.operands]
    return RULES[attributes["op"]](operands, attributes)


def _check_inferred(op: ir.OpView) -> None:
    expected = inferred(op)
    declared = operand_of(op.operation.results[0].type)
    if expected != declared:
        name = op.operation.name.split(".", 1)[1]
        reason = "failed to perform a valid division of" if "divide" in name else "expects result"
        raise LayoutError(f"{reason} {expected}, but the declared result is {declared}")


def _check_static(op: ir.OpView) -> None:
    value = operand_of(op.operation.results[0].type)
    if not isinstance(value, Value) or value.dynamic:
        raise LayoutError(f"expects a static result type, but got {op.operation.results[0].type}")


def queried(op: ir.OpView | ir.Operation) -> Extent:
    """The constant of a `size` or `cosize`, or that it is known at run time only."""
    attributes = attributes_of(op)
    source = operand_of(op.operation.operands[0].type)
    return size(source, attributes.get("mode", []), attributes["op"] == "cosize")


def _check_query(op: ir.OpView) -> None:
    queried(op)
    if not isinstance(op.operation.results[0].type, ir.IntegerType | ir.IndexType):
        raise LayoutError(f"expects an integer result, but got {op.operation.results[0].type}")


# name: (operands, what it does)
INFERRED = {
    "make_layout": (("shape", "stride?"), "shape:stride; compact column-major by default"),
    "make_ordered_layout": (("shape", "order"), "compact, strides in the order of the keys"),
    "make_identity_layout": (("shape",), "coordinates lead to themselves"),
    "make_identity_tensor": (("shape",), "a tensor whose elements are their coordinates"),
    "make_composed_layout": (("inner", "offset", "outer"), "swizzle(offset + layout(c))"),
    "make_layout_raw": (("shape", "stride"), "shape:stride of two tuples"),
    "make_composed_layout_raw": (("outer", "inner", "offset"), "swizzle(offset + layout(c))"),
    "coalesce": (("source", "profile?"), "fewer modes, the same function"),
    "filter_zeros": (("source", "target_profile?"), "extent 1 where the stride is 0"),
    "filter": (("source",), "filter_zeros and coalesce"),
    "composition": (("outer", "inner"), "R(c) = outer(inner(c))"),
    "complement": (("source",), "what the layout misses below `cotarget`"),
    "right_inverse": (("source",), "source(R(i)) = i"),
    "left_inverse": (("source",), "L(source(c)) = c"),
    "recast_layout": (("source",), "from elements of `old_bits` to `new_bits`"),
    "group_modes": (("source",), "modes `begin` .. `end`-1 as one"),
    "select": (("source",), "the modes `modes`"),
    "logical_divide": (("source", "tiler"), "(tile, rest), by mode"),
    "zipped_divide": (("source", "tiler"), "((tiles), (rests))"),
    "tiled_divide": (("source", "tiler"), "((tiles), rest, ...)"),
    "flat_divide": (("source", "tiler"), "(tile, ..., rest, ...)"),
    "logical_product": (("block", "tiler"), "(block, repetition)"),
    "zipped_product": (("block", "tiler"), "((blocks), (repetitions))"),
    "tiled_product": (("block", "tiler"), "((blocks), repetition, ...)"),
    "flat_product": (("block", "tiler"), "(block, ..., repetition, ...)"),
    "blocked_product": (("block", "tiler"), "by mode (block, repetition)"),
    "raked_product": (("block", "tiler"), "by mode (repetition, block)"),
    "tile_to_shape": (("block", "shape", "order?"), "repeat a block until it fills a shape"),
    "stencil_divide": (
        ("source",),
        "sliding windows: `window`, `dilation`, `stride`; by mode where "
        "those are arrays, with `lower_padding` and `upper_padding`",
    ),
    "get_layout": (("view",), "the layout of a view"),
    "get_shape": (("source",), "the shape of a layout or view"),
    "get_stride": (("source",), "the stride of a layout"),
    "slice": (("source", "coord"), "the modes at which the coordinate is free"),
    "dice": (("source", "coord"), "the modes at which the coordinate is given"),
    "crd2idx": (("coord", "layout"), "the index of a coordinate"),
    "tuple_add": (("lhs", "rhs"), "leaf by leaf"),
    "tuple_sub": (("lhs", "rhs"), "leaf by leaf"),
    "tuple_mul": (("lhs", "rhs"), "leaf by leaf"),
    "tuple_div": (("lhs", "rhs"), "leaf by leaf"),
    "tuple_mod": (("lhs", "rhs"), "leaf by leaf"),
    "shape_div": (("lhs", "rhs"), "leaf by leaf, `mode` exact, ceil or floor"),
    "ceil_div": (("lhs", "rhs"), "leaf by leaf, rounded up"),
    "to_int_tuple": (("source",), "a shape, stride or coordinate as int tuple"),
    "make_fragment_like": (("source",), "a compact register tensor for a view's part"),
    "local_tile": (("view", "tiler", "coord"), "one tile of a view"),
    "partition": (("view", "tiler", "coord"), "what a view has at one coordinate of each tile"),
    "local_partition": (
        ("source", "tiler", "index", "target_profile?"),
        "what one thread owns; of the tiler's modes at which the profile has a number",
    ),
}

_NOT_PURE = ("make_fragment_like",)

OPERATIONS = {
    name: define(
        Cute,
        name,
        operands,
        ("result",),
        doc=doc,
        check=_check_inferred,
        pure=name not in _NOT_PURE,
    )
    for name, (operands, doc) in INFERRED.items()
}

StaticOp = define(
    Cute, "static", (), ("result",), doc="the value its type names", check=_check_static, pure=True
)

QUERIES = {
    name: define(Cute, name, ("source",), ("result",), doc=doc, check=_check_query, pure=True)
    for name, doc in (
        ("size", "number of coordinates of the (sub-)mode `mode`"),
        ("cosize", "one more than the largest index of the (sub-)mode `mode`"),
    )
}
