"""cute: parts of tiled instructions, fragments of products, tuples whose numbers are forgotten, and
what looks into tiles and tensor maps."""

from collections.abc import Callable

from tile_core.mlir import ir
from tile_cute import int_tuple as it
from tile_cute.atoms.registry import mma_atom
from tile_cute.dialect.base import Cute, attributes_of, operand_of
from tile_cute.dialect.define import define
from tile_cute.dialect.kinds import ATOM
from tile_cute.dialect.nvgpu_ops import count_of, element_of
from tile_cute.dialect.view_signatures import COPY_PARTS, MMA_PART, PARTS, makes, pointer_of
from tile_cute.errors import LayoutError
from tile_cute.infer import RULES
from tile_cute.layout import Layout
from tile_cute.layout_algebra import Tile
from tile_cute.swizzle import ComposedLayout
from tile_cute.values import LAYOUT_KINDS, TUPLE_KINDS, Operand, Value, View, of_layout


def _types(op: ir.OpView) -> list[ir.Type]:
    return [operand.type for operand in op.operation.operands]


# --- parts of tiled instructions -----------------------------------------------------------------


def _check_tiled_partition(op: ir.OpView) -> None:
    """As the operation of that role: of a copy S and D, of a product A, B and C."""
    role = attributes_of(op).get("operand", "")
    if role in COPY_PARTS:
        COPY_PARTS[role](op)
    elif role in PARTS:
        MMA_PART(op)
    else:
        raise LayoutError(f"expects 'operand' to be S, D, A, B or C, but got '{role}'")


# --- fragments -----------------------------------------------------------------------------------


def fragment_of(instruction: str, role: str, source: Operand) -> View:
    """The registers for one operand of a product.

    Args:
        instruction: of a warp; its PTX name.
        role: A, B or C.
        source: what a thread has of the operand, (V, rest, rest), or its shape.

    Raises:
        LayoutError: another rank, or a first mode that is not what an instruction takes.
    """
    if role not in PARTS:
        raise LayoutError(f"expects 'operand' to be A, B or C, but got '{role}'")
    atom = mma_atom(instruction)
    if isinstance(source, View):
        layout = source.layout.outer if isinstance(source.layout, ComposedLayout) else source.layout
        view = source
    elif isinstance(source, Value) and source.kind == "shape":
        layout = Layout(source.value)
        view = View(element_of(atom, role), "rmem", layout)
    else:
        raise LayoutError(f"expects a view or a shape, but got {source}")
    if len(layout) < 3:
        raise LayoutError(f"expects at least 3 modes, (V, rest, rest), but got {source}")
    if not it.is_static(layout[0].shape):
        raise LayoutError(f"expects the mode of values to be static, but got {source}")
    count = count_of(atom, role)
    if layout[0].size != count:
        raise LayoutError(f"expects {count} values for {role} of '{instruction}', but got {source}")
    made = RULES["make_fragment_like"]([view], {})
    assert isinstance(made, View)
    return made


def _check_make_fragment(op: ir.OpView) -> None:
    named = ATOM.fullmatch(str(_types(op)[0]))
    if named is None:
        raise LayoutError(f"expects atom to be an atom, but got {_types(op)[0]}")
    role = attributes_of(op).get("operand", "")
    makes(op, fragment_of(named[1], role, operand_of(_types(op)[1])))


# --- memory --------------------------------------------------------------------------------------


def _check_load_scaled_index(op: ir.OpView) -> None:
    """iter[index * stride]; the stride says how far apart elements are, by mode of the index."""
    pointer, index, stride = _types(op)
    element, _ = pointer_of(pointer)
    value = op.operation.results[0].type
    if element != str(value):
        raise LayoutError(f"loads {element}, but the result is {value}")
    width = value.width if isinstance(value, ir.IntegerType | ir.FloatType) else 0
    if width < 8 or width & (width - 1):
        raise LayoutError(f"expects elements of 8, 16, 32 or 64 bits, but got {element}")
    step, at = operand_of(stride), operand_of(index)
    if not (isinstance(step, Value) and step.kind in ("int_tuple", "stride")):
        raise LayoutError(f"expects an int tuple as stride, but got {step}")
    if not all(isinstance(leaf, it.Extent) for leaf in it.flatten(step.value)):
        raise LayoutError(f"expects an int tuple as stride, but got {step}")
    scalar = isinstance(index, ir.IntegerType | ir.IndexType)
    tuple_ = isinstance(at, Value) and at.kind in ("coord", "int_tuple")
    if not scalar and not tuple_:
        raise LayoutError(f"expects an integer or a coordinate as index, but got {at}")
    profile = at.value if isinstance(at, Value) else 0
    if not it.congruent(profile, step.value):
        raise LayoutError(f"expects a stride for each number of the index, but got {at} and {step}")


# --- looking into --------------------------------------------------------------------------------


def layouts_of(tile: Tile) -> list[Layout]:
    """The layout of each mode of a tile; that of an extent n is n:1.

    Raises:
        LayoutError: a mode that the tile leaves whole, which has none.
    """
    found: list[Layout] = []
    for mode in tile:
        if isinstance(mode, int):
            found.append(Layout(mode))
        elif isinstance(mode, Layout):
            found.append(mode)
        else:
            raise LayoutError(f"expects a layout for each mode of the tile, but got {mode}")
    return found


def _check_layouts(op: ir.OpView) -> None:
    tile = operand_of(_types(op)[0])
    if not (isinstance(tile, Value) and tile.kind == "tile"):
        raise LayoutError(f"expects a tile, but got {tile}")
    layouts, mode = layouts_of(tile.value), attributes_of(op)["mode"]
    if mode not in range(len(layouts)):
        raise LayoutError(f"mode [{mode}] is invalid for input type {tile}")
    makes(op, of_layout(layouts[mode]))


def _parts(value: Operand) -> tuple[it.IntTuple, ...]:
    if isinstance(value, Value) and value.kind in TUPLE_KINDS:
        return (value.value,)
    if isinstance(value, Value) and value.kind in LAYOUT_KINDS:
        layout = value.value.outer if isinstance(value.value, ComposedLayout) else value.value
        return layout.shape, layout.stride
    raise LayoutError(f"expects a tuple or a layout, but got {value}")


def forgotten(source: Operand, result: Operand) -> list[it.Leaf | it.Dynamic]:
    """The numbers of `source` at the places where `result` has `?`, from left to right.

    Raises:
        LayoutError: values of two kinds or profiles, or a number that the source does not have.
    """
    if getattr(source, "kind", "") != getattr(result, "kind", ""):
        raise LayoutError(f"expects a result of the same kind, but got {source} and {result}")
    numbers: list[it.Leaf | it.Dynamic] = []
    for before, after in zip(_parts(source), _parts(result), strict=True):
        if not it.congruent(before, after):
            raise LayoutError(f"expects a result of the same profile, but got {result}")
        for known, left in zip(it.flatten(before), it.flatten(after), strict=True):
            if isinstance(left, it.Dynamic):
                _check_forgotten(known, left, source, result)
                numbers.append(known)
            elif known != left:
                raise LayoutError(f"cannot know more than {source}, but the result is {result}")
    return numbers


def _check_forgotten(known: object, left: it.Dynamic, source: Operand, result: Operand) -> None:
    divisor = known.divby if isinstance(known, it.Dynamic) else known
    if not isinstance(divisor, int) or divisor % left.divby:
        raise LayoutError(f"cannot know more than {source}, but the result is {result}")


def _check_derefine(op: ir.OpView) -> None:
    source, result = operand_of(_types(op)[0]), operand_of(op.operation.results[0].type)
    forgotten(source, result)


def _check_map(kind: str) -> Callable[[ir.OpView], None]:
    def check(op: ir.OpView) -> None:
        if not str(_types(op)[0]).startswith(f"!cute_nvgpu.tma_descriptor_{kind}<"):
            raise LayoutError(f"expects a tma_descriptor_{kind}, but got {_types(op)[0]}")

    return check


# name: (operands, results, check, pure, what it does)
_TABLE = {
    "tiled_partition": (
        ("tiled", "view", "thread"), ("result",), _check_tiled_partition, True,
        "a thread's part of what a tiled copy (`operand` S, D) or product (A, B, C) is about",
    ),
    "mma_make_fragment": (
        ("atom", "source"), ("result",), _check_make_fragment, False,
        "registers for `operand` A, B or C of a product",
    ),
    "load_scaled_index": (
        ("iter", "index", "stride"), ("value",), _check_load_scaled_index, False,
        "the element at index * stride",
    ),
    "get_layouts_from_tile": (
        ("tile",), ("result",), _check_layouts, True, "the layout of mode `mode` of a tile",
    ),
    "derefine": (
        ("source",), ("result",), _check_derefine, True,
        "the same tuple or layout, of which the type says less",
    ),
    "print_tma_desc_tiled": (
        ("map",), (), _check_map("tiled"), False, "print the 128 bytes of a tensor map",
    ),
    "print_tma_desc_im2col": (
        ("map",), (), _check_map("im2col"), False, "print the 128 bytes of a tensor map",
    ),
}  # fmt: skip

OPERATIONS = {
    name: define(Cute, name, operands, results, doc=doc, check=check, pure=pure)
    for name, (operands, results, check, pure, doc) in _TABLE.items()
}
