"""Stripes: thread t of T owns elements t, t + T, ... of a tile in global memory."""

from __future__ import annotations

from collections.abc import Callable

from tile_cute.cutlass.dialect.around import integer, word
from tile_cute.cutlass.dialect.checks.barriers import ATOMICS
from tile_cute.dialect.base import operand_of
from tile_cute.layout import Layout
from tile_cute.values import View

from tile_core.convert import Replacement
from tile_core.mlir import ir
from tile_nvptx.passes.cute.offsets import Offsets
from tile_nvptx.passes.cutlass.state import Cutlass, address, rules, run
from tile_nvptx.passes.tileas.device import asynchronous as device
from tile_nvptx.passes.tileas.thread.build import Builder

#: llvm.atomicrmw's numbers of operations (llvm::AtomicRMWInst::BinOp) and of orders.
_ATOMICS = {("add", False): 1, ("max", False): 7, ("add", True): 11}
_MONOTONIC = 2


def _view(value: ir.Value) -> View:
    found = operand_of(value.type)
    assert isinstance(found, View), "verified"
    return found


def _stripe(op: ir.OpView, cx: Cutlass, each: Callable[[int, ir.Value], None]) -> None:
    """Calls `each` with the number and the address of each element of the thread."""
    registers, memory, index = op.operands
    threads, view = integer(op, "threads"), _view(memory)
    layout = view.layout
    assert isinstance(layout, Layout), "verified"
    b, n = Builder(cx), Offsets(cx)
    base = address(cx, memory, 1)
    element = ir.Type.parse(view.element)
    for at in range(_view(registers).layout.size):
        number = b.with_constant("addi", index, at * threads)
        each(at, b.offset(base, n.index(layout, number), element))


def _registers(op: ir.OpView, cx: Cutlass) -> ir.Value:
    view = _view(op.operands[0])
    kind = ir.VectorType.get([view.layout.size], ir.Type.parse(view.element))
    return cx.create("cute.memref_load_vec", [op.operands[0]], [kind]).result


def _loaded(op: ir.OpView, cx: Cutlass) -> ir.Value:
    items: list[ir.Value] = []
    element = ir.Type.parse(_view(op.operands[1]).element)

    def load(at: int, where: ir.Value) -> None:
        items.append(cx.create("llvm.load", [where], [element]).result)

    _stripe(op, cx, load)
    return Builder(cx).vector(items)


@rules.on("cutlass.block_striped_load")
def load(op: ir.OpView, cx: Cutlass) -> Replacement:
    """A load for each element"""
    cx.create("cute.memref_store_vec", [_loaded(op, cx), op.operands[0]])
    return None


@rules.on("cutlass.block_striped_load_add")
def load_add(op: ir.OpView, cx: Cutlass) -> Replacement:
    """Loads, and sums with what the registers hold"""
    old, new = _registers(op, cx), _loaded(op, cx)
    integers = isinstance(ir.VectorType(old.type).element_type, ir.IntegerType)
    name = "arith.addi" if integers else "arith.addf"
    total = cx.create(name, [old, new], [old.type]).result
    cx.create("cute.memref_store_vec", [total, op.operands[0]])
    return None


@rules.on("cutlass.block_striped_store")
def store(op: ir.OpView, cx: Cutlass) -> Replacement:
    """A store for each element"""
    values, b = _registers(op, cx), Builder(cx)
    _stripe(op, cx, lambda at, where: _store(cx, b.extract(values, at), where))
    return None


def _store(cx: Cutlass, value: ir.Value, where: ir.Value) -> None:
    cx.create("llvm.store", [value, where])


@rules.on("cutlass.block_striped_reduce")
def reduce(op: ir.OpView, cx: Cutlass) -> Replacement:
    """atomicrmw of the GPU's scope for each element; a maximum of f32 is one of its bits"""
    values, b = _registers(op, cx), Builder(cx)
    how = word(op, "reduction", tuple(ATOMICS), "add")
    element = ir.VectorType(values.type).element_type
    floats = not isinstance(element, ir.IntegerType)

    def one(at: int, where: ir.Value) -> None:
        value = b.extract(values, at)
        if how == "max" and floats:
            run(cx, device.reduce_max_f32(), where, b.bitcast(value, b.i32))
            return
        attributes = {
            "bin_op": ir.IntegerAttr.get(b.i64, _ATOMICS[how, floats]),
            "ordering": ir.IntegerAttr.get(b.i64, _MONOTONIC),
            "syncscope": ir.StringAttr.get("device"),
        }
        cx.create("llvm.atomicrmw", [where, value], [element], attributes)

    _stripe(op, cx, one)
    return None
