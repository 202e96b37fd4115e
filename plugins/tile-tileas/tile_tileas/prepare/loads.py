"""Loads where loops were written out: each once, and before stores that they need not wait for.

Two loads that read the same and wait for the same accesses may give the same values, and a load may
come before a store that its token does not wait for: nothing else orders them (`TokenOrder`). Code
generators do neither, as they know no tokens.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from tile_core.mlir import ir
from tile_tileas.access import GENERIC, AccessPlan
from tile_tileas.analysis.pressure import tile_bits
from tile_tileas.analysis.tokens import LOADS, STORES, TokenOrder, is_weak
from tile_tileas.dialect.fields import operand_of
from tile_tileas.kernel_spec import num_warps
from tile_tileas.sched.facts import is_pure

#: Registers of a thread that loads which moved up may take, in one block.
_ROOM = 32
_BITS_OF_A_REGISTER = 32 * 32  # of a warp
_CONVERT = "nv_tileas.convert_layout"


def share_and_raise_loads(func: ir.Operation) -> tuple[int, int]:
    """Merge equal loads, then move loads before stores; how many of each."""
    merged = raised = 0
    bits = _ROOM * _BITS_OF_A_REGISTER * num_warps(func)
    for block in list(_blocks(func)):
        merged += _merge(block)
        raised += _raise(block, bits)
    return merged, raised


def is_in_passing(op: ir.OpView) -> bool:
    """Whether it is a load that threads make where it stands, and that may be made elsewhere."""
    if op.operation.name not in LOADS or not is_weak(op) or "volatile" in op.attributes:
        return False
    plan = AccessPlan.of(op)
    return plan is not None and plan.copy == GENERIC


def _blocks(op: ir.Operation) -> Iterator[ir.Block]:
    for region in op.regions:
        for block in region.blocks:
            yield block
            for inner in block.operations:
                if inner.operation.name.startswith("scf."):
                    yield from _blocks(inner.operation)


# --- the same once -------------------------------------------------------------------------------


def _merge(block: ir.Block) -> int:
    """Keep the first of equal operations; how many loads went."""
    seen: dict[Hashable, list[ir.OpView]] = {}
    merged = 0
    for op in list(block.operations):
        if not (is_pure(op) or is_in_passing(op)):
            continue
        alike = seen.setdefault((op.operation.name, tuple(op.operands)), [])
        first = next((other for other in alike if _is_equal(other, op)), None)
        if first is None:
            alike.append(op)
            continue
        merged += op.operation.name in LOADS
        for old, new in zip(op.results, first.results, strict=True):
            old.replace_all_uses_with(new)
        op.operation.erase()
    return merged


def _is_equal(one: ir.OpView, other: ir.OpView) -> bool:
    """Whether operations of one name and the same operands agree in all else."""
    if [result.type for result in one.results] != [result.type for result in other.results]:
        return False
    return dict(one.attributes.items()) == dict(other.attributes.items())


# --- before stores -------------------------------------------------------------------------------


def _raise(block: ir.Block, bits: int) -> int:
    """Move loads up while their tiles take `bits` together at most; how many."""
    order, raised = TokenOrder(), 0
    ops = [_Seen.of(op) for op in block.operations]
    for load in [each for each in ops if is_in_passing(each.op)]:
        bits -= tile_bits(load.results[0])
        if bits < 0:
            break
        found = _place(ops, ops.index(load), order)
        if found is not None:
            first, needed = found
            moved = [*needed, load]
            for each in moved:
                each.op.operation.move_before(first.op.operation)
                ops.remove(each)
            at = ops.index(first)
            ops[at:at] = moved
            raised += 1
    return raised


@dataclass(frozen=True, eq=False)
class _Seen:
    """An operation of a block, and what is asked of it for each load that moves."""

    op: ir.OpView
    name: str
    results: tuple[ir.Value, ...]
    is_pure: bool

    @classmethod
    def of(cls, op: ir.OpView) -> _Seen:
        return cls(op, op.operation.name, tuple(op.results), is_pure(op))


def _place(ops: list[_Seen], at: int, order: TokenOrder) -> tuple[_Seen, list[_Seen]] | None:
    """The first store that load `at` may come before, and what has to come along; or None."""
    token = operand_of(ops[at].op, "token")
    waits = frozenset() if token is None else order.before(token)
    wanted, needed = set(ops[at].op.operands), list[_Seen]()
    found: tuple[_Seen, list[_Seen]] | None = None
    for each in reversed(ops[:at]):
        if not wanted.isdisjoint(each.results):
            if not each.is_pure or each.name == _CONVERT:
                break
            needed.insert(0, each)
            wanted.update(each.op.operands)
        elif each.name in STORES:
            if not is_weak(each.op) or not waits.isdisjoint(each.results):
                break
            found = each, list(needed)
        elif not each.is_pure and each.name not in LOADS:
            break
    return found
