"""Extended-precision integer arithmetic through the carry flag."""

from __future__ import annotations

import numpy as np

from tile_sim.isa.integer import _product
from tile_sim.machine.group import Group
from tile_sim.program.decode import Decode, Exec, instruction
from tile_sim.program.types import TYPES

Array = np.ndarray
_TYPES = "u32 s32 u64 s64 b32 b64"


def _flag_slot(cx: Decode) -> int:
    """The slot of CC.CF: one flag for each thread."""
    program = cx.program
    if program.carry is None:
        program.carry = program.file.add("CC.CF", TYPES["pred"])
    return program.file.slot(program.carry, TYPES["pred"].dtype.str)


def _unsigned(value: Array, bits: int) -> Array:
    return np.asarray(value).view(f"<u{bits // 8}")


def add_with_carry(a: Array, b: Array, carry: Array | None) -> tuple[Array, Array]:
    """Sum and carry out of unsigned operands."""
    total = a + b
    out = total < a
    if carry is not None:
        more = total + carry.astype(total.dtype)
        out = out | (more < total)
        total = more
    return total, out


def sub_with_borrow(a: Array, b: Array, borrow: Array | None) -> tuple[Array, Array]:
    """Difference and borrow out of unsigned operands."""
    total, out = a - b, a < b
    if borrow is not None:
        step = borrow.astype(total.dtype)
        out = out | (total < step)
        total = total - step
    return total, out


@instruction("add.cc", "addc", "sub.cc", "subc")
def add_carry(cx: Decode) -> Exec:
    reads = cx.ins.op.endswith("c")
    writes = cx.flag("cc") or not reads
    fn = add_with_carry if cx.ins.op.startswith("add") else sub_with_borrow
    type_ = cx.type(_TYPES)
    cx.done(3)
    slot, a, b = cx.slot(0, TYPES[f"u{type_.bits}"]), cx.src(1, type_), cx.src(2, type_)
    flag, bits = _flag_slot(cx), type_.bits

    def execute(g: Group) -> None:
        carry = g.v[flag][g.sel] if reads else None
        total, out = fn(_unsigned(a(g), bits), _unsigned(b(g), bits), carry)
        g.put(slot, total)
        if writes:
            g.put(flag, out)

    return execute


@instruction("mad.lo.cc", "mad.hi.cc", "madc.lo", "madc.hi")
def mad_carry(cx: Decode) -> Exec:
    part = cx.ins.mods[0]
    reads = cx.ins.op == "madc"
    writes = cx.flag("cc") or not reads
    type_ = cx.type("u32 s32 u64 s64")
    cx.done(4)
    slot = cx.slot(0, TYPES[f"u{type_.bits}"])
    a, b, c = (cx.src(i, type_) for i in (1, 2, 3))
    product, flag, bits = _product(part, type_), _flag_slot(cx), type_.bits

    def execute(g: Group) -> None:
        carry = g.v[flag][g.sel] if reads else None
        low = _unsigned(product(a(g), b(g)), bits)
        total, out = add_with_carry(low, _unsigned(c(g), bits), carry)
        g.put(slot, total)
        if writes:
            g.put(flag, out)

    return execute
