"""Device functions of tensor memory (PTX ISA, "TensorCore 5th generation instructions").

Registers that loads write are not there before the wait, so that a load of a tile is one statement
of inline assembly that ends with it: nothing can be put in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from tile_cute.atoms.descriptors import (
    InstructionDescriptor,
    SmemOperand,
    scaled_instruction_descriptor,
)
from tile_cute.atoms.tensor_access import TensorAccess, TensorMove
from tile_tileas.mma.tensor import TensorPlan
from tile_tileas.mma.tensor_scaled import ScaledTensorPlan, ScalePlan

from tile_nvptx.passes.tileas.device.asynchronous import Routine, routine
from tile_nvptx.passes.tileas.device.helpers import joined, quoted

#: Bytes in which descriptors count.
_UNIT = 16
_SHARED = "!llvm.ptr<3>"


# --- columns -----------------------------------------------------------------------------------


def allocate(columns: int, *, pair: bool) -> Routine:
    """`(ptr<3>)`: a warp takes columns, once there are so many; their address goes there. The block
    asks for no more. Of a `pair` a warp of each block takes them.
    """
    group = f"cta_group::{1 + pair}"
    asm = (
        f"tcgen05.alloc.{group}.sync.aligned.shared::cta.b32 [$0], {columns}; "
        f"tcgen05.relinquish_alloc_permit.{group}.sync.aligned;"
    )
    return routine(f"tcgen05_alloc_{columns}{_of(pair=pair)}", [_SHARED], asm)


def release(columns: int, *, pair: bool) -> Routine:
    """`(i32)`: a warp gives columns back."""
    asm = f"tcgen05.dealloc.cta_group::{1 + pair}.sync.aligned.b32 $0, {columns};"
    return routine(f"tcgen05_dealloc_{columns}{_of(pair=pair)}", ["i32"], asm)


def _of(*, pair: bool) -> str:
    return "_pair" if pair else ""


def fence(side: str) -> Routine:
    """`()`: accesses of the thread stay on their side of a meeting."""
    return routine(f"tcgen05_fence_{side}", [], f"tcgen05.fence::{side}_thread_sync;")


def commit(*, pair: bool, to_others: bool) -> Routine:
    """`(ptr<3>)`: an arrival when all is done that this thread has begun, of the products of a
    `pair` or of one block. `to_others`: `(ptr<3>, i16)`, at the same place in each block of the
    cluster whose bit is set.
    """
    words = f"tcgen05.commit.cta_group::{1 + pair}.mbarrier::arrive::one.shared::cluster"
    if to_others:
        asm = f"{words}.multicast::cluster.b64 [$0], $1;"
        return routine(
            "tcgen05_commit_pair" if pair else "tcgen05_commit_to", [_SHARED, "i16"], asm
        )
    return routine("tcgen05_commit", [_SHARED], f"{words}.b64 [$0];")


# --- copies between registers and tensor memory --------------------------------------------------


def load(access: TensorAccess, *, apart: bool = False) -> Routine:
    """`(i32 address) -> vector of words`, in order of registers. `apart`: there is a wait for each
    instruction, and not one for all, so that what the first one gives may be worked on, and its
    registers used again, before the next one is issued.
    """
    count = sum(len(move.registers) for move in access.moves)
    words = f"vector<{count}xi32>"
    name = _name("ld", access) + "_apart" * apart
    text = [
        f"llvm.func internal @{name}(%x: i32) -> {words} attributes {{always_inline}} {{",
    ]
    values: dict[int, str] = {}
    for number, moves in enumerate([[m] for m in access.moves] if apart else [access.moves]):
        order = [register for move in moves for register in sorted(move.registers)]
        text += _loaded(access, moves, order, f"%m{number}")
        struct = _struct(len(order))
        for at, register in enumerate(order):
            values[register] = f"%m{number}"
            if len(order) > 1:
                values[register] = f"%r{register}"
                text.append(f"  %r{register} = llvm.extractvalue %m{number}[{at}] : {struct}")
    text += joined("%out", [values[register] for register in range(count)], "i32")
    return name, "\n".join([*text, f"  llvm.return %out : {words}", "}"])


def _loaded(
    access: TensorAccess, moves: Sequence[TensorMove], order: Sequence[int], name: str
) -> list[str]:
    """One statement that reads the registers of `order`, and waits for them."""
    place = {register: at for at, register in enumerate(order)}
    lines = [_moved(access, move.offset, len(order))
             + _words(access, tuple(place[one] for one in move.registers), load=True)
             for move in moves]  # fmt: skip
    body = "{ .reg .b32 place; " + " ".join(lines) + " tcgen05.wait::ld.sync.aligned; }"
    constraints = ",".join(["=r"] * len(order) + ["r", "~{memory}"])
    return [
        f"  {name} = llvm.inline_asm has_side_effects asm_dialect = att {quoted(body)}, "
        f'"{constraints}" %x : (i32) -> {_struct(len(order))}'
    ]


def _struct(count: int) -> str:
    return "i32" if count == 1 else f"!llvm.struct<({', '.join(['i32'] * count)})>"


def store(access: TensorAccess) -> Routine:
    """`(i32 address, vector of words)`, in order of registers; done when it returns."""
    count = sum(len(move.registers) for move in access.moves)
    lines = [_moved(access, move.offset, count) + _words(access, move.registers, load=False)
             for move in access.moves]  # fmt: skip
    body = "{ .reg .b32 place; " + " ".join(lines) + " tcgen05.wait::st.sync.aligned; }"
    words = f"vector<{count}xi32>"
    constraints = ",".join(["r"] * (count + 1) + ["~{memory}"])
    name = _name("st", access)
    text = [f"llvm.func internal @{name}(%x: i32, %v: {words}) attributes {{always_inline}} {{"]
    for i in range(count):
        text.append(f"  %i{i} = llvm.mlir.constant({i} : i32) : i32")
        text.append(f"  %r{i} = llvm.extractelement %v[%i{i} : i32] : {words}")
    values = ", ".join([*(f"%r{i}" for i in range(count)), "%x"])
    text.append(
        f"  llvm.inline_asm has_side_effects asm_dialect = att {quoted(body)}, "
        f'"{constraints}" {values} : ({", ".join(["i32"] * (count + 1))}) -> ()'
    )
    return name, "\n".join([*text, "  llvm.return", "}"])


def _name(what: str, access: TensorAccess) -> str:
    offsets = "_".join(f"{move.offset:x}" for move in access.moves)
    order = "_".join(str(move.registers[-1]) for move in access.moves)
    return f"__tile_tcgen05_{what}_{access.shape}_x{access.repeat}_{offsets}_{order}"


def _moved(access: TensorAccess, offset: int, operand: int) -> str:
    return f"add.s32 place, ${operand}, {offset}; "


def _words(access: TensorAccess, registers: tuple[int, ...], *, load: bool) -> str:
    names = "{" + ", ".join(f"${register}" for register in registers) + "}"
    tail = f".sync.aligned.{access.shape}.x{access.repeat}.b32"
    return f"tcgen05.ld{tail} {names}, [place];" if load else f"tcgen05.st{tail} [place], {names};"


# --- products ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TensorProduct:
    """What one thread begins: all instructions of a product, K innermost, or those `steps` along K
    from one to before another. A is an operand in shared memory, or how many columns of tensor
    memory lie between its rows of one instruction and those of the next. `of_team`: those of one
    instruction along M alone.
    """

    plan: TensorPlan
    a: SmemOperand | int
    b: SmemOperand
    steps: tuple[int, int] | None = None
    of_team: bool = False

    def left_of(self, m: int) -> int:
        """How far from the beginning of A the rows of instruction `m` are, in units of where A is:
        of a descriptor, or columns.
        """
        if isinstance(self.a, int):
            return m * self.a
        return _units(self.a.start(m * self.plan.rows_each, 0))

    @property
    def name(self) -> str:
        """One name for each text."""
        shape = "x".join(map(str, self.plan.shape))
        atom = self.plan.atom
        row = f"{atom.row.kind}_{atom.row.acc}_{atom.row.a}_{atom.row.b}_m{atom.m}n{atom.n}"
        row += _of(pair=self.plan.ctas > 1)
        if self.steps is not None:
            row += "_k{}_{}".format(*self.steps)
        if self.of_team:
            row += "_team"
        return f"tcgen05_mma_{row}_{shape}_{_spelt(self.a)}_{_spelt(self.b)}"

    @property
    def descriptor(self) -> int:
        """The instruction descriptor."""
        row, m, n = self.plan.atom.row, self.plan.atom.m, self.plan.atom.n
        return InstructionDescriptor(
            row.kind, row.a, row.b, row.acc, m, n, self.a_major, self.b.major
        ).encode()

    @property
    def a_major(self) -> str:
        """The order of A; in tensor memory it lies along K."""
        return "K" if isinstance(self.a, int) else self.a.major

    @property
    def left(self) -> str:
        """The PTX type of where A begins: a descriptor, or columns."""
        return "b32" if isinstance(self.a, int) else "b64"


def _spelt(operand: SmemOperand | int) -> str:
    if isinstance(operand, int):
        return f"tensor{operand}"
    fields = operand.major, operand.swizzle, operand.leading, operand.stride
    return "_".join(map(str, fields))


def multiply(made: TensorProduct) -> Routine:
    """`(i32 accumulator, i64 A, i64 B, i32 accumulate)`: descriptors of the operands' beginnings,
    or of A its columns in tensor memory (i32); what was in the accumulator counts if `accumulate`
    is not 0.
    """
    ms, ns, ks = made.plan.counts
    ms = 1 if made.of_team else ms
    steps = range(*made.steps or (ks,))
    lines = [
        ".reg .pred begin, add;",
        f".reg .{made.left} left;",
        ".reg .b64 right;",
        ".reg .b32 place, kind;",
        "setp.ne.b32 begin, $3, 0;",
        "setp.eq.b32 add, 0, 0;",
        f"mov.b32 kind, {made.descriptor};",
    ]
    lines += [
        f"{_places(made, m, n, k)}{_instruction(made, first=k == steps.start)}"
        for m, n, k in product(range(ms), range(ns), steps)
    ]
    asm = "{ " + " ".join(lines) + " }"
    left = "i32" if isinstance(made.a, int) else "i64"
    return routine(made.name, ["i32", left, "i64", "i32"], asm)


def _instruction(made: TensorProduct, *, first: bool) -> str:
    """One instruction; the `first` one of a sum adds to what was there only if the product does."""
    left = "[left]" if isinstance(made.a, int) else "left"
    adds = "begin" if first else "add"
    return f"{made.plan.atom.instruction} [place], {left}, right, kind, {adds};"


def _places(made: TensorProduct, m: int, n: int, k: int) -> str:
    """Where operands and sums of one instruction begin."""
    atom = made.plan.atom
    along = k * atom.k // made.plan.packing
    if isinstance(made.a, int):
        left = f"add.s32 left, $1, {m * made.a + made.plan.held_column(k)}; "
    else:
        left = f"add.s64 left, $1, {_units(made.a.start(m * made.plan.rows_each, along))}; "
    return (
        f"{left}"
        f"add.s64 right, $2, {_units(made.b.start(n * atom.n // made.plan.ctas, along))}; "
        f"add.s32 place, $0, {made.plan.column(m, n)}; "
    )


# --- block scales --------------------------------------------------------------------------------


def copy_scales(plan: ScalePlan) -> Routine:
    """`(i32 columns, i64 scales)`: all scales of an operand, to columns of tensor memory."""
    lines = [".reg .b64 source;", ".reg .b32 place;"]
    lines += [
        f"add.s64 source, $1, {_units(copy.offset)}; add.s32 place, $0, {copy.column}; "
        "tcgen05.cp.cta_group::1.32x128b.warpx4 [place], source;"
        for copy in plan.copies
    ]
    name = f"tcgen05_cp_scales_{plan.rows}x{plan.count}_{plan.part}"
    return routine(name, ["i32", "i64"], "{ " + " ".join(lines) + " }")


@dataclass(frozen=True)
class ScaledProduct(TensorProduct):
    """What one thread begins behind the copies of its block scales."""

    plan: ScaledTensorPlan

    def kind_of(self, first_a: int, first_b: int) -> int:
        """The instruction descriptor; scales begin at those bytes of their columns."""
        row, m, n = self.plan.atom.row, self.plan.atom.m, self.plan.atom.n
        assert row.scale is not None, "its atoms take scales"
        return scaled_instruction_descriptor(
            row.kind, row.a, row.b, m, n, row.scale.type,
            a_major=self.a_major, b_major=self.b.major, a_scale_id=first_a, b_scale_id=first_b,
        )  # fmt: skip


def multiply_scaled(made: ScaledProduct) -> Routine:
    """`(i32 accumulator, i64 A, i64 B, i32 accumulate, i32 scales of A, i32 scales of B)`."""
    ms, ns, ks = made.plan.counts
    lines = [
        ".reg .pred begin, add;",
        ".reg .b64 left, right;",
        ".reg .b32 place, kind, scale_a, scale_b;",
        "setp.ne.b32 begin, $3, 0;",
        "setp.eq.b32 add, 0, 0;",
    ]
    lines += [_one_scaled(made, m, n, k) for m, n, k in product(range(ms), range(ns), range(ks))]
    name = f"{made.name}_scaled_{made.plan.atom.row.scale.size}"  # type: ignore[union-attr]
    return routine(name, ["i32", "i64", "i64", "i32", "i32", "i32"], "{ " + " ".join(lines) + " }")


def _one_scaled(made: ScaledProduct, m: int, n: int, k: int) -> str:
    (column_a, first_a), (column_b, first_b) = (
        scale.place(part, k) for scale, part in zip(made.plan.scales, (m, n), strict=True)
    )
    return (
        f"{_places(made, m, n, k)}"
        f"add.s32 scale_a, $4, {column_a}; add.s32 scale_b, $5, {column_b}; "
        f"mov.b32 kind, {made.kind_of(first_a, first_b)}; "
        f"{made.plan.atom.instruction} [place], left, right, kind, [scale_a], [scale_b], "
        f"{'add' if k else 'begin'};"
    )


def _units(offset: int) -> int:
    if offset % _UNIT:
        raise ValueError(f"an operand starts {offset} bytes into its buffer, no multiple of 16")
    return offset // _UNIT
