"""What cute's operations on pointers, tuples and tiled instructions take and give (page 034)."""

import re
from collections.abc import Callable

from tile_core.mlir import ir
from tile_cute.atoms.descriptors import SmemOperand, match_operand
from tile_cute.atoms.tiled_copy import TiledCopy, tiled_copy
from tile_cute.atoms.tiled_mma import partition_of
from tile_cute.bridge import memory_layout
from tile_cute.dialect.base import attributes_of, operand_of, parse_type
from tile_cute.dialect.kinds import ATOM
from tile_cute.dialect.signatures import Signatures
from tile_cute.errors import LayoutError
from tile_cute.layout import Layout
from tile_cute.swizzle import ComposedLayout
from tile_cute.values import Operand, Value, View

#: Operation -> kinds of its operands, kinds of its results (`tile_cute.dialect.kinds`).
SIGNATURES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "get_iter": (("memref",), ("pointer",)),
    "add_offset": (("pointer", "offset"), ("pointer",)),
    "recast_iter": (("pointer",), ("pointer",)),
    "inttoptr": (("integer",), ("pointer",)),
    "ptrtoint": (("pointer",), ("integer",)),
    "make_tuple": (("any*",), ("tuple",)),
    "unpack_tuple": (("tuple",), ("any*",)),
    "ptr_store": (("any", "pointer"), ()),
    "make_atom": (("any*",), ("atom",)),
    "make_tiled_mma": (("atom",), ("tiled mma",)),
    "make_tiled_copy": (("atom", "layout"), ("tiled copy",)),
    "tiled_mma_partition": (("tiled mma", "view", "integer"), ("view",)),
    "tiled_mma_partition_shape": (("tiled mma", "shape"), ("shape",)),
    "tiled_copy_partition_s": (("tiled copy", "view", "integer"), ("view",)),
    "tiled_copy_partition_d": (("tiled copy", "view", "integer"), ("view",)),
    "tiled_copy_retile": (("tiled copy", "view"), ("view",)),
    "copy_atom_call": (("atom", "memref or place", "memref or place"), ()),
    "prefetch": (("atom", "memref"), ()),
    "prefetch_atom_call": (("atom", "memref"), ()),
    "make_desc_iter": (("shared view",), ("descriptors",)),
    "deref_desc_iter": (("descriptors",), ("descriptor",)),
    "fast_divmod_create_divisor": (("integer",), ("divisor",)),
    "fast_divmod_make_divisor": (("integer",), ("divisor",)),
    "fast_divmod_get_divisor": (("divisor",), ("integer",)),
    "fast_divmod_divide": (("integer", "divisor"), ("integer",)),
}

_POINTER = re.compile(r'!cute\.ptr<(.+), "(\w+)", [^,]+>')
_DESCRIBED = re.compile(r'!cute_nvgpu\.smem_desc_view<(!cute\.memref<[^"]*"smem", "[^"]*">), ')
_DESCRIPTOR = re.compile(r'!cute_nvgpu\.smem_desc<"sm\d+", "(K|MN)", "(\w+)">')
_TILED_COPY = re.compile(r'!cute\.tiled_copy<"([^"]*)", "([^"]*)", "([^"]*)">')
_TILED_MMA = re.compile(r'!cute\.tiled_mma<"([^"]*)", "([^"]*)"')
_TILED = re.compile(r'!cute\.tiled_(?:mma|copy)<"([^"]*)"')


def pointer_of(type_: ir.Type) -> tuple[str, str]:
    """(element, space)."""
    match = _POINTER.fullmatch(str(type_))
    if match is None:
        raise LayoutError(f"expects a cute.ptr of element, space and alignment, but got {type_}")
    return match[1], match[2]


def _of_view(op: ir.OpView) -> None:
    """The pointer to a tensor has its element and space."""
    view = operand_of(op.operation.operands[0].type)
    found = pointer_of(op.operation.results[0].type)
    if isinstance(view, View) and found != (view.element, view.space):
        raise LayoutError(
            f"expects a pointer to {view.element} in {view.space}, but got one to {found[0]} in "
            f"{found[1]}"
        )


def _moved(op: ir.OpView) -> None:
    """Moving a pointer changes neither element nor space."""
    before, after = (
        pointer_of(op.operation.operands[0].type),
        pointer_of(op.operation.results[0].type),
    )
    if before != after:
        raise LayoutError(f"expects a pointer to {before[0]} in {before[1]}, but got {after}")


def _recast(op: ir.OpView) -> None:
    """Another element in the same space."""
    before, after = (
        pointer_of(op.operation.operands[0].type),
        pointer_of(op.operation.results[0].type),
    )
    if before[1] != after[1]:
        raise LayoutError(f"cannot recast a pointer in {before[1]} to one in {after[1]}")


def _stored(op: ir.OpView) -> None:
    value, (element, _) = op.operation.operands[0].type, pointer_of(op.operation.operands[1].type)
    if str(value) != element:
        raise LayoutError(f"stores {value} through a pointer to {element}")


def _instruction(op: ir.OpView) -> None:
    """A tiled instruction is made of the instruction that it names."""
    named = ATOM.fullmatch(str(op.operation.operands[0].type))
    tiled = _TILED.match(str(op.operation.results[0].type))
    if named is not None and (tiled is None or tiled[1] != named[1]):
        raise LayoutError(f"expects a result that repeats '{named[1]}'")


def described(type_: ir.Type) -> tuple[View, SmemOperand]:
    """The tensor that a smem_desc_view is of, and how MMA instructions read it."""
    match = _DESCRIBED.match(str(type_))
    view = parse_type(match[1]) if match else None
    if not isinstance(view, View):
        raise LayoutError(f"expects a smem_desc_view of a cute.memref, but got {type_}")
    element = ir.Type.parse(view.element)
    if not isinstance(element, ir.IntegerType | ir.FloatType):
        raise LayoutError(f"expects a tensor of numbers, but got {view}")
    return view, match_operand(memory_layout(view.layout), element.width)


def _source(op: ir.OpView) -> None:
    """The iterator names its tensor, which is laid out as MMA instructions read it."""
    view, _ = described(op.operation.results[0].type)
    if view != operand_of(op.operation.operands[0].type):
        raise LayoutError(f"expects a smem_desc_view of its operand, but got one of {view}")


def _part(op: ir.OpView) -> None:
    """`mn` and `k` name an element of the tensor, at which a core matrix begins; the descriptor's
    type says how the instruction reads it.
    """
    view, operand = described(op.operation.operands[0].type)
    attributes = attributes_of(op)
    mn, k = int(attributes.get("mn", 0)), int(attributes.get("k", 0))
    extents = [mode.size for mode in memory_shape(view)]
    if not (0 <= mn < extents[0] and 0 <= k < extents[1]):
        raise LayoutError(f"expects an element of {view}, but got ({mn}, {k})")
    if operand.start(mn, k) % 16:
        raise LayoutError(f"begins {operand.start(mn, k)} bytes into {view}, no multiple of 16")
    found = _DESCRIPTOR.fullmatch(str(op.operation.results[0].type))
    if found is None or found.groups() != (operand.major, operand.swizzle):
        raise LayoutError(
            f"expects a descriptor of major {operand.major} and swizzle {operand.swizzle}, but got "
            f"{op.operation.results[0].type}"
        )


def _bits(view: View) -> int:
    element = ir.Type.parse(view.element)
    if not isinstance(element, ir.IntegerType | ir.FloatType):
        raise LayoutError(f"expects a tensor of numbers, but got {view}")
    return element.width


def _with_layout(view: View, layout: Layout) -> View:
    if isinstance(view.layout, ComposedLayout):
        return View(view.element, view.space, view.layout.map_outer(lambda _: layout))
    return View(view.element, view.space, layout)


def makes(op: ir.OpView, made: Operand) -> None:
    """The result's type says what the operation makes."""
    declared = operand_of(op.operation.results[0].type)
    if str(made) != str(declared):
        raise LayoutError(f"makes {made}, but its type is {declared}")


def _copied(op: ir.OpView) -> tuple[TiledCopy, View]:
    """The tiled copy and the tensor that an operation is about."""
    found, type_ = (operand.type for operand in list(op.operation.operands)[:2])
    match, view = _TILED_COPY.fullmatch(str(found)), operand_of(type_)
    if match is None or not isinstance(view, View):
        raise LayoutError(
            f"expects a tiled_copy of an instruction, a layout and a tile, but got {found}"
        )
    return tiled_copy(match[1], match[2], match[3], _bits(view)), view


def _copy_part(side: str) -> Callable[[ir.OpView], None]:
    """A thread's part of the "source" or the "target"."""

    def check(op: ir.OpView) -> None:
        copy, view = _copied(op)
        makes(op, _with_layout(view, copy.part(memory_shape(view), side, _bits(view))[1]))

    return check


def _retiled(op: ir.OpView) -> None:
    copy, view = _copied(op)
    if view.space != "rmem":
        raise LayoutError(f"expects a fragment in registers, but got {view}")
    makes(op, _with_layout(view, copy.retiled(memory_shape(view), _bits(view))))


def _product_part(op: ir.OpView) -> None:
    """A thread's part of an operand, or its shape."""
    found, type_ = (operand.type for operand in list(op.operation.operands)[:2])
    match = _TILED_MMA.match(str(found))
    if match is None:
        raise LayoutError(f"expects a tiled_mma of an instruction and warps, but got {found}")
    source, operand = operand_of(type_), attributes_of(op).get("operand", "")
    if isinstance(source, View):
        part = partition_of(match[1], match[2], operand, memory_shape(source))
        makes(op, _with_layout(source, part.layout))
        return
    assert isinstance(source, Value), "a shape"
    part = partition_of(match[1], match[2], operand, Layout(source.value))
    makes(op, Value("shape", part.layout.shape))


def memory_shape(view: View) -> Layout:
    """The layout of a tensor without its swizzle."""
    return view.layout.outer if isinstance(view.layout, ComposedLayout) else view.layout


_RELATIONS: dict[str, Callable[[ir.OpView], None]] = {
    "get_iter": _of_view,
    "add_offset": _moved,
    "recast_iter": _recast,
    "ptr_store": _stored,
    "make_tiled_mma": _instruction,
    "make_tiled_copy": _instruction,
    "tiled_copy_partition_s": _copy_part("source"),
    "tiled_copy_partition_d": _copy_part("target"),
    "tiled_copy_retile": _retiled,
    "tiled_mma_partition": _product_part,
    "tiled_mma_partition_shape": _product_part,
    "make_desc_iter": _source,
    "deref_desc_iter": _part,
}

#: Parts of a tiled copy and of a tiled product by the role of the tensor.
COPY_PARTS = {"S": _copy_part("source"), "D": _copy_part("target")}
PARTS = ("A", "B", "C")
MMA_PART = _product_part

#: All of them.
CHECKS = Signatures(SIGNATURES, _RELATIONS)
