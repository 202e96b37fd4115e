"""Globals and printing: what reaches the host beside a kernel's results.

Prints end in `vprintf`, a CUDA system call (PTX interoperability, "System Calls"). One thread
prints; the elements of tiles reach it in buffers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from tile_tileas.dialect import layout_of
from tile_tileas.dialect.buffers import Buffer

from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_nvptx.passes.tileas.device.printing import print_values
from tile_nvptx.passes.tileas.rules.buffers import is_buffer
from tile_nvptx.passes.tileas.rules.casts import as_f64
from tile_nvptx.passes.tileas.rules.shape import held, numbers
from tile_nvptx.passes.tileas.ruleset import rules, text
from tile_nvptx.passes.tileas.thread.build import Builder, token
from tile_nvptx.passes.tileas.thread.state import Kernel
from tile_nvptx.passes.tileas.thread.types import element_of, storage_type, vector_of

#: C's printf on the device takes no more arguments in one call.
_ARGUMENTS = 32
#: Elements of a tile up to which each is printed by code of its own, many in one call; those of
#: larger tiles are printed one by one, in loops.
_ELEMENTS = 1024
_CONVERSION = re.compile(r"%([^diuoxXeEfFgGaAcsSpn%]*)([diuoxXeEfFgGaAcsSpn%])")
_LENGTHS = re.compile(r"[hlLqjzt]+")


def define_global(op: ir.Operation) -> None:
    """nv_tileaa.global => llvm.mlir.global in global memory"""
    value = ir.DenseElementsAttr(op.attributes["value"])
    shape = value.type.shape
    stored = storage_type(value.type.element_type)
    type_ = ir.RankedTensorType.get(shape, stored)
    if value.is_splat:
        number = held(value.get_splat_value())
        if number.type != stored:  # i1 is a byte
            number = ir.IntegerAttr.get(stored, int(bool(ir.IntegerAttr(number).value)))
        data = ir.DenseElementsAttr.get_splat(type_, number)
    else:
        data = ir.DenseElementsAttr.get(numbers(op.attributes["value"], stored), type_)
    public = ir.StringAttr(op.attributes["symbol_visibility"]).value == "public"
    alignment = ir.IntegerAttr(op.attributes["alignment"]).value or max(1, stored.width // 8)
    i32, i64 = (ir.IntegerType.get_signless(width) for width in (32, 64))
    array = ir.Type.parse(f"!llvm.array<{prod(shape)} x {stored}>")
    ir.Operation.create(
        "llvm.mlir.global",
        attributes={
            "sym_name": op.attributes["sym_name"],
            "value": data,
            "global_type": ir.TypeAttr.get(array),
            "linkage": ir.Attribute.parse(f"#llvm.linkage<{'external' if public else 'internal'}>"),
            "addr_space": ir.IntegerAttr.get(i32, 1),
            "alignment": ir.IntegerAttr.get(i64, alignment),
        },
        regions=1,
        loc=op.location,
        ip=ir.InsertionPoint(op),
    )
    op.erase()


@rules.on("nv_tileaa.get_global")
def get_global(op: ir.OpView, cx: Kernel) -> ir.Value:
    """get_global => llvm.mlir.addressof"""
    symbol = {"global_name": op.attributes["symbol"]}
    type_ = cx.type(op.results[0].type)
    return cx.create("llvm.mlir.addressof", [], [type_], symbol).result


@dataclass(frozen=True)
class _Piece:
    """A stretch of the format and the value that it shows, if any: element `at` of a tile, or the
    whole of a tile of `shape`.
    """

    format: str
    operand: int | None = None
    at: int = 0
    shape: tuple[int, ...] = ()


@rules.on("nv_tileaa.print")
def print_(op: ir.OpView, cx: Kernel) -> list[ir.Value]:
    """print => vprintf by one thread, in as many calls as its arguments need"""
    return _Print(op, cx).run()


class _Print:
    def __init__(self, op: ir.OpView, cx: Kernel) -> None:
        self.op, self.cx, self.b = op, cx, Builder(cx)
        types = [cx.before(operand) for operand in op.operands]
        if any(layout_of(type_) for type_ in types):
            raise error_at(op, "prints registers; run 'tileas-materialize-convert-layout' before")
        self.shapes = [tuple(b.shape) if (b := Buffer.of(t)) else () for t in types]
        types = [b.tile if (b := Buffer.of(t)) else t for t in types]
        self.kinds = [element_of(type_) for type_ in types if type_ != op.results[0].type]

    def run(self) -> list[ir.Value]:
        pieces = list(self._pieces())
        first = self.b.compare(0, self.cx.state.thread_index(self.cx), self.b.constant(0))
        branch = self.cx.create("scf.if", [first], regions=2)
        with self.cx.at(ir.InsertionPoint(branch.regions[0].blocks.append())):
            self._calls(pieces)
            self.cx.create("scf.yield")
        return [token(self.cx)]

    def _pieces(self) -> Iterator[_Piece]:
        """The format cut at its conversions, those of tiles written out as nested lists."""
        form, end, operand = text(self.op, "format"), 0, 0
        for match in _CONVERSION.finditer(form):
            if match[2] == "%":
                continue
            yield _Piece(form[end : match.start()])
            end = match.end()
            if operand >= len(self.kinds):
                raise error_at(self.op, "has more conversions than operands")
            conversion = self._conversion(operand, _LENGTHS.sub("", match[1]), match[2])
            shape = self.shapes[operand]
            if prod(shape) > _ELEMENTS:
                yield _Piece(conversion, operand, shape=shape)
            else:
                yield from _nested(conversion, operand, shape, 0)
            operand += 1
        yield _Piece(form[end:])

    def _conversion(self, operand: int, flags: str, letter: str) -> str:
        kind = self.kinds[operand]
        if isinstance(kind, ir.FloatType):
            return f"%{flags}{letter if letter in 'eEfFgG' else 'f'}"
        if not isinstance(kind, ir.IntegerType):
            return "0x%llx"
        long = "ll" if kind.width == 64 else ""
        return f"%{flags}{long}{letter if letter in 'uoxX' else 'd'}"

    def _calls(self, pieces: list[_Piece]) -> None:
        form, values = "", []
        for piece in pieces:
            if piece.operand is not None and (piece.shape or len(values) == _ARGUMENTS):
                self._call(form, values)
                form, values = "", []
            if piece.shape:
                self._loop(piece, self.b.constant(0), 0)
                continue
            form += piece.format
            if piece.operand is not None:
                values.append(self._value(piece, piece.at))
        self._call(form, values)

    def _loop(self, piece: _Piece, start: ir.Value, axis: int) -> None:
        """The elements of a tile along `axis` and those behind it, from row-major index `start`."""
        b, cx = self.b, self.cx
        inner = prod(piece.shape[axis + 1 :])
        self._call("[", [])
        bounds = [b.constant(n) for n in (0, piece.shape[axis], 1)]
        loop = cx.create("scf.for", bounds, regions=1)
        block = loop.regions[0].blocks.append(b.i32)
        with cx.at(ir.InsertionPoint(block)):
            number = block.arguments[0]
            is_first = b.compare(0, number, b.constant(0))
            here = b.binary("addi", start, b.with_constant("muli", number, inner))
            if axis == len(piece.shape) - 1:
                forms = [cx.state.helpers.text(cx, f + piece.format) for f in ("", ", ")]
                form = cx.create("arith.select", [is_first, *forms], [forms[0].type]).result
                self._print(form, [self._value(piece, here)])
            else:
                branch = cx.create("scf.if", [is_first], regions=2)
                with cx.at(ir.InsertionPoint(branch.regions[0].blocks.append())):
                    cx.create("scf.yield")
                with cx.at(ir.InsertionPoint(branch.regions[1].blocks.append())):
                    self._call(", ", [])
                    cx.create("scf.yield")
                self._loop(piece, here, axis + 1)
            cx.create("scf.yield")
        self._call("]", [])

    def _call(self, form: str, values: list[ir.Value]) -> None:
        if form:
            self._print(self.cx.state.helpers.text(self.cx, form), values)

    def _print(self, form: ir.Value, values: list[ir.Value]) -> None:
        name, body = print_values(tuple(str(value.type) for value in values))
        self.cx.state.helpers.call(self.cx, name, body, [form, *values], None)

    def _value(self, piece: _Piece, at: int | ir.Value) -> ir.Value:
        """Element `at` of the operand as C passes it: i32, i64 or f64."""
        assert piece.operand is not None
        b, cx, kind = self.b, self.cx, self.kinds[piece.operand]
        value = self._element(piece.operand, at)
        if isinstance(kind, ir.FloatType):
            return b.extract(as_f64(self.op, cx, b.splat(value, 1), kind), 0)
        if not isinstance(kind, ir.IntegerType):
            pointer = not isinstance(value.type, ir.IntegerType)
            return cx.create("llvm.ptrtoint", [value], [b.i64]).result if pointer else value
        signed = piece.format[-1] in "di" and kind.width > 1  # true is 1
        if signed and kind.width == 4:  # the low half of a byte
            value = b.with_constant("shrsi", b.with_constant("shli", value, 4), 4)
        return b.widen(value, b.i64 if kind.width == 64 else b.i32, signed=signed)

    def _element(self, operand: int, at: int | ir.Value) -> ir.Value:
        value = self.op.operands[operand]
        if not is_buffer(self.cx, value):
            return value
        element = self.cx.type(self.kinds[operand])
        stored = storage_type(element)
        place = self.b.offset(value, at, stored)
        loaded = self.b.load(place, vector_of(1, stored), max(1, stored.width // 8))
        return self.b.extract(self.b.from_storage(loaded, element), 0)


def _nested(conversion: str, operand: int, shape: tuple[int, ...], at: int) -> Iterator[_Piece]:
    if not shape:
        yield _Piece(conversion, operand, at)
        return
    inner = prod(shape[1:])
    for index in range(shape[0]):
        yield _Piece(", " if index else "[")
        yield from _nested(conversion, operand, shape[1:], at + index * inner)
    yield _Piece("]")
