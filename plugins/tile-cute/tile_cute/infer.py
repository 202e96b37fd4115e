"""Result types of the pure operations of the cute dialect; the verifiers are these functions.

Each takes the operands and attributes of one operation and returns its result, or raises
LayoutError with the operation's diagnostic.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tile_cute import int_tuple as it
from tile_cute import layout_algebra as la
from tile_cute import tiling
from tile_cute.errors import LayoutError
from tile_cute.layout import Layout, identity_layout, ordered_layout
from tile_cute.swizzle import ComposedLayout
from tile_cute.values import LAYOUT_KINDS, TUPLE_KINDS, Operand, Other, Value, View, of_layout

Attributes = Mapping[str, Any]
Rule = Callable[[Sequence[Operand], Attributes], Operand]

RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register the inference rule of the operations called `names`."""

    def add(function: Rule) -> Rule:
        for name in names:
            RULES[name] = function
        return function

    return add


def _layout(operand: Operand, message: str) -> Layout | ComposedLayout:
    if isinstance(operand, Value) and operand.kind in LAYOUT_KINDS:
        return operand.value
    raise LayoutError(f"{message}, but got {operand}")


def _plain(operand: Operand, message: str) -> Layout:
    layout = _layout(operand, message)
    if not isinstance(layout, Layout):
        raise LayoutError(f"{message}, but got {operand}")
    return layout


def _tuple(operand: Operand, message: str, kinds: Sequence[str] = TUPLE_KINDS) -> it.IntTuple:
    if isinstance(operand, Value) and operand.kind in kinds:
        return operand.value
    raise LayoutError(f"{message}, but got {operand}")


def _ints(
    operand: Operand,
    message: str,
    kinds: Sequence[str] = TUPLE_KINDS,
    free: bool = False,
    known: bool = False,
) -> it.IntTuple:
    """An int tuple of integers; with `free`, `_` is allowed too, with `known` no `?`."""
    value, number = _tuple(operand, message, kinds), int if known else it.Extent
    if not all(isinstance(leaf, number) or (free and leaf is None) for leaf in it.flatten(value)):
        raise LayoutError(f"{message} of integers, but got {operand}")
    return value


def _on_outer(
    layout: Layout | ComposedLayout, function: Callable[[Layout], Layout]
) -> Layout | ComposedLayout:
    return layout.map_outer(function) if isinstance(layout, ComposedLayout) else function(layout)


def _rewrap(operand: Operand, function: Callable[[Layout], Layout], message: str) -> Operand:
    """Apply to a layout, or to the layout of a view."""
    if isinstance(operand, View):
        return View(operand.element, operand.space, _on_outer(operand.layout, function))
    return of_layout(_on_outer(_layout(operand, message), function))


# -- construction ----------------------------------------------------------------------------


@rule("make_layout", "make_layout_raw")
def make_layout(operands: Sequence[Operand], _: Attributes) -> Value:
    shape = _ints(operands[0], "expects a shape", ("shape", "int_tuple"))
    if len(operands) == 1:
        return Value("layout", Layout(shape))
    stride = _tuple(operands[1], "expects a stride", ("stride", "int_tuple"))
    if None in it.flatten(stride) or not it.congruent(shape, stride):
        raise LayoutError(
            f"expects stride weakly congruent with shape, but got {operands[0]} and {operands[1]}"
        )
    return Value("layout", Layout(shape, stride))


@rule("make_ordered_layout")
def make_ordered_layout(operands: Sequence[Operand], _: Attributes) -> Value:
    shape = _ints(operands[0], "expects a shape")
    order = _ints(operands[1], "expects an order", known=True)
    return Value("layout", ordered_layout(shape, order))


@rule("make_identity_layout")
def make_identity_layout(operands: Sequence[Operand], _: Attributes) -> Value:
    return Value("layout", identity_layout(_ints(operands[0], "expects a shape")))


@rule("make_identity_tensor")
def make_identity_tensor(operands: Sequence[Operand], _: Attributes) -> Value:
    return Value("coord_tensor", identity_layout(_ints(operands[0], "expects a shape")))


@rule("make_composed_layout", "make_composed_layout_raw")
def make_composed_layout(operands: Sequence[Operand], attributes: Attributes) -> Value:
    inner, offset, outer = operands
    if attributes["op"].endswith("_raw"):
        outer, inner, offset = operands
    if not (isinstance(inner, Value) and inner.kind == "swizzle"):
        raise LayoutError(f"expects a swizzle as inner layout, but got {inner}")
    base = _tuple(offset, "expects an int tuple as offset", ("int_tuple",))
    value = _plain(outer, "expects a layout as outer layout")
    if not isinstance(base, int):
        raise LayoutError(f"expects an integer offset, but got {offset}")
    return Value("composed_layout", ComposedLayout(inner.value, base, value))


# -- algebra ---------------------------------------------------------------------------------


@rule("coalesce")
def coalesce(operands: Sequence[Operand], _: Attributes) -> Operand:
    profile = _ints(operands[1], "expects a profile", known=True) if len(operands) > 1 else 0
    try:
        return _rewrap(operands[0], lambda l: la.coalesce(l, profile), "expects a layout")
    except LayoutError as error:
        raise LayoutError(f"unable to coalesce input of type {operands[0]}: {error}") from error


@rule("filter_zeros")
def filter_zeros(operands: Sequence[Operand], _: Attributes) -> Operand:
    if len(operands) > 1:
        profile = operands[1]
        if not (isinstance(profile, Value) and profile.kind == "shape"):
            raise LayoutError(f"expects a ShapeType for the target profile, but got {profile}")
        source = _layout(operands[0], "expects a layout")
        if not it.congruent(profile.value, source.shape):
            raise LayoutError(
                "Expects target_profile has the same profile with the src, but src_profile is: "
                f"{it.text(source.shape)} and target_profile is: {profile.text}"
            )
    try:
        return _rewrap(operands[0], la.filter_zeros, "expects a layout")
    except LayoutError as error:
        raise LayoutError(f"unable to filter zeros for input {operands[0]}: {error}") from error


@rule("filter")
def filtered(operands: Sequence[Operand], _: Attributes) -> Operand:
    return _rewrap(operands[0], la.filtered, "expects a layout")


@rule("composition")
def composition(operands: Sequence[Operand], _: Attributes) -> Operand:
    inner = operands[1]
    if not isinstance(inner, Value) or inner.kind not in ("layout", "tile"):
        raise LayoutError(f"expects a layout or a tile to compose with, but got {inner}")
    return _rewrap(operands[0], lambda l: la.composition(l, inner.value), "expects a layout")


@rule("complement")
def complement(operands: Sequence[Operand], attributes: Attributes) -> Value:
    layout = _plain(operands[0], "expects a layout")
    return Value("layout", la.complement(layout, attributes.get("cotarget")))


@rule("right_inverse", "left_inverse")
def inverse(operands: Sequence[Operand], attributes: Attributes) -> Value:
    layout = _plain(operands[0], "expects an input of type layout or composed layout")
    if not layout.is_static:
        raise LayoutError(f"expects an input with static shape, but got {operands[0]}")
    function = la.left_inverse if attributes["op"] == "left_inverse" else la.right_inverse
    try:
        return Value("layout", function(layout))
    except LayoutError as error:
        raise LayoutError(f"unable to compute a right inverse for input {operands[0]}") from error


@rule("recast_layout")
def recast_layout(operands: Sequence[Operand], attributes: Attributes) -> Value:
    layout = _layout(operands[0], "expects `src` is LayoutTypeInterface")
    old, new = attributes["old_bits"], attributes["new_bits"]
    if min(old, new) < 1:
        raise LayoutError(f"unable to recast layout {operands[0]}: {old} to {new} bits")
    try:
        if isinstance(layout, ComposedLayout):
            return of_layout(layout.recast(old, new))
        return of_layout(la.recast(layout, old, new))
    except LayoutError as error:
        raise LayoutError(f"unable to recast layout {operands[0]}: {error}") from error


@rule("group_modes")
def group_modes(operands: Sequence[Operand], attributes: Attributes) -> Operand:
    begin, end = attributes["begin"], attributes["end"]
    return _rewrap(
        operands[0], lambda l: la.group_modes(l, begin, end), "expects view or layout type"
    )


@rule("select")
def select(operands: Sequence[Operand], attributes: Attributes) -> Operand:
    return _rewrap(operands[0], lambda l: la.select(l, attributes["modes"]), "expects a layout")


# -- tiling ----------------------------------------------------------------------------------

_DIVIDES = {
    "logical_divide": tiling.logical_divide,
    "zipped_divide": tiling.zipped_divide,
    "tiled_divide": tiling.tiled_divide,
    "flat_divide": tiling.flat_divide,
}
_PRODUCTS = {
    "logical_product": tiling.logical_product,
    "zipped_product": tiling.zipped_product,
    "tiled_product": tiling.tiled_product,
    "flat_product": tiling.flat_product,
    "blocked_product": tiling.blocked_product,
    "raked_product": tiling.raked_product,
}


def _tiler(operand: Operand, message: str) -> Any:
    if isinstance(operand, Value) and operand.kind in ("tile", "layout"):
        return operand.value
    if isinstance(operand, Value) and operand.kind in ("shape", "int_tuple"):
        return _ints(operand, message, known=True)
    raise LayoutError(f"{message} {operand}")


@rule(*_DIVIDES)
def divide(operands: Sequence[Operand], attributes: Attributes) -> Operand:
    tiler = _tiler(operands[1], "invalid tiler type, got")
    source = operands[0]
    if isinstance(source, Other) or (isinstance(source, Value) and source.kind not in LAYOUT_KINDS):
        raise LayoutError(f"invalid input type, got {source}")
    return _rewrap(source, lambda l: _DIVIDES[attributes["op"]](l, tiler), "")


@rule(*_PRODUCTS)
def product(operands: Sequence[Operand], attributes: Attributes) -> Value:
    block = _plain(operands[0], "expects a layout as block")
    tiler = _plain(operands[1], "expects a layout as tiler")
    return Value("layout", _PRODUCTS[attributes["op"]](block, tiler))


@rule("tile_to_shape")
def tile_to_shape(operands: Sequence[Operand], _: Attributes) -> Operand:
    shape = operands[1]
    if not (isinstance(shape, Value) and shape.kind in ("shape", "int_tuple")):
        raise LayoutError(f"invalid input types for tile_to_shape, got {operands[0]} and {shape}")
    order = None
    if len(operands) > 2:
        order = _tuple(operands[2], "expects only static order modes")
        if not it.is_static(order):
            raise LayoutError(f"expects only static order modes, but got {operands[2]}")
    extents = _ints(shape, "invalid input types for tile_to_shape, got a shape", known=True)
    message = "invalid input types for tile_to_shape, got"
    return _rewrap(operands[0], lambda l: tiling.tile_to_shape(l, extents, order), message)


@rule("stencil_divide")
def stencil_divide(operands: Sequence[Operand], attributes: Attributes) -> Value:
    layout = _plain(operands[0], "expects a layout")
    if isinstance(attributes["window"], list):
        return Value("layout", tiling.stencil_divide_modes(layout, _stencil(layout, attributes)))
    parts = (attributes["window"], attributes.get("dilation", 1), attributes.get("stride", 1))
    return Value("layout", tiling.stencil_divide(layout, *parts))


def _stencil(layout: Layout, attributes: Attributes) -> list[tiling.Stencil]:
    """How a window goes over each mode, from attributes that have a number for each."""
    rank = len(layout)

    def numbers(name: str, default: int, message: str) -> list[int]:
        given = attributes.get(name, [default] * rank)
        if not isinstance(given, list) or len(given) != rank:
            raise LayoutError(f"{message}, but got {name} {given} for {layout}")
        return given

    parts = (
        numbers("window", 1, "Target and kernel shapes must be congruent."),
        numbers("dilation", 1, "expects a dilation for each mode"),
        numbers("stride", 1, "Traversal stride must be congruent with target shape"),
        numbers("lower_padding", 0, "Lower padding shape must be congruent with target shape"),
        numbers("upper_padding", 0, "Upper padding shape must be congruent with target shape"),
    )
    return [tiling.Stencil(*one) for one in zip(*parts, strict=True)]


@rule("partition")
def partition(operands: Sequence[Operand], _: Attributes) -> View:
    view, tiler, coord = operands
    tile = _tiler(tiler, "unexpected tiler type, got")
    if not isinstance(view, View):
        raise LayoutError(f"expected a view as an input but got {view}")
    if not (isinstance(coord, Value) and coord.kind in ("coord", "int_tuple")):
        raise LayoutError(f"unexpected coordinate type, got {coord}")
    _ints(coord, "failed to construct a valid coordinate from")
    cut = _on_outer(view.layout, lambda l: tiling.partition(l, tile, coord.value)[0])
    return View(view.element, view.space, cut)


@rule("local_tile")
def local_tile(operands: Sequence[Operand], _: Attributes) -> View:
    view, tiler, coord = operands
    tile = _tiler(tiler, "unexpected tiler type, got")
    if not (isinstance(coord, Value) and coord.kind in ("coord", "int_tuple")):
        raise LayoutError(f"unexpected coordinate type, got {coord}")
    if not isinstance(view, View):
        raise LayoutError(f"expected a view as an input but got {view}")
    rank = len(tile) if isinstance(tile, tuple) else 1
    if it.rank(coord.value) != rank:
        raise LayoutError(f"expected a coordinate of rank {rank} but got {coord}")
    _ints(coord, "failed to construct a valid coordinate from", free=True)
    cut = _on_outer(view.layout, lambda l: tiling.local_tile(l, tile, coord.value)[0])
    return View(view.element, view.space, cut)


@rule("local_partition")
def local_partition(operands: Sequence[Operand], _: Attributes) -> Operand:
    source, tiler = operands[:2]
    if not (isinstance(tiler, Value) and tiler.kind == "layout"):
        raise LayoutError(f"expects LayoutType tiler, but got {tiler}")
    if not tiler.value.is_static:
        raise LayoutError(f"expects LayoutType tiler with static shape, but got {tiler}")
    if isinstance(source, Other) or (isinstance(source, Value) and source.kind not in LAYOUT_KINDS):
        raise LayoutError(f"expects `input` to be a layout or a view, got {source}")
    threads = projected(tiler.value, operands[3]) if len(operands) > 3 else tiler.value
    # every thread has the same layout; only its offset differs
    first = threads(0)
    return _rewrap(source, lambda l: tiling.local_partition(l, threads, first)[0], "")


def projected(threads: Layout, profile: Operand) -> Layout:
    """The modes of a layout of threads at which the profile has a number; threads that differ in
    the others alone have the same part."""
    if not (isinstance(profile, Value) and profile.kind == "coord"):
        raise LayoutError(f"expects `target_profile` be CoordType, but got {profile}")
    if it.rank(profile.value) != len(threads) or all(v is None for v in it.modes(profile.value)):
        raise LayoutError(
            "unable to construct a coordinate for local_partition: "
            f"{profile} does not choose modes of {threads}"
        )
    return la.dice_layout(threads, profile.value)


# -- queries ---------------------------------------------------------------------------------


@rule("get_layout")
def get_layout(operands: Sequence[Operand], _: Attributes) -> Value:
    source = operands[0]
    if isinstance(source, View):
        return of_layout(source.layout)
    if isinstance(source, Value) and source.kind == "coord_tensor":
        return Value("layout", source.value)
    raise LayoutError(f"expects a view, but got {source}")


@rule("get_shape")
def get_shape(operands: Sequence[Operand], _: Attributes) -> Value:
    source = operands[0]
    layout = source.layout if isinstance(source, View) else _layout(source, "expects a layout")
    return Value("shape", layout.shape)


@rule("get_stride")
def get_stride(operands: Sequence[Operand], _: Attributes) -> Value:
    return Value("stride", _plain(operands[0], "expects a layout").stride)


@rule("slice")
def slice_(operands: Sequence[Operand], _: Attributes) -> Operand:
    coord = _ints(operands[1], "expects a coordinate", ("coord",), free=True)
    return _rewrap(operands[0], lambda l: la.slice_layout(l, coord)[0], "expects a layout")


@rule("dice")
def dice(operands: Sequence[Operand], _: Attributes) -> Operand:
    coord = _ints(operands[1], "expects a coordinate", ("coord",), free=True)
    return _rewrap(operands[0], lambda l: la.dice_layout(l, coord), "expects a layout")


@rule("crd2idx")
def crd2idx(operands: Sequence[Operand], _: Attributes) -> Value:
    coord = _ints(operands[0], "expects a coordinate", ("coord", "int_tuple"))
    layout = _layout(operands[1], "expects a layout")
    return Value("int_tuple", layout(coord))


def size(operand: Operand, mode: Sequence[int], of_cosize: bool) -> it.Extent:
    """What `size` and `cosize` fold to, if it is known now."""
    if isinstance(operand, View):
        value: Any = operand.layout
    elif isinstance(operand, Value) and operand.kind in (*LAYOUT_KINDS, *TUPLE_KINDS, "tile"):
        value = operand.value
    else:
        raise LayoutError(f"input type [{operand}] has invalid values.")
    name = "cosize" if of_cosize else "size"
    if isinstance(value, ComposedLayout):
        if mode and of_cosize:
            raise LayoutError(f"mode [{_modes(mode)}] is invalid for input type {operand}")
        value = value if of_cosize and not mode else value.outer
    for index in mode:
        if not isinstance(value, Layout | tuple) or not 0 <= index < len(value):
            raise LayoutError(f"mode [{_modes(mode)}] has invalid values for input type {operand}")
        value = value[index]
    if of_cosize and isinstance(value, Layout) and not value.is_static:
        return it.Dynamic()
    if of_cosize and isinstance(value, Layout | ComposedLayout):
        return value.cosize
    if of_cosize:
        raise LayoutError(f"unable to compute {name} for input {operand} and mode [{_modes(mode)}]")
    return value.extent if isinstance(value, Layout) else _tuple_size(value, operand, mode)


def _tuple_size(value: Any, operand: Operand, mode: Sequence[int]) -> it.Extent:
    leaves = it.flatten(value)
    if not all(isinstance(leaf, it.Extent) for leaf in leaves):
        raise LayoutError(f"unable to compute size for input {operand} and mode [{_modes(mode)}]")
    return it.extent(value)


def _modes(mode: Sequence[int]) -> str:
    return ",".join(map(str, mode))


# -- tuple arithmetic ------------------------------------------------------------------------


@rule("tuple_add", "tuple_sub", "tuple_mul", "tuple_div", "tuple_mod")
def tuple_arithmetic(operands: Sequence[Operand], attributes: Attributes) -> Value:
    left, right = operands
    if not (isinstance(left, Value) and isinstance(right, Value)) or (
        left.kind not in TUPLE_KINDS or left.kind != right.kind
    ):
        raise LayoutError(f"input type [{right}] has invalid values.")
    for operand in (left, right):
        if not all(isinstance(leaf, it.Extent) for leaf in it.flatten(operand.value)):
            raise LayoutError(f"input type [{operand}] has invalid values.")
    operation = attributes["op"].removeprefix("tuple_")
    return Value(left.kind, it.arithmetic(operation, left.value, right.value))


@rule("shape_div", "ceil_div")
def division(operands: Sequence[Operand], attributes: Attributes) -> Value:
    left = _ints(operands[0], "expects a shape")
    right = _ints(operands[1], "expects a shape")
    if attributes["op"] == "ceil_div":
        return Value("shape", it.ceil_div(left, right))
    return Value("shape", it.shape_div(left, right, attributes.get("mode", "exact")))


@rule("to_int_tuple")
def to_int_tuple(operands: Sequence[Operand], _: Attributes) -> Value:
    value = _tuple(operands[0], "expects a tuple")
    if not all(isinstance(leaf, it.Extent) for leaf in it.flatten(value)):
        raise LayoutError(f"expects neither scaled bases nor underscores, but got {operands[0]}")
    return Value("int_tuple", value)


@rule("make_fragment_like")
def make_fragment_like(operands: Sequence[Operand], _: Attributes) -> View:
    """A compact register tensor whose modes are ordered as the source's."""
    source = operands[0]
    if not isinstance(source, View):
        raise LayoutError(
            f"expects `input` is CuteMemRefType or CuteLayoutTypeInterface, but got {source}"
        )
    layout = source.layout.outer if isinstance(source.layout, ComposedLayout) else source.layout
    if layout.has_basis:
        raise LayoutError(f"unable to make fragment-like layout from {source}")
    leaves = layout.int_leaves()
    strides = {}
    step = 1
    for place in sorted(range(len(leaves)), key=lambda i: (leaves[i][1] or 1 << 62, i)):
        extent, stride = leaves[place]
        strides[place] = step if stride else 0
        step *= extent if stride else 1
    compact = it.unflatten([strides[i] for i in range(len(leaves))], layout.shape)
    return View(source.element, "rmem", Layout(layout.shape, compact))
