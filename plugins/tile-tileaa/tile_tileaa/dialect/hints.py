"""What a program advises about a load or store: the optional attribute `hints`, a dictionary.

`latency` (i32, 1 to 10): how heavy traffic to DRAM will be; 1 is little: products have the
fewest stages then, and other loads are not prefetched.
`allow_tma` (i1): whether tensor maps may copy the tile. Absent, both are up to the compiler.
Names and ranges are those of cuda_tile's optimization hints.
"""

from __future__ import annotations

from tile_core.mlir import ir

HINTS = "hints"
LATENCY, ALLOW_TMA = "latency", "allow_tma"
LATENCIES = range(1, 11)


def hint_problem(name: str, value: ir.Attribute) -> str | None:
    """What is wrong with a hint, if anything."""
    if name == ALLOW_TMA:
        return None if isinstance(value, ir.BoolAttr) else "expects true or false"
    if name == LATENCY:
        number = ir.IntegerAttr(value).value if isinstance(value, ir.IntegerAttr) else 0
        return None if number in LATENCIES else "expects a number from 1 to 10"
    return "loads and stores have no such hint"


def hints_problem(op: ir.OpView) -> str | None:
    """A check of operations: hints are some, each with a value that it can have."""
    if HINTS not in op.attributes:
        return None
    given = op.attributes[HINTS]
    if not isinstance(given, ir.DictAttr):
        return f"expects hints to be a dictionary, but got {given}"
    for entry in given:
        problem = hint_problem(entry.name, entry.attr)
        if problem is not None:
            return f"hint {entry.name} = {entry.attr}: {problem}"
    return None


def latency_of(op: ir.OpView | ir.Operation) -> int | None:
    """The hint `latency` of a load or store; None if it has none."""
    if HINTS not in op.attributes:
        return None
    given = ir.DictAttr(op.attributes[HINTS])
    return ir.IntegerAttr(given[LATENCY]).value if LATENCY in given else None


def allows_tma(op: ir.OpView | ir.Operation) -> bool:
    """Whether tensor maps may copy the tile; yes, unless a hint says no."""
    if HINTS not in op.attributes:
        return True
    given = ir.DictAttr(op.attributes[HINTS])
    return ALLOW_TMA not in given or ir.BoolAttr(given[ALLOW_TMA]).value
