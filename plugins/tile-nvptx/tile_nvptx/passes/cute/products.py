"""Tiled products: the parts of threads, and products of their fragments."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product

from tile_cute import int_tuple as it
from tile_cute.atoms import MmaAtom
from tile_cute.atoms.tiled_mma import partition_of
from tile_cute.dialect.base import attributes_of
from tile_cute.dialect.nvgpu_ops import mma_atom
from tile_cute.errors import LayoutError
from tile_cute.layout import Layout
from tile_cute.values import Value

from tile_core.convert import Replacement
from tile_core.mlir import ir
from tile_nvptx.passes.cute.instructions import warp_product
from tile_nvptx.passes.cute.numbers import Number, unknown
from tile_nvptx.passes.cute.tensors import (
    Cute,
    address,
    base_of,
    cut,
    index_of,
    made,
    outer_of,
    rules,
    sized_tensor,
    static_tensor,
    value_of,
    values_of,
    with_layout,
)
from tile_nvptx.passes.tileas.device.mma import Scales

_TILED = re.compile(r'!cute\.tiled_mma<"([^"]*)", "([^"]*)"')
_ATOM = re.compile(r'!cute_nvgpu\.atom<"([^"]*)">')
#: Families whose operands are registers of a warp.
_WARP = ("mma.sync", "mma.block_scale")


@rules.on("cute.tiled_mma_partition")
def mma_partition(op: ir.OpView, cx: Cute) -> Replacement:
    """tiled_mma_partition(mma, t, i) {operand} => the address where thread i's fragments begin

    The tensor is (M, K), (N, K) or (M, N); the result ((values), rest, rest).
    """
    source, thread = op.operands[1], op.operands[2]
    view = sized_tensor(cx, source)
    mma = _TILED.match(str(cx.before(op.operands[0])))
    if mma is None:
        raise cx.error("expects a tiled_mma of an instruction and a layout of warps")
    operand = attributes_of(op).get("operand", "")
    try:
        part = partition_of(mma[1], mma[2], operand, outer_of(view))
    except LayoutError as error:
        raise cx.error(str(error)) from error
    index = index_of(cx, thread)
    threads = 1 << len(part.lane)
    offset: it.IntTuple = 0
    for bit, weight in enumerate(part.lane):
        offset = it.add(offset, _digit(index, 1 << bit, 2) * weight)
    for step, extent, stride in part.warps:
        if extent > 1:
            offset = it.add(offset, _digit(index, threads * step, extent) * stride)
    base = cut(cx, base_of(cx, source), view, offset)
    return made(cx, with_layout(view, part.layout), op.results[0].type, base)


def _digit(number: Number, step: int, extent: int) -> it.Extent:
    return it.divided(it.divided(number, step)[0], extent)[1]


@rules.on("cute.tiled_mma_partition_shape")
def mma_partition_shape(op: ir.OpView, cx: Cute) -> Replacement:
    """tiled_mma_partition_shape(mma, s) {operand} => nothing: the type says it, and is checked"""
    mma = _TILED.match(str(cx.before(op.operands[0])))
    shape = value_of(cx, op.operands[1])
    if mma is None or not isinstance(shape, Value) or unknown(shape):
        raise cx.error("expects a tiled_mma of an instruction, and a static shape")
    operand = attributes_of(op).get("operand", "")
    try:
        part = partition_of(mma[1], mma[2], operand, Layout(shape.value))
    except LayoutError as error:
        raise cx.error(str(error)) from error
    return made(cx, Value("shape", part.layout.shape), op.results[0].type)


# --- products of fragments -----------------------------------------------------------------------


@rules.on("cute.mma_atom_call", "cute.gemm")
def multiply(op: ir.OpView, cx: Cute) -> Replacement:
    """gemm(mma, d, a, b, c) => the instruction for each (m, n, k) of fragments in registers: a (V,
    M, K), b (V, N, K), c and d (V, M, N)

    A call of an atom is a product of one instruction.
    """
    named = str(cx.before(op.operands[0]))
    found = _TILED.match(named) or _ATOM.fullmatch(named)
    if found is None:
        raise cx.error(f"expects a tiled_mma or the atom of an instruction, but got {named}")
    try:
        atom = mma_atom(found[1])
    except LayoutError as error:
        raise cx.error(str(error)) from error
    if not atom.row.supported_on(cx.target.chip):
        raise cx.error(f"is '{atom.instruction}', which {cx.target.chip} does not have")
    if atom.family not in _WARP:
        raise cx.error(f"multiplies registers of a warp, which '{atom.instruction}' does not")
    d, a, b, c = (_Fragments(cx, value) for value in op.operands[1:])
    if atom.a_layout is None or atom.b_layout is None:
        raise cx.error(f"cannot be lowered for '{atom.instruction}'")
    a.check(atom.a_layout.elements_per_thread, "A")
    b.check(atom.b_layout.elements_per_thread, "B")
    c.check(atom.m * atom.n // 32, "C")
    d.check(atom.m * atom.n // 32, "D")
    ms, ns, ks = c.counts[0], c.counts[1], a.counts[1]
    if (a.counts[0], b.counts, d.counts) != (ms, (ns, ks), c.counts):
        raise cx.error(f"expects fragments of one product, but got {a.view}, {b.view}, {c.view}")
    if op.operation.name.endswith("mma_atom_call") and (ms, ns, ks) != (1, 1, 1):
        raise cx.error("is one instruction: use cute.gemm for more")
    step = _one_product(op, cx, atom)
    for m, n in product(range(ms), range(ns)):
        total = c.load(m, n)
        for k in range(ks):
            total = step([a.load(m, k), b.load(n, k), total])
        d.store(m, n, total)
    return None


def _one_product(op: ir.OpView, cx: Cute, atom: MmaAtom) -> Callable[[list[ir.Value]], ir.Value]:
    """From fragments to their product; scales are those that the atom holds."""
    if atom.row.scale is None:
        return lambda parts: warp_product(cx, atom, parts)
    bound = values_of(cx, op.operands[0]) if _ATOM.fullmatch(str(cx.before(op.operands[0]))) else {}
    if not bound:
        raise cx.error("needs scales, which a tiled_mma does not hold: multiply by an atom")
    scales = Scales(0, 0)
    return lambda parts: warp_product(cx, atom, [*parts, *bound.values()], scales=scales)


class _Fragments:
    """Fragments (V, rest, rest) in registers."""

    def __init__(self, cx: Cute, value: ir.Value) -> None:
        self.cx = cx
        self.view = static_tensor(cx, value)
        self.base = base_of(cx, value)
        if self.view.space != "rmem":
            raise cx.error(f"expects fragments in registers, but got {self.view}")
        layout = outer_of(self.view)
        self.modes = list(layout)
        # A fragment of one instruction has no further modes.
        self.modes += [Layout(1, 0)] * (3 - len(self.modes))
        self.counts = tuple(mode.size for mode in self.modes[1:])

    def check(self, count: int, name: str) -> None:
        """An error unless a fragment has so many elements."""
        if len(self.modes) != 3 or self.modes[0].size != count:
            raise self.cx.error(
                f"expects {name} of {count} elements by two modes, but got {self.view}"
            )

    def _places(self, row: int, column: int) -> list[ir.Value]:
        first = self.modes[1](row) + self.modes[2](column)
        return [
            address(self.cx, self.base, self.view, first + self.modes[0](at))
            for at in range(self.modes[0].size)
        ]

    def load(self, row: int, column: int) -> ir.Value:
        """A fragment as a vector."""
        element = ir.Type.parse(self.view.element)
        places = self._places(row, column)
        items = [self.cx.create("llvm.load", [place], [element]).result for place in places]
        kind = ir.VectorType.get([len(items)], element)
        return self.cx.create("vector.from_elements", items, [kind]).result

    def store(self, row: int, column: int, value: ir.Value) -> None:
        """Write a fragment."""
        store_elements(self.cx, value, self._places(row, column))


def store_elements(cx: Cute, value: ir.Value, places: list[ir.Value]) -> None:
    """Write the elements of a vector, each to its place."""
    element = ir.VectorType(value.type).element_type
    for at, place in enumerate(places):
        position = {"static_position": ir.DenseI64ArrayAttr.get([at])}
        item = cx.create("vector.extract", [value], [element], position).result
        cx.create("llvm.store", [item, place])
