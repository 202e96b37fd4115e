"""Code that a warp as a rule does not issue: ptxas put it aside, the PTX has no branch around it.

Two kinds, both with the lines of what they stand in for, so that a line table alone cannot tell
them from the code that runs:

- `BRA.DIV` leaves for a copy of shuffles, votes and barriers that gathers the threads of a warp
  that has diverged one by one (`WARPSYNC.COLLECTIVE`). Warps that are together fall through.
- Division, square root and reciprocal in full precision call a function whose name ends with
  `slowpath` for operands near the ends of the exponent's range (CUDA C++ Programming Guide,
  "Intrinsic Functions"; `FCHK` asks), and jump over the call for all others.
"""

from __future__ import annotations

from collections.abc import Iterable

from tile_time.sass.code import SassKernel

_JUMPS = ("BRA", "JMP", "BRX", "WARPSYNC", "BSSY")
_ENDS = ("EXIT", "RET", "KILL")
_DIVERGED = ".DIV"
_SLOW = "slowpath"


def cold_code(kernel: SassKernel) -> frozenset[int]:
    """Indices of the instructions that only diverged warps or extreme operands come to."""
    code = kernel.code
    if not code:
        return frozenset()
    diverged, skipped = [], set[int]()
    for index, sass in enumerate(code):
        target = kernel.target(sass)
        if sass.name == "BRA" and _DIVERGED in sass.opcode and target is not None:
            diverged.append(target)
        elif sass.name == "CALL" and _SLOW in sass.operands:
            skipped |= _around(kernel, index)
            diverged += [target] if target is not None else []
    usual = _reached(kernel, [0], skipped)
    return frozenset(skipped | _reached(kernel, diverged, usual))


def _around(kernel: SassKernel, call: int) -> set[int]:
    """The call and what stands by it, between the branch over it and where that one goes."""
    for index in range(call - 1, max(call - 32, -1), -1):
        sass = kernel.code[index]
        target = kernel.target(sass)
        if sass.name == "BRA" and sass.guard and target is not None and target > call:
            return set(range(index + 1, target))
        if sass.name in (*_ENDS, "CALL"):
            break
    return set()


def _reached(kernel: SassKernel, starts: Iterable[int], without: set[int]) -> set[int]:
    """What can be reached from `starts` but through `without`, diverged branches not taken."""
    found: set[int] = set()
    work = [start for start in starts if start not in without]
    while work:
        at = work.pop()
        while at < len(kernel.code) and at not in found and at not in without:
            found.add(at)
            sass = kernel.code[at]
            target = kernel.target(sass)
            if target is not None and sass.name in _JUMPS and _DIVERGED not in sass.opcode:
                work.append(target)
            if _is_last(kernel, at):
                break
            at += 1
    return found


def _is_last(kernel: SassKernel, at: int) -> bool:
    """Whether the instruction behind this one is never the next."""
    sass = kernel.code[at]
    if sass.guard or sass.name not in (*_ENDS, "BRA", "JMP"):
        return False
    # A branch that may find no thread to take it has a predicate before its target.
    return sass.name in _ENDS or sass.operands.startswith("`")
