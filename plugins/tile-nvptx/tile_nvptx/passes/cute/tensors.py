"""Tensors and layouts as values: an address, and the numbers that the type leaves open.

A type that says all of a tensor is an address, one that says all of a layout no value (an i32 that
nobody reads). What is open follows in a struct, as i64: `!cute.memref<f16, "gmem", "(?,8):(8,1)">`
is `!llvm.struct<(ptr<1>, i64)>`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from tile_cute import int_tuple as it
from tile_cute.dialect.base import operand_of
from tile_cute.dialect.kinds import ATOM, family_of
from tile_cute.dialect.nvgpu_ops import mma_atom
from tile_cute.errors import LayoutError
from tile_cute.layout import Layout
from tile_cute.swizzle import ComposedLayout, Swizzle
from tile_cute.values import Operand, Value, View

from tile_core.convert import Conversion, RuleSet
from tile_core.diagnostics import CompileError
from tile_core.insertion import Inserter
from tile_core.mlir import ir
from tile_nvptx.passes.cute.numbers import Number, filled, unknown, wide
from tile_nvptx.passes.cute.offsets import Offsets
from tile_nvptx.passes.tileas.device.helpers import Helpers

#: Address spaces of NVPTX by the names that cute has for them.
SPACES = {"gmem": 1, "smem": 3, "rmem": 5, "generic": 0}
POINTER = re.compile(r'!cute\.(?:ptr|memref)<(.+?), "(\w+)", .*>')
_ALIGNED_POINTER = re.compile(r'!cute\.ptr<.+, "\w+", (\d+)(?: : i\d+)?>')
_TUPLE = re.compile(r'!cute\.tuple<"(.*)">')
#: Alignment of shared memory in bytes: what descriptors and tensor maps of swizzles ask for.
ALIGNED = 1024
_DYNAMIC = -(2**31)  # an index of getelementptr that is an operand
_MOST = 2**31

rules = RuleSet("convert-cute-and-cute-nvgpu-to-llvm")


@dataclass
class OwnMaps:
    """Tensor maps that blocks make in a place of their own, of one function.

    Attributes:
        count: of them.
        stores: whether copies out of shared memory read maps.
        made: how many have been converted.
        place: the number of the block's place.
    """

    count: int = 0
    stores: bool = False
    made: int = 0
    place: ir.Value | None = None


@dataclass
class State:
    """What the rules of one module share; `own_maps` are those of the function at hand."""

    helpers: Helpers
    module: ir.Operation
    buffers: list[str] = field(default_factory=list)
    dynamic: ir.Operation | None = None
    own_maps: OwnMaps = field(default_factory=OwnMaps)

    def shared(self, at: Inserter, name: str, size: int, alignment: int) -> ir.Value:
        """The address of `size` bytes of shared memory, one and the same for each `name`."""
        if name not in self.buffers:
            self.buffers.append(name)
            block = self.module.regions[0].blocks[0]
            ir.InsertionPoint.at_block_begin(block).insert(
                ir.Operation.parse(
                    f"llvm.mlir.global internal @{name}() {{addr_space = 3 : i32, "
                    f"alignment = {alignment} : i64}} : !llvm.array<{size} x i8>"
                )
            )
        symbol = {"global_name": ir.FlatSymbolRefAttr.get(name)}
        return at.create("llvm.mlir.addressof", [], [ir.Type.parse("!llvm.ptr<3>")], symbol).result


Cute = Conversion[State]


def convert_type(type_: ir.Type) -> ir.Type:
    """Pointers and tensors are addresses; what a type says by itself is no value: i32.

    Raises:
        CompileError: a tensor in a space without addresses.
    """
    text = str(type_)
    if not text.startswith(("!cute.", "!cute_nvgpu.")):
        return type_
    match = POINTER.fullmatch(text)
    if match is not None:
        return _with_numbers(_address_type(match[2], text), type_)
    tuple_ = _TUPLE.fullmatch(text)
    if tuple_ is not None:
        return _struct([str(convert_type(part)) for part in _listed(tuple_[1])])
    if is_map(type_):
        return ir.Type.parse("!llvm.ptr")
    if text.startswith("!cute_nvgpu.smem_desc"):
        return ir.IntegerType.get_signless(64)
    if text.startswith("!cute_nvgpu.atom<"):
        return atom_type(atom_fields(type_))
    if text.startswith(("!cute.fast_divmod_divisor<", "!cute.tiled_")):
        return ir.IntegerType.get_signless(32)
    if isinstance(operand_of(type_), Value):
        return _with_numbers(None, type_)
    return type_


def _address_type(space: str, text: str) -> str:
    if space == "tmem":
        return "i32"
    if space not in SPACES:
        raise CompileError(f"cannot be lowered: {text} has no address that code can use")
    return f"!llvm.ptr<{SPACES[space]}>" if SPACES[space] else "!llvm.ptr"


def _with_numbers(address: str | None, type_: ir.Type) -> ir.Type:
    count = len(unknown(operand_of(type_)))
    if count == 0:
        return ir.Type.parse(address or "i32")
    return _struct([*([address] if address else []), *["i64"] * count])


def _listed(text: str) -> list[ir.Type]:
    """The types that a text lists."""
    whole = ir.TupleType(ir.Type.parse(f"tuple<{text}>"))
    return [whole.get_type(at) for at in range(whole.num_types)]


def _struct(types: list[str]) -> ir.Type:
    return ir.Type.parse(f"!llvm.struct<({', '.join(types)})>")


def is_map(type_: ir.Type) -> bool:
    """Whether values of a type are tensor maps."""
    return str(type_).startswith("!cute_nvgpu.tma_descriptor_")


#: What atoms of a family hold, by name: their values.
_FIELDS = {
    "tma load": (("map", "!llvm.ptr"), ("barrier", "!llvm.ptr<3>")),
    "tma store": (("map", "!llvm.ptr"),),
    "tma reduce": (("map", "!llvm.ptr"),),
    "tcgen05.cp": (("descriptor", "i64"),),
    "mma.block_scale": (("scale_a", "i32"), ("scale_b", "i32")),
}


def atom_fields(type_: ir.Type) -> tuple[tuple[str, str], ...]:
    """Name and type of each value that an atom holds; none where its instruction says all of it."""
    match = ATOM.fullmatch(str(type_))
    family = family_of(type_)
    if match is not None and not family:
        try:
            family = mma_atom(match[1]).family
        except LayoutError as error:
            raise CompileError(f"cannot be lowered: {error}") from error
    return _FIELDS.get(family, ())


def atom_type(fields: tuple[tuple[str, str], ...]) -> ir.Type:
    """The type of an atom's value: of one that holds nothing, an i32 that nobody reads."""
    return _struct([kind for _, kind in fields]) if fields else ir.IntegerType.get_signless(32)


def alignment_of(pointer: ir.Type) -> int:
    """The bytes that a pointer's type promises its address to be a multiple of.

    Raises:
        CompileError: it says none.
    """
    match = _ALIGNED_POINTER.fullmatch(str(pointer))
    if match is None or int(match[1]) < 1:
        raise CompileError(f"cannot be lowered: {pointer} does not say how it is aligned")
    return int(match[1])


# --- values --------------------------------------------------------------------------------------


def _field(cx: Cute, value: ir.Value, place: int, type_: ir.Type) -> ir.Value:
    position = {"position": ir.DenseI64ArrayAttr.get([place])}
    return cx.create("llvm.extractvalue", [value], [type_], position).result


def _numbers(cx: Cute, value: ir.Value, operand: Operand, first: int) -> list[Number]:
    i64 = ir.IntegerType.get_signless(64)
    return [
        Number(number.divby, _field(cx, value, first + at, i64), cx)
        for at, number in enumerate(unknown(operand))
    ]


def value_of(cx: Cute, value: ir.Value) -> Operand:
    """What an operand of the rule stands for, with numbers where its type leaves them open."""
    operand = operand_of(cx.before(value))
    first = 1 if isinstance(operand, View) else 0
    return filled(operand, _numbers(cx, value, operand, first))


def base_of(cx: Cute, value: ir.Value) -> ir.Value:
    """The address where a tensor begins."""
    type_ = cx.before(value)
    if not unknown(operand_of(type_)):
        return value
    match = POINTER.fullmatch(str(type_))
    assert match is not None, "only tensors have addresses"
    return _field(cx, value, 0, ir.Type.parse(_address_type(match[2], "")))


def made(cx: Cute, operand: Operand, type_: ir.Type, base: ir.Value | None = None) -> ir.Value:
    """The value of what an operation makes.

    Args:
        type_: what it says that it makes.
        base: of a tensor, where it begins.

    Raises:
        CompileError: it makes something else, or numbers that are not computed.
    """
    declared = operand_of(type_)
    if str(operand) != str(declared):
        raise cx.error(f"makes {operand}, but its type is {declared}")
    numbers = unknown(operand)
    if not numbers:
        return base if base is not None else Offsets(cx).constant(0)
    fields = [base] if base is not None else []
    for number in numbers:
        if not isinstance(number, Number):
            raise cx.error(f"makes {operand}, of which not all numbers can be computed here")
        fields.append(wide(cx, number.value))
    return packed(cx, fields, convert_type(type_))


def packed(cx: Cute, items: Sequence[ir.Value], struct: ir.Type) -> ir.Value:
    """Values as one."""
    whole = cx.create("llvm.mlir.poison", [], [struct]).result
    for at, item in enumerate(items):
        position = {"position": ir.DenseI64ArrayAttr.get([at])}
        whole = cx.create("llvm.insertvalue", [whole, item], [struct], position).result
    return whole


def unpacked(cx: Cute, value: ir.Value, types: Sequence[ir.Type]) -> list[ir.Value]:
    """The values that one holds."""
    return [_field(cx, value, at, type_) for at, type_ in enumerate(types)]


def values_of(cx: Cute, atom: ir.Value) -> dict[str, ir.Value]:
    """What an atom holds, by name."""
    fields = atom_fields(cx.before(atom))
    types = [ir.Type.parse(type_) for _, type_ in fields]
    return dict(zip((name for name, _ in fields), unpacked(cx, atom, types), strict=True))


def index_of(cx: Cute, value: ir.Value, view: View | None = None) -> Number:
    """An index or integer operand; as i64 where it is one into a tensor known at run time only."""
    if view is not None and unknown(view):
        return Number(1, wide(cx, value), cx)
    return Number(1, Offsets(cx).number(value), cx)


# --- tensors -------------------------------------------------------------------------------------


def tensor_of(cx: Cute, value: ir.Value) -> View:
    """The tensor that an operand of the rule is; an error where it is none or too large."""
    found = value_of(cx, value)
    if not isinstance(found, View):
        raise cx.error(f"expects a cute.memref, but got {cx.before(value)}")
    outer = outer_of(found)
    if outer.has_basis:
        raise cx.error(f"expects a tensor in memory, but got {found.layout}")
    if outer.is_static and outer.cosize >= _MOST:
        raise cx.error(f"expects less than 2^31 elements, as indices are i32, but got {found}")
    return found


def static_tensor(cx: Cute, value: ir.Value) -> View:
    """A tensor whose type says all of it."""
    found = tensor_of(cx, value)
    if not outer_of(found).is_static:
        raise cx.error(f"expects a static layout, but got {found.layout}")
    return found


def sized_tensor(cx: Cute, value: ir.Value) -> View:
    """A tensor whose type says how many elements it has; how far apart they are may be open."""
    found = tensor_of(cx, value)
    if not it.is_static(outer_of(found).shape):
        raise cx.error(f"expects a static shape, but got {found.layout}")
    return found


def outer_of(view: View) -> Layout:
    """The layout without its swizzle."""
    return view.layout.outer if isinstance(view.layout, ComposedLayout) else view.layout


def with_layout(view: View, layout: Layout) -> View:
    """Other elements of the same tensor; its swizzle stays."""
    if isinstance(view.layout, ComposedLayout):
        return View(view.element, view.space, view.layout.map_outer(lambda _: layout))
    return View(view.element, view.space, layout)


def swizzle_of(view: View) -> tuple[Swizzle | None, int]:
    """(swizzle, offset before it) of a tensor that has one."""
    if isinstance(view.layout, ComposedLayout) and not view.layout.inner.is_identity:
        return view.layout.inner, view.layout.offset
    return None, view.layout.offset if isinstance(view.layout, ComposedLayout) else 0


def element_bits(view: View, cx: Cute) -> int:
    """The size of an element; an error for what is no number."""
    element = ir.Type.parse(view.element)
    if not isinstance(element, ir.IntegerType | ir.FloatType):
        raise cx.error(f"expects elements that are numbers, but got {view}")
    return element.width


def moved(cx: Cute, base: ir.Value, element: ir.Type, offset: ir.Value) -> ir.Value:
    """The address of an element."""
    return cx.create(
        "llvm.getelementptr",
        [base, offset],
        [base.type],
        {
            "elem_type": ir.TypeAttr.get(element),
            "rawConstantIndices": ir.DenseI32ArrayAttr.get([_DYNAMIC]),
        },
    ).result


def cut(cx: Cute, base: ir.Value, view: View, offset: it.IntTuple) -> ir.Value:
    """Where a part of a tensor begins, `offset` elements behind its own beginning.

    Swizzles of shared memory act on addresses, so that its parts need nothing else; elsewhere a
    swizzle counts from the beginning of the tensor, which a part does not know.
    """
    if isinstance(offset, int) and offset == 0:
        return base
    if swizzle_of(view)[0] is not None and view.space != "smem":
        raise cx.error("cannot cut a swizzled tensor: an address inside of it has no layout")
    if view.space == "tmem":
        raise cx.error("cannot cut a tensor of tensor memory by elements")
    return moved(cx, base, ir.Type.parse(view.element), _value(cx, offset))


def _value(cx: Cute, offset: it.IntTuple) -> ir.Value:
    if isinstance(offset, Number):
        return offset.value
    if not isinstance(offset, int):
        raise cx.error(f"needs an integer offset, but got {it.text(offset)}")
    return Offsets(cx).constant(offset)


def address(cx: Cute, base: ir.Value, view: View, index: it.IntTuple) -> ir.Value:
    """The address of the element that has an index before the swizzle."""
    swizzle, offset = swizzle_of(view)
    place = it.add(index, offset)
    element = ir.Type.parse(view.element)
    if swizzle is None:
        return moved(cx, base, element, _value(cx, place))
    if view.space != "smem":
        number = Offsets(cx)
        return moved(cx, base, element, number.swizzled(swizzle, _value(cx, place)))
    plain = moved(cx, base, element, _value(cx, place))
    return _swizzled(cx, plain, swizzle, element_bits(view, cx))


def _swizzled(cx: Cute, pointer: ir.Value, swizzle: Swizzle, bits: int) -> ir.Value:
    """The address in shared memory that a swizzle of elements makes of another one."""
    if bits % 8:
        raise cx.error(f"cannot swizzle elements of {bits} bits")
    if swizzle.shift < 0 and swizzle.span * bits > 8 * ALIGNED:
        # It changes address bits above those that shared memory is aligned to.
        raise cx.error(
            f"cannot swizzle addresses by {swizzle}: it moves by more than {ALIGNED} bytes"
        )
    number = Offsets(cx)
    place = cx.create("llvm.ptrtoint", [pointer], [number.i32]).result
    place = number.swizzled(swizzle.recast(bits, 8), place)
    return cx.create("llvm.inttoptr", [place], [pointer.type]).result


def indices(view: View) -> list[it.IntTuple]:
    """The index of every element before the swizzle, in order."""
    layout = outer_of(view)
    return [layout(at) for at in range(layout.size)]


def addresses_of(cx: Cute, tensor: ir.Value) -> list[ir.Value]:
    """The addresses of all elements of a tensor, in order."""
    view, base = sized_tensor(cx, tensor), base_of(cx, tensor)
    return [address(cx, base, view, index) for index in indices(view)]
