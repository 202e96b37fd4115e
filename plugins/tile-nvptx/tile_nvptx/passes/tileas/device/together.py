"""Pieces of device functions that compute several f32 numbers with one test for all of them.

Functions that round to nearest, or take large angles, test their operand and branch, in front of
which threads of a warp are gathered: ptxas puts nothing else in between. Where all operands lie
within bounds, the instructions of the short way do, for all of them side by side; else each is
computed by itself.
"""

from __future__ import annotations

from collections.abc import Sequence

_BIAS, _MANTISSA = 127, 23


def each(source: str, result: str, count: int, instruction: str) -> str:
    """`%<result>`, a vector of what `instruction` makes of each element of `%<source>`, which it
    calls %x.
    """
    vector, lines = f32s(count), [f"  %{result}_0 = llvm.mlir.poison : {f32s(count)}"]
    for at in range(count):
        after = f"%{result}" if at + 1 == count else f"%{result}_{at + 1}"
        index, made = f"%{result}_at{at}", f"%{result}_of{at}"
        lines += [
            f"  {index} = llvm.mlir.constant({at} : i32) : i32",
            f"  %{result}_in{at} = llvm.extractelement %{source}[{index} : i32] : {vector}",
            f"  {made} = {instruction.replace('%x', f'%{result}_in{at}')}",
            f"  {after} = llvm.insertelement {made}, %{result}_{at}[{index} : i32] : {vector}",
        ]
    return "\n".join(lines)


def twice(name: str, count: int) -> str:
    """`%<name>_twice`, the bits of `%<name>` without those of signs."""
    words = i32s(count)
    return f"""  %{name}_bits = llvm.bitcast %{name} : {f32s(count)} to {words}
  %{name}_by = llvm.mlir.constant(dense<1> : {words}) : {words}
  %{name}_twice = llvm.shl %{name}_bits, %{name}_by : {words}"""


def within(name: str, count: int, low: int, high: int) -> str:
    """`%within`, whether the word, or all words, of `%<name>` are in low .. high."""
    words, held = (i32s(count), f"dense<{low}>") if count else ("i32", str(low))
    highest = "%above"
    lines = [
        f"  %low = llvm.mlir.constant({held} : {words}) : {words}",
        f"  %range = llvm.mlir.constant({signed(high - low)} : i32) : i32",
        f"  %above = llvm.sub %{name}, %low : {words}",
    ]
    if count:
        highest = "%highest"
        lines.append(f'  %highest = "llvm.intr.vector.reduce.umax"(%above) : ({words}) -> i32')
    return "\n".join([*lines, f'  %within = llvm.icmp "ult" {highest}, %range : i32'])


def ending(flag: str, quick: Sequence[str], exact: Sequence[str], count: int) -> str:
    """The end of a function: `%quick`, which the lines of `quick` make, where `flag` says so, and
    `%exact` if not.
    """
    vector = f32s(count)
    return "\n".join([
        f"  llvm.cond_br {flag} weights([1000, 1]), ^quick, ^each",
        "^quick:", *quick, f"  llvm.br ^done(%quick : {vector})",
        "^each:", *exact, f"  llvm.br ^done(%exact : {vector})",
        f"^done(%result: {vector}):", f"  llvm.return %result : {vector}",
    ])  # fmt: skip


def f32s(count: int) -> str:
    return f"vector<{count}xf32>"


def i32s(count: int) -> str:
    return f"vector<{count}xi32>"


def signed(bits: int) -> int:
    """A word as MLIR reads numbers of 32 bits."""
    return bits - (1 << 32) if bits >> 31 else bits


def bits_of(exponent: int) -> int:
    """The bits of 2**exponent as f32."""
    return (exponent + _BIAS) << _MANTISSA
