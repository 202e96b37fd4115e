"""Floating forms of opcodes that are shared with integers: by type, to the families."""

from __future__ import annotations

from collections.abc import Callable

from tile_sim.isa import floating, half
from tile_sim.program.decode import Decode, Exec

_HALVES = ("f16", "f16x2", "bf16", "bf16x2")


def _by_type(wide: Callable[[Decode], Exec], narrow: Callable[[Decode], Exec]):
    def run(cx: Decode) -> Exec:
        # `add.f32.f16` is a binary32 instruction with a narrow operand.
        mixed = cx.mods[-2:-1] == ["f32"]
        return narrow(cx) if cx.mods[-1] in _HALVES and not mixed else wide(cx)

    return run


float_add = _by_type(floating.add, half.add)
float_sub = _by_type(floating.sub, half.sub)
float_mul = _by_type(floating.mul, half.mul)
float_fma = _by_type(floating.fma, half.fma)
float_abs = _by_type(floating.absolute, half.absolute)
float_neg = _by_type(floating.negate, half.negate)
float_minmax = _by_type(floating.minmax, half.minmax)
float_div = floating.div
