"""One kernel that computes cases of cute's algebra from numbers of run time, and what it should."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from tile_cute import int_tuple as it
from tile_cute import tiling
from tile_cute.dialect.base import parse_type
from tile_cute.infer import RULES, size
from tile_cute.layout import Layout
from tile_cute.layout_algebra import slice_layout
from tile_cute.swizzle import ComposedLayout
from tile_cute.text import parse_layout
from tile_cute.values import Operand, Value, View

QUERIES = ("size", "cosize")
_MAKERS = {
    "shape": "make_shape",
    "stride": "make_stride",
    "coord": "make_coord",
    "int_tuple": "make_int_tuple",
}


@dataclass(frozen=True)
class Case:
    """An operation on values `kind "text"`; `?` are numbers of run time."""

    op: str
    operands: tuple[str, ...]
    attributes: str = ""
    known: tuple[tuple[str, object], ...] = ()
    numbers: tuple[int, ...] = ()


def case(op: str, *operands: str, numbers: Sequence[int] = (), **known: object) -> Case:
    """A case; attributes are integers, strings and lists of integers."""
    texts = [f"{name} = {_attribute(value)}" for name, value in known.items()]
    text = f" {{{', '.join(texts)}}}" if texts else ""
    return Case(op, operands, text, tuple(known.items()), tuple(numbers))


def _attribute(value: object) -> str:
    if isinstance(value, list):
        return f"array<i32: {', '.join(map(str, value))}>"
    return f'"{value}"' if isinstance(value, str) else f"{value} : i32"


def _type(operand: str) -> str:
    kind, _, text = operand.partition(" ")
    return f'!cute.memref<f32, "gmem", "{text}">' if kind == "memref" else f'!cute.{kind}<"{text}">'


class Kernel:
    """Cases as a kernel `(x, numbers, elements, numbers)`, and what it has to write."""

    def __init__(self, cases: Sequence[Case]) -> None:
        self.lines: list[str] = []
        self.given: list[int] = []
        self.numbers: list[int] = []
        self.elements: list[int] = []
        self._names = count()
        for one in cases:
            self._case(one)

    @property
    def text(self) -> str:
        """The kernel."""
        head = """
gpu.module @m {
  func.func @algebra(%x: !cute.ptr<f32, "gmem", 16 : i64>, %given: !llvm.ptr<1>,
      %out: !llvm.ptr<1>, %numbers: !llvm.ptr<1>) attributes {nv_tileaa.kernel,
      nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 1 : i32}} {
"""
        return head + "\n".join(f"    {line}" for line in self.lines) + "\n    return\n  }\n}\n"

    def _name(self) -> str:
        return f"%v{next(self._names)}"

    def _made(self, line: str) -> str:
        name = self._name()
        self.lines.append(f"{name} = {line}")
        return name

    def _case(self, one: Case) -> None:
        values = iter(one.numbers)
        names, known = [], []
        for operand in one.operands:
            name, value = self._operand(operand, values)
            names.append(name)
            known.append(value)
        types = [_type(operand) for operand in one.operands]
        attributes = {"op": one.op, **dict(one.known)}
        operands = f"({', '.join(names)}){one.attributes} : ({', '.join(types)})"
        if one.op in QUERIES:
            wanted = size(known[0], attributes.get("mode", []), one.op == "cosize")  # type: ignore[arg-type]
            assert isinstance(wanted, int)
            self._number(self._made(f'"cute.{one.op}"{operands} -> i32'), wanted)
            return
        if one.op in ("equal", "tuple_eq"):
            bit = self._made(f'"cute.{one.op}"{operands} -> i1')
            self._number(self._made(f"arith.extui {bit} : i1 to i32"), int(known[0] == known[1]))
            return
        open_ = RULES[one.op]([parse_type(type_) for type_ in types], attributes)
        made = self._made(f'"cute.{one.op}"{operands} -> {_spelt(open_)}')
        self._result(made, open_, RULES[one.op](known, attributes), _begins(one.op, known))

    def _operand(self, operand: str, values: Iterator[int]) -> tuple[str, Operand]:
        """(its name, what it is when it runs)."""
        kind, _, text = operand.partition(" ")
        found = parse_type(_type(operand))
        if kind in ("memref", "layout") and "?" in text:
            layout = parse_layout(text)
            assert isinstance(layout, Layout)
            shape, extents = self._operand(f"shape {it.text(layout.shape)}", values)
            stride, steps = self._operand(f"stride {it.text(layout.stride)}", values)
            parts = (
                f'!cute.shape<"{it.text(layout.shape)}">, !cute.stride<"{it.text(layout.stride)}">'
            )
            name = self._made(
                f'"cute.make_layout"({shape}, {stride}) : ({parts}) -> !cute.layout<"{text}">'
            )
            known = Layout(extents.value, steps.value)  # type: ignore[union-attr]
            if kind == "layout":
                return name, Value("layout", known)
            return self._view(name, text), View("f32", "gmem", known)
        if kind == "memref":
            layouts = "composed_layout" if " o " in text else "layout"
            name = self._made(f'"cute.static"() : () -> !cute.{layouts}<"{text}">')
            return self._view(name, text), found
        if kind == "swizzle":
            return self._made(f'"cute.make_swizzle"() : () -> {_type(operand)}'), found
        if "?" not in text:
            return self._made(f'"cute.static"() : () -> {_type(operand)}'), found
        assert isinstance(found, Value)
        names, filled = [], []
        for leaf in it.flatten(found.value):
            filled.append(leaf)
            if isinstance(leaf, it.Dynamic):
                filled[-1] = next(values)
                names.append(self._given(filled[-1]))
        types = ", ".join(["i32"] * len(names))
        name = self._made(
            f'"cute.{_MAKERS[kind]}"({", ".join(names)}) : ({types}) -> {_type(operand)}'
        )
        return name, Value(kind, it.unflatten(filled, found.value))

    def _view(self, layout: str, text: str) -> str:
        kind = "composed_layout" if " o " in text else "layout"
        pointer = '!cute.ptr<f32, "gmem", 16 : i64>'
        return self._made(
            f'"cute.make_view"(%x, {layout}) : ({pointer}, !cute.{kind}<"{text}">) -> '
            f'!cute.memref<f32, "gmem", "{text}">'
        )

    def _given(self, number: int) -> str:
        at = len(self.given)
        self.given.append(number)
        place = self._made(f"llvm.getelementptr %given[{at}] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32")
        return self._made(f"llvm.load {place} : !llvm.ptr<1> -> i32")

    def _number(self, name: str, wanted: int) -> None:
        at = len(self.numbers)
        self.numbers.append(wanted)
        place = self._made(
            f"llvm.getelementptr %numbers[{at}] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32"
        )
        self.lines.append(f"llvm.store {name}, {place} : i32, !llvm.ptr<1>")

    def _result(self, name: str, open_: Operand, known: Operand, begins: int = 0) -> None:
        if isinstance(open_, View):
            assert isinstance(known, View)
            self._elements(name, open_, known, begins)
            return
        assert isinstance(open_, Value)
        assert isinstance(known, Value)
        if isinstance(open_.value, ComposedLayout):
            tensor = self._view(name, str(open_.value))
            wanted = View("f32", "gmem", known.value)
            self._elements(tensor, View("f32", "gmem", open_.value), wanted)
            return
        if isinstance(open_.value, Layout):
            coordinates = open_.value.has_basis
            if not coordinates:
                view = View("f32", "gmem", open_.value)
                tensor = self._view(name, str(open_.value))
                self._elements(tensor, view, View("f32", "gmem", known.value))
            for part in ("shape",) if coordinates else ("shape", "stride"):
                value = Value(part, getattr(open_.value, part))
                made = self._made(
                    f'"cute.get_{part}"({name}) : ({_spelt(open_)}) -> {_spelt(value)}'
                )
                self._result(made, value, Value(part, getattr(known.value, part)))
            return
        for path, number in _leaves(known.value):
            mode = f" {{mode = array<i32: {', '.join(map(str, path))}>}}" if path else ""
            self._number(
                self._made(f'"cute.size"({name}){mode} : ({_spelt(open_)}) -> i32'), number
            )

    def _elements(self, name: str, open_: View, known: View, begins: int = 0) -> None:
        """Reads all elements, where it is known now how many there are."""
        outer = open_.layout.outer if isinstance(open_.layout, ComposedLayout) else open_.layout
        if not it.is_static(outer.shape):
            return
        kind = f"vector<{outer.size}xf32>"
        vector = self._made(f'"cute.memref_load_vec"({name}) : ({_spelt(open_)}) -> {kind}')
        place = self._made(
            f"llvm.getelementptr %out[{len(self.elements)}] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32"
        )
        self.lines.append(
            f"llvm.store {vector}, {place} {{alignment = 4 : i64}} : {kind}, !llvm.ptr<1>"
        )
        self.elements += [begins + int(known.layout(at)) for at in range(outer.size)]  # type: ignore[call-overload]


def _begins(op: str, operands: Sequence[Operand]) -> int:
    """How far behind the beginning of its tensor a part begins."""
    if op not in ("slice", "local_tile"):
        return 0
    view, *rest = operands
    assert isinstance(view, View)
    assert isinstance(view.layout, Layout)
    values = [value.value for value in rest]  # type: ignore[union-attr]
    if op == "slice":
        return int(slice_layout(view.layout, values[0])[1])
    return int(tiling.local_tile(view.layout, *values)[1])


def _spelt(operand: Operand) -> str:
    if isinstance(operand, View):
        return f'!cute.memref<{operand.element}, "{operand.space}", "{operand.layout}">'
    assert isinstance(operand, Value)
    return f'!cute.{operand.kind}<"{operand.text}">'


def _leaves(
    value: it.IntTuple, path: tuple[int, ...] = ()
) -> Iterator[tuple[tuple[int, ...], int]]:
    if not it.is_tuple(value):
        yield path, value
        return
    for at, part in enumerate(value):
        yield from _leaves(part, (*path, at))


_OPEN = "memref (?{div=8},16):(16,1)"
CASES = [
    # On numbers of run time.
    case("logical_divide", "layout (?{div=8},16):(16,1)", "tile <8:1,4:1>", numbers=[24]),
    case("zipped_divide", _OPEN, "tile <8:1,4:1>", numbers=[24]),
    case("tiled_divide", "layout (?{div=8},16):(?,1)", "tile <8:1,4:1>", numbers=[24, 20]),
    case("flat_divide", "layout (?{div=8},16):(?,1)", "tile <8:1,4:1>", numbers=[24, 20]),
    case("coalesce", "layout (?,(4,8)):(?,(1,4))", numbers=[5, 33]),
    case("group_modes", "layout (?,4,8):(?,1,4)", numbers=[5, 33], begin=0, end=2),
    case("select", "layout (?,4,8):(?,1,4)", numbers=[5, 33], modes=[2, 0]),
    case("filter_zeros", "layout (?,4):(?,0)", numbers=[3, 7]),
    case("composition", "layout (16,?):(?,1)", "layout (4,2):(1,8)", numbers=[9, 17]),
    case("make_layout", "shape (?,3,?)", numbers=[5, 7]),
    case("make_layout_raw", "shape (4,?)", "stride (?,2)", numbers=[5, 7]),
    case("make_ordered_layout", "shape (4,?,2)", "int_tuple (2,1,0)", numbers=[5]),
    case("get_shape", "layout (?,8):(8,1)", numbers=[6]),
    case("get_stride", "layout (4,8):(?,1)", numbers=[6]),
    case("get_layout", "memref (4,8):(?,1)", numbers=[9]),
    case("crd2idx", "coord (?,?)", "layout (4,8):(?,1)", numbers=[2, 3, 9]),
    case("tuple_add", "shape (?,4)", "shape (3,?)", numbers=[5, 6]),
    case("tuple_sub", "shape (?,4)", "shape (3,?)", numbers=[5, 2]),
    case("tuple_mul", "shape (?,4)", "shape (3,?)", numbers=[5, 2]),
    case("tuple_div", "shape (?,40)", "shape (3,?)", numbers=[17, 7]),
    case("tuple_mod", "shape (?,40)", "shape (3,?)", numbers=[17, 7]),
    case("shape_div", "shape (?{div=8},4)", "shape (4,2)", numbers=[24]),
    case("ceil_div", "shape (?,40)", "shape (8,16)", numbers=[17]),
    case("ceil_div", "shape (40,9)", "shape (?,2)", numbers=[7]),
    case("to_int_tuple", "coord (?,4)", numbers=[17]),
    case("slice", "memref (4,8):(?,1)", "coord (_,?)", numbers=[9, 5]),
    case("slice", "memref (4,(2,8)):(16,(1,2))", "coord (?,_)", numbers=[3]),
    case("slice", "memref (4,(2,8)):(16,(1,2))", "coord (_,?)", numbers=[11]),
    case("dice", "memref (4,8):(?,1)", "coord (_,2)", numbers=[9]),
    case("local_tile", "memref (?,?):(?,1)", "tile <4:1,8:1>", "coord (?,?)",
         numbers=[12, 24, 24, 2, 1]),
    case("size", "layout (?,(4,?)):(1,(2,3))", numbers=[3, 5]),
    case("size", "layout (?,(4,?)):(1,(2,3))", numbers=[3, 5], mode=[1, 1]),
    case("equal", "layout (?,4):(4,?)", "layout (6,?):(4,1)", numbers=[6, 1, 4]),
    case("equal", "layout (?,4):(4,?)", "layout (6,?):(4,1)", numbers=[6, 1, 5]),
    case("tuple_eq", "shape (?,4)", "shape (3,?)", numbers=[3, 4]),
    case("tuple_eq", "shape (?,4)", "shape (3,?)", numbers=[2, 4]),
    case("tuple_add", "int_tuple (?,(4,?))", "int_tuple (3,(1,2))", numbers=[5, 6]),
    # What types say all of.
    case("make_composed_layout_raw", "layout (4,8):(8,1)", "swizzle S<2,0,3>", "int_tuple 4"),
    case("make_composed_layout", "swizzle S<2,0,3>", "int_tuple 2", "layout (4,8):(8,1)"),
    case("make_identity_layout", "shape (4,8)"),
    case("complement", "layout (2,4):(1,6)", cotarget=24),
    case("right_inverse", "layout (4,8):(8,1)"),
    case("left_inverse", "layout (4,8):(1,8)"),
    case("recast_layout", "layout (4,8):(8,1)", old_bits=16, new_bits=32),
    case("logical_product", "layout (2,2):(4,1)", "layout 6:1"),
    case("zipped_product", "layout (2,2):(4,1)", "layout 6:1"),
    case("tiled_product", "layout (2,2):(4,1)", "layout 6:1"),
    case("flat_product", "layout (2,2):(4,1)", "layout 6:1"),
    case("blocked_product", "layout (2,5):(5,1)", "layout (3,4):(1,3)"),
    case("raked_product", "layout (2,5):(5,1)", "layout (3,4):(1,3)"),
    case("tile_to_shape", "layout (2,4):(4,1)", "shape (4,8)"),
    case("stencil_divide", "layout 16:2", window=3),
    case("filter", "layout (4,3):(2,0)"),
    case("cosize", "layout (4,8):(1,5)"),
    case("tiled_divide", "memref S<2,0,3> o 0 o (8,16):(16,1)", "tile <4:1,8:1>"),
]  # fmt: skip
