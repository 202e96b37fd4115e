"""Pieces of PTX that mechanisms are made of."""

from __future__ import annotations

STORE = "add.f32 %f1, %f1, %f2; st.global.f32 [%rd1], %f1;"


def chain(op: str, count: int) -> str:
    return "\n".join(op for _ in range(count))


def wide(op: str, chains: int, rounds: int) -> str:
    """Independent chains: `{i}` is the number of the register."""
    return "\n".join(op.format(i=10 + i) for _ in range(rounds) for i in range(chains))


def sum_of(chains: int) -> str:
    adds = "\n".join(f"add.f32 %f1, %f1, %f{10 + i};" for i in range(chains))
    return f"{adds}\nst.global.f32 [%rd1], %f1;"


def sum_of_integers(chains: int) -> str:
    adds = "\n".join(f"add.u32 %r4, %r4, %r{10 + i};" for i in range(chains))
    return f"{adds}\nst.global.u32 [%rd1], %r4;"


START = "mov.f32 %f1, 0f3F800000; cvt.rn.f32.u32 %f2, %r1;\n"
STARTS = START + "\n".join(f"add.f32 %f{10 + i}, %f2, 0f{0x3F800000 + i:08X};" for i in range(8))
ISTARTS = "mov.u32 %r4, 0;\n" + "\n".join(f"add.u32 %r{10 + i}, %r1, {i};" for i in range(8))
