"""Types of cutlass as types of llvm, records of fields, and what rules share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from tile_cute.cutlass.dialect.types import name_of
from tile_cute.cutlass.pipes import CURSOR, Shape
from tile_cute.cutlass.records import FIELDS, WORK

from tile_core.convert import Conversion, RuleSet
from tile_core.mlir import ir
from tile_nvptx.passes import meeting
from tile_nvptx.passes.cutlass.numbers import Emitted
from tile_nvptx.passes.tileas.device import asynchronous as device
from tile_nvptx.passes.tileas.device.helpers import Helpers
from tile_nvptx.passes.tileas.thread.build import Builder

LANES = 32
_EQ = 0  # arith.CmpIPredicate
_PARAMS = f"!llvm.struct<({', '.join(f'i{bits}' for _, bits in FIELDS.values())})>"
_TYPES = {
    "pipeline": "!llvm.ptr<3>",
    "seq_bar": "!llvm.ptr<3>",
    "participants": "i32",
    "pipeline_state": f"!llvm.struct<({', '.join(['i32'] * len(CURSOR))})>",
    "seq_bar_state": f"!llvm.struct<({', '.join(['i32'] * len(CURSOR))})>",
    "tile_scheduler_params": _PARAMS,
    "tile_scheduler": f"!llvm.struct<({_PARAMS}, !llvm.ptr<3>)>",
    "work_tile_info": f"!llvm.struct<({', '.join(['i32'] * len(WORK))})>",
}

rules = RuleSet("convert-pipeline-to-nvvm")


@dataclass
class State:
    """What the rules of one function share.

    Attributes:
        mask: a bit for each warp that comes to where code is inserted; 0 where nobody says.
        all_warps: the same of the kernel; ctas: blocks of a cluster.
        pipes: participants by the pipe's address.
        sequences: (depth, length) by the sequence's address.
    """

    helpers: Helpers
    module: ir.Operation
    mask: int
    all_warps: int
    ctas: int
    buffers: list[str]
    pipes: dict[ir.Value, Shape] = field(default_factory=dict)
    sequences: dict[ir.Value, tuple[int, int]] = field(default_factory=dict)


Cutlass = Conversion[State]


def convert_type(type_: ir.Type) -> ir.Type:
    """Cursors, parameters and work are records; pipes the address of their barriers."""
    found = _TYPES.get(name_of(type_))
    return type_ if found is None else ir.Type.parse(found)


# --- records -------------------------------------------------------------------------------------


def get(cx: Cutlass, record: ir.Value, at: int | Sequence[int], type_: ir.Type) -> ir.Value:
    """A field of a record."""
    place = [at] if isinstance(at, int) else list(at)
    position = {"position": ir.DenseI64ArrayAttr.get(place)}
    return cx.create("llvm.extractvalue", [record], [type_], position).result


def put(cx: Cutlass, record: ir.Value, at: int, value: ir.Value) -> ir.Value:
    """A record with another field."""
    position = {"position": ir.DenseI64ArrayAttr.get([at])}
    return cx.create("llvm.insertvalue", [record, value], [record.type], position).result


def unpack(cx: Cutlass, record: ir.Value, names: Sequence[str]) -> dict[str, ir.Value]:
    """All fields of a record of i32."""
    i32 = ir.IntegerType.get_signless(32)
    return {name: get(cx, record, at, i32) for at, name in enumerate(names)}


def pack(cx: Cutlass, fields: dict[str, ir.Value], names: Sequence[str], kind: str) -> ir.Value:
    """The record of a type of cutlass; conditions become i32."""
    n = Emitted(cx)
    record = cx.create("llvm.mlir.poison", [], [ir.Type.parse(_TYPES[kind])]).result
    for at, name in enumerate(names):
        record = put(cx, record, at, n.number(fields[name]))
    return record


def params_of(cx: Cutlass, record: ir.Value, bits: int = 32) -> dict[str, ir.Value]:
    """Fields of a scheduler's parameters, but for the address, in so many bits."""
    n, found = Emitted(cx, bits), {}
    for at, (name, (_, width)) in enumerate(FIELDS.items()):
        if width == 32:
            value = get(cx, record, at, ir.IntegerType.get_signless(width))
            found[name] = n.number(value)
    return found


# --- threads -------------------------------------------------------------------------------------


def thread(cx: Cutlass) -> ir.Value:
    """The thread's number in its block."""
    i32 = ir.IntegerType.get_signless(32)
    return cx.create("nvvm.read.ptx.sreg.tid.x", [], [i32]).result


def warp(cx: Cutlass) -> ir.Value:
    """The number of its warp."""
    return Builder(cx).with_constant("shrui", thread(cx), 5)


def is_lane(cx: Cutlass, lane: int = 0) -> ir.Value:
    """Whether the thread has this number in its warp."""
    b = Builder(cx)
    return b.compare(_EQ, b.with_constant("andi", thread(cx), LANES - 1), b.constant(lane))


def is_first(cx: Cutlass) -> ir.Value:
    """Whether it is the first of all threads that come here."""
    mask = cx.state.mask
    first = ((mask & -mask).bit_length() - 1) * LANES if mask else 0
    b = Builder(cx)
    return b.compare(_EQ, thread(cx), b.constant(first))


@contextmanager
def when(cx: Cutlass, condition: ir.Value | None) -> Iterator[None]:
    """What is made inside runs under a condition; without one, always."""
    if condition is None:
        yield
        return
    branch = cx.create("scf.if", [condition], regions=2)
    with cx.at(ir.InsertionPoint(branch.regions[0].blocks.append())):
        yield
        cx.create("scf.yield")


def run(cx: Cutlass, routine: device.Routine, *operands: ir.Value) -> None:
    """Call a device function without result."""
    cx.state.helpers.call(cx, *routine, list(operands), None)


def warp_meets(cx: Cutlass) -> None:
    """What lanes did happens before what any of them does next."""
    cx.create("nvvm.bar.warp.sync", [Builder(cx).constant(-1)])


def block_meets(cx: Cutlass) -> None:
    """All threads of the block."""
    meeting.block_meets(cx)


def some_meet(cx: Cutlass, barrier: int, threads: int) -> None:
    """So many threads, at a named barrier."""
    b = Builder(cx)
    meeting.some_meet(cx, b.constant(barrier), b.constant(threads))


# --- memory --------------------------------------------------------------------------------------


def words_in_shared(cx: Cutlass, name: str, count: int) -> ir.Value:
    """The address of so many words of 64 bits."""
    state = cx.state
    symbol = f"__cutlass_{name}_{len(state.buffers)}"
    state.buffers.append(symbol)
    text = (
        f"llvm.mlir.global internal @{symbol}() {{addr_space = 3 : i32, alignment = 16 : i64}} : "
        f"!llvm.array<{count} x i64>"
    )
    block = state.module.regions[0].blocks[0]
    ir.InsertionPoint.at_block_begin(block).insert(ir.Operation.parse(text))
    named = {"global_name": ir.FlatSymbolRefAttr.get(symbol)}
    return cx.create("llvm.mlir.addressof", [], [ir.Type.parse("!llvm.ptr<3>")], named).result


def address(cx: Cutlass, value: ir.Value, space: int) -> ir.Value:
    """A pointer of llvm; what is one of cute becomes one in the next pass."""
    wanted = ir.Type.parse(f"!llvm.ptr<{space}>")
    if value.type == wanted:
        return value
    return cx.create("builtin.unrealized_conversion_cast", [value], [wanted]).result


def given(cx: Cutlass, pointer: ir.Value, type_: ir.Type) -> ir.Value:
    """A pointer as a result of the type that the operation has."""
    if pointer.type == type_:
        return pointer
    return cx.create("builtin.unrealized_conversion_cast", [pointer], [type_]).result


def place(cx: Cutlass, words: ir.Value, at: ir.Value, size: int = 8) -> ir.Value:
    """The address of an element of `size` bytes."""
    b = Builder(cx)
    return b.offset(words, b.with_constant("muli", at, size), b.i8)
