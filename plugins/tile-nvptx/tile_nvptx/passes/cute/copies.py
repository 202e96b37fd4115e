"""Tiled copies: the parts of threads, and copies of tensors by one instruction after the other."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod

from tile_cute import int_tuple as it
from tile_cute.atoms import CopyAtom
from tile_cute.atoms.tiled_copy import TiledCopy, copy_atom_for, copy_layouts, tiled_copy
from tile_cute.dialect.base import attributes_of
from tile_cute.dialect.view_signatures import COPY_PARTS
from tile_cute.errors import LayoutError
from tile_cute.values import View

from tile_core.convert import Replacement
from tile_core.mlir import ir
from tile_nvptx.passes.cute.atoms import copy_box, copy_tensor_memory, is_tensor_memory, is_tma
from tile_nvptx.passes.cute.matrices import matrices_of
from tile_nvptx.passes.cute.products import mma_partition, store_elements
from tile_nvptx.passes.cute.tensors import (
    Cute,
    address,
    base_of,
    cut,
    element_bits,
    index_of,
    made,
    outer_of,
    rules,
    sized_tensor,
    static_tensor,
    swizzle_of,
    tensor_of,
    with_layout,
)
from tile_nvptx.passes.tileas.device import asynchronous, memory

_TILED = re.compile(r'!cute\.tiled_copy<"([^"]*)", "([^"]*)", "([^"]*)">')
_ATOM = re.compile(r'!cute_nvgpu\.atom<"([^"]*)">')
_SPACES = {"global": "gmem", "shared": "smem", "registers": "rmem"}
#: Bytes that `prefetch` brings into L2.
_LINE = 128
_MOST = 2**31


def _tiled(op: ir.OpView, cx: Cute, bits: int) -> TiledCopy:
    match = _TILED.fullmatch(str(cx.before(op.operands[0])))
    if match is None:
        raise cx.error("expects a tiled_copy of an instruction, a layout and a tile")
    try:
        return tiled_copy(match[1], match[2], match[3], bits)
    except LayoutError as error:
        raise cx.error(str(error)) from error


@rules.on("cute.tiled_copy_partition_s", "cute.tiled_copy_partition_d")
def copy_partition(op: ir.OpView, cx: Cute) -> Replacement:
    """tiled_copy_partition(copy, t, i) => the address where the part of thread i begins"""
    return part_of_copy(op, cx, "source" if op.operation.name.endswith("_s") else "target")


def part_of_copy(op: ir.OpView, cx: Cute, side: str) -> ir.Value:
    """A thread's part of the "source" or the "target" of a tiled copy."""
    view = tensor_of(cx, op.operands[1])
    bits = element_bits(view, cx)
    try:
        threads, own = _tiled(op, cx, bits).part(outer_of(view), side, bits)
    except LayoutError as error:
        raise cx.error(str(error)) from error
    offset = threads(index_of(cx, op.operands[2]))
    base = cut(cx, base_of(cx, op.operands[1]), view, offset)
    return made(cx, with_layout(view, own), op.results[0].type, base)


@rules.on("cute.tiled_partition")
def tiled_partition(op: ir.OpView, cx: Cute) -> Replacement:
    """tiled_partition(t, v, i) {operand} => the part that a copy or a product of that role has"""
    role = attributes_of(op).get("operand", "")
    if role in COPY_PARTS:
        return part_of_copy(op, cx, "source" if role == "S" else "target")
    return mma_partition(op, cx)


@rules.on("cute.tiled_copy_retile")
def retile(op: ir.OpView, cx: Cute) -> Replacement:
    """tiled_copy_retile(copy, t) => the same registers, in the order that the copy has them"""
    view = static_tensor(cx, op.operands[1])
    bits = element_bits(view, cx)
    try:
        layout = _tiled(op, cx, bits).retiled(outer_of(view), bits)
    except LayoutError as error:
        raise cx.error(str(error)) from error
    found = View(view.element, view.space, layout)
    return made(cx, found, op.results[0].type, base_of(cx, op.operands[1]))


# --- copies --------------------------------------------------------------------------------------


@dataclass
class Side:
    """One side of a copy: a tensor (V, rest, ...) and how many elements an instruction takes."""

    cx: Cute
    base: ir.Value
    view: View
    count: int

    @property
    def runs(self) -> int:
        """Instructions that take the first mode."""
        return outer_of(self.view)[0].size // self.count

    @property
    def rests(self) -> tuple[int, ...]:
        """How often that is repeated, by mode."""
        return tuple(mode.size for mode in list(outer_of(self.view))[1:])

    def places(self, run: int, rest: tuple[int, ...]) -> list[ir.Value]:
        """The address of each element of one instruction."""
        first = self._first(rest)
        return [self._address(it.add(first, own)) for own in self._own(run)]

    def start(self, run: int, rest: tuple[int, ...]) -> ir.Value:
        """The address of the first one, behind which the others lie in a row.

        Raises:
            CompileError: they do not.
        """
        first, own = self._first(rest), self._own(run)
        swizzle, offset = swizzle_of(self.view)
        rows = [1 << swizzle.base] if swizzle is not None else []
        in_a_row = own == list(range(own[0], own[0] + self.count))
        known = [n.divby if isinstance(n, it.Dynamic) else n for n in (first, own[0], offset)]
        if not in_a_row or any(n % self.count for n in (*known, *rows)):
            raise self.cx.error(
                f"cannot vectorize copy to {self.count} elements (static strides must be 1) of "
                f"{self.view}"
            )
        return self._address(it.add(first, own[0]))

    def _address(self, index: it.IntTuple) -> ir.Value:
        return address(self.cx, self.base, self.view, index)

    def _first(self, rest: tuple[int, ...]) -> it.IntTuple:
        modes = list(outer_of(self.view))[1:]
        return reduce(it.add, (mode(at) for mode, at in zip(modes, rest, strict=True)), 0)

    def _own(self, run: int) -> list[int]:
        mode = outer_of(self.view)[0]
        if not mode.is_static:
            raise self.cx.error(f"expects the first mode to be static, but got {self.view}")
        return [int(mode(at)) for at in range(run * self.count, (run + 1) * self.count)]  # type: ignore[call-overload]


@rules.on("cute.copy", "cute.copy_atom_call")
def copy(op: ir.OpView, cx: Cute) -> Replacement:
    """copy(atom, s, d) => the instruction for all of the first mode, and all coordinates of the
    others; with a predicate, a tensor of i1 by the others, where that says so
    """
    named = cx.before(op.operands[0])
    for concerns, way in ((is_tma, copy_box), (is_tensor_memory, copy_tensor_memory)):
        if concerns(named):
            way(op, cx)
            return None
    _copy_elements(op, cx)
    return None


def _copy_elements(op: ir.OpView, cx: Cute) -> None:
    """A copy of which each thread moves elements of its own, or a warp matrices."""
    views = [sized_tensor(cx, value) for value in op.operands[1:3]]
    atom = _atom(op, cx, views)
    bits = element_bits(views[0], cx)
    if element_bits(views[1], cx) != bits:
        raise cx.error(f"copies elements of one size, but got {views[0]} and {views[1]}")
    try:
        layouts = copy_layouts(atom, bits)
    except LayoutError as error:
        raise cx.error(str(error)) from error
    if not atom.supported_on(cx.target.chip):
        raise cx.error(f"is '{atom.instruction}', which {cx.target.chip} does not have")
    sides = []
    for value, view, name in zip(op.operands[1:3], views, ("source", "target"), strict=True):
        wanted = _SPACES.get(atom.source if name == "source" else atom.target)
        if view.space != wanted:
            raise cx.error(f"copies by '{atom.instruction}' with the {name} in {wanted}: {view}")
        count = layouts.of(atom, name)[1].size
        if outer_of(view)[0].size % count:
            raise cx.error(f"takes {count} elements at a time of the first mode of {view}")
        sides.append(Side(cx, base_of(cx, value), view, count))
    source, target = sides
    if (source.runs, source.rests) != (target.runs, target.rests):
        raise cx.error(f"expects equally many instructions, but got {views[0]} and {views[1]}")
    if op.operation.name.endswith("copy_atom_call") and source.runs * prod(source.rests) != 1:
        raise cx.error("is one instruction: use cute.copy for more")
    move = _MOVES[atom.family]
    predicate = op.operands[3] if len(op.operands) > 3 else None
    for rest in product(*(range(extent) for extent in reversed(source.rests))):
        place = tuple(reversed(rest))
        with _guarded(cx, predicate, place):
            for run in range(source.runs):
                move(cx, atom, source, target, run, place)


def _atom(op: ir.OpView, cx: Cute, views: list[View]) -> CopyAtom:
    """The instruction that the first operand names, of the size that the first mode allows."""
    named = str(cx.before(op.operands[0]))
    tiled, single = _TILED.fullmatch(named), _ATOM.fullmatch(named)
    if tiled is not None:
        return _tiled(op, cx, element_bits(views[0], cx)).atom
    if single is None:
        raise cx.error(f"expects a tiled_copy or the atom of an instruction, but got {named}")
    bits = element_bits(views[0], cx) * outer_of(views[0])[0].size
    try:
        return copy_atom_for(single[1], bits)
    except LayoutError as error:
        raise cx.error(str(error)) from error


@contextmanager
def _guarded(cx: Cute, predicate: ir.Value | None, rest: tuple[int, ...]) -> Iterator[None]:
    """What is made inside happens where the predicate is true."""
    if predicate is None:
        yield
        return
    view = static_tensor(cx, predicate)
    layout = outer_of(view)
    if view.element != "i1" or len(layout) != len(rest):
        raise cx.error(f"expects a predicate of i1 by the {len(rest)} modes behind the first one")
    index = sum(mode(at) for mode, at in zip(layout, rest, strict=True))  # type: ignore[misc]
    place = address(cx, base_of(cx, predicate), view, index)
    condition = cx.create("llvm.load", [place], [ir.IntegerType.get_signless(1)]).result
    branch = cx.create("scf.if", [condition], regions=2)
    body = branch.regions[0].blocks.append()
    with cx.at(ir.InsertionPoint(body)):
        yield
        cx.create("scf.yield")


Move = Callable[[Cute, CopyAtom, Side, Side, int, tuple[int, ...]], None]


def _vector(cx: Cute, atom: CopyAtom, source: Side, target: Side, run: int, rest: tuple[int, ...]
            ) -> None:  # fmt: skip
    """A vector between memory and registers."""
    element = ir.Type.parse(source.view.element)
    aligned = {"alignment": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), atom.alignment)}
    kind = ir.VectorType.get([source.count], element)
    if source.view.space == "rmem":
        items = [cx.create("llvm.load", [place], [element]).result
                 for place in source.places(run, rest)]  # fmt: skip
        value = cx.create("vector.from_elements", items, [kind]).result
        cx.create("llvm.store", [value, target.start(run, rest)], [], aligned)
        return
    value = cx.create("llvm.load", [source.start(run, rest)], [kind], aligned).result
    store_elements(cx, value, target.places(run, rest))


def _asynchronous(cx: Cute, atom: CopyAtom, source: Side, target: Side, run: int,
                  rest: tuple[int, ...]) -> None:  # fmt: skip
    """`cp.async`, which a group of the thread completes."""
    cache = "cg" if ".cg." in atom.instruction else "ca"
    routine = asynchronous.copy_to_shared(atom.bits // 8, partial=False, cache=cache)
    places = [target.start(run, rest), source.start(run, rest)]
    cx.state.helpers.call(cx, *routine, places, None)


def _load_matrices(cx: Cute, atom: CopyAtom, source: Side, target: Side, run: int,
                   rest: tuple[int, ...]) -> None:  # fmt: skip
    """`ldmatrix`: all lanes of a warp."""
    count, transposed = matrices_of(atom.instruction, cx)
    words = ir.VectorType.get([count], ir.IntegerType.get_signless(32))
    routine = memory.load_matrices(count, transposed=transposed)
    value = cx.state.helpers.call(cx, *routine, [source.start(run, rest)], words).result
    kind = ir.VectorType.get([target.count], ir.Type.parse(target.view.element))
    value = cx.create("llvm.bitcast", [value], [kind]).result if kind != words else value
    store_elements(cx, value, target.places(run, rest))


def _store_matrices(cx: Cute, atom: CopyAtom, source: Side, target: Side, run: int,
                    rest: tuple[int, ...]) -> None:  # fmt: skip
    """`stmatrix`: all lanes of a warp."""
    count, transposed = matrices_of(atom.instruction, cx)
    element = ir.Type.parse(source.view.element)
    items = [cx.create("llvm.load", [place], [element]).result
             for place in source.places(run, rest)]  # fmt: skip
    kind = ir.VectorType.get([source.count], element)
    value = cx.create("vector.from_elements", items, [kind]).result
    words = ir.VectorType.get([count], ir.IntegerType.get_signless(32))
    value = cx.create("llvm.bitcast", [value], [words]).result if kind != words else value
    routine = memory.store_matrices(count, transposed=transposed)
    cx.state.helpers.call(cx, *routine, [target.start(run, rest), value], None)


_MOVES: dict[str, Move] = {
    "vector": _vector,
    "cp.async": _asynchronous,
    "ldmatrix": _load_matrices,
    "stmatrix": _store_matrices,
}


# --- announcements -------------------------------------------------------------------------------


@rules.on("cute.prefetch", "cute.prefetch_atom_call")
def prefetch(op: ir.OpView, cx: Cute) -> Replacement:
    """prefetch(atom, t) => prefetch.global.L2 of each 128 bytes that the tensor touches"""
    view = static_tensor(cx, op.operands[1])
    if view.space != "gmem" or swizzle_of(view)[0] is not None:
        raise cx.error(f"announces tensors of global memory, but got {view}")
    step, last = _LINE * 8 // element_bits(view, cx), -_MOST
    routine = asynchronous.routine("prefetch_global", ["!llvm.ptr<1>"], "prefetch.global.L2 [$0];")
    for index in sorted({int(index) for index in outer_of(view).indices()}):  # type: ignore[arg-type]
        if index >= last + step:
            last = index
            place = address(cx, base_of(cx, op.operands[1]), view, index)
            cx.state.helpers.call(cx, *routine, [place], None)
    return None
