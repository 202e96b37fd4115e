"""Order of accesses to memory that values do not say.

The language orders weak loads and stores by tokens and by nothing else (Tile IR, memory model), and
tokens are values. Whatever else touches global memory keeps the program's order with what it may
meet; so does what touches a buffer.
"""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.sched import Edge, Handle
from tile_tileas.analysis.alias import AliasAnalysis, Roots, may_alias
from tile_tileas.analysis.buffers import OFFSET, allocation_of, stage_bytes
from tile_tileas.analysis.tokens import is_weak
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dialect.effects import buffer_effects
from tile_tileas.sched.facts import memory_effect

_TRACKED = ("nv_tileas.tiled_load", "nv_tileas.load", "nv_tileas.tiled_store", "nv_tileas.store")


@dataclass(frozen=True)
class _Access:
    """One thing that op `at` does: to global memory, or to a buffer (None: to any)."""

    at: int
    effect: str  # "read" or "write"
    in_buffer: bool
    roots: Roots = None
    buffer: ir.Value | None = None
    by_tokens: bool = False  # a weak load or store
    opaque: bool = False  # nobody says what it touches: a barrier, a print, a branch with stores

    def meets(self, other: _Access) -> bool:
        if self.by_tokens and other.by_tokens:
            return False
        if self.in_buffer != other.in_buffer:
            return False
        if self.in_buffer:
            if self.buffer is None or other.buffer is None:
                return True
            return self.buffer == other.buffer or _share_bytes(self.buffer, other.buffer)
        return may_alias(self.roots, other.roots)

    def covers(self, other: _Access) -> bool:
        """Whether whatever `other` must not pass lies before this one, too."""
        if self.effect != "write" or self.in_buffer != other.in_buffer or self.by_tokens:
            return False
        if self.in_buffer:
            return self.buffer is None or (other.buffer is not None and self.buffer == other.buffer)
        return self.roots is None or self.roots == other.roots


def memory_edges(ops: list[ir.OpView], aliases: AliasAnalysis | None, is_loop: bool) -> list[Edge]:
    """Order of accesses: each behind those that it must not pass, in its own and in the iteration
    before. What lies before a write that covers it is ordered through that write.
    """
    accesses = [access for at, op in enumerate(ops) for access in _accesses(at, op, aliases)]
    edges = {}
    for index, access in enumerate(accesses):
        # Nearest first: this iteration back to its begin, then the one before from its end.
        behind = [(before, 0) for before in reversed(accesses[:index])]
        behind += [(before, 1) for before in reversed(accesses)] if is_loop else []
        for before, distance in behind:
            if access.effect == before.effect == "read" or not before.meets(access):
                continue
            if before.at != access.at or distance:
                kind = "mutex" if access.opaque and before.opaque else "memory"
                edges[Edge(before.at, access.at, 0, distance, kind)] = None
            if before.covers(access):
                break
    return list(edges)


def _accesses(at: int, op: ir.OpView, aliases: AliasAnalysis | None) -> list[_Access]:
    effect = memory_effect(op)
    found = [
        _Access(at, "read" if kind == "read" else "write", True, buffer=_allocation(value))
        for kind, value in buffer_effects(op)
        if kind != "allocate" and Buffer.of(value.type) is not None
    ]
    if op.regions and _touches_buffers(op):
        found.append(_Access(at, "write", True))
    if effect == "none":
        return found
    if op.operation.name in _TRACKED:
        roots = aliases.of_access(op) if aliases is not None else None
        by_tokens = is_weak(op) and "volatile" not in op.attributes
        return [*found, _Access(at, effect, False, roots, by_tokens=by_tokens)]
    opaque = effect == "write"
    return [*found, _Access(at, effect, False, opaque=opaque),
            _Access(at, effect, True, opaque=opaque)]  # fmt: skip


def handles_of(ops: list[ir.OpView]) -> tuple[Handle, ...]:
    """What operations do to buffers, which are numbered as they are met."""
    names: dict[ir.Value, str] = {}
    found: dict[tuple[str, int], Handle] = {}
    for at, op in enumerate(ops):
        for kind, value in buffer_effects(op):
            root = _allocation(value) if Buffer.of(value.type) is not None else None
            if kind == "allocate" or root is None:
                continue
            name = names.setdefault(root, f"buffer{len(names)}")
            old = found.get((name, at), Handle(name, at, writes=False))
            found[name, at] = Handle(
                name, at, old.writes or kind != "read", old.reads or kind == "read"
            )
    return tuple(found.values())


def _share_bytes(one: ir.Value, other: ir.Value) -> bool:
    """Whether two allocations that have their places in shared memory lie on one another."""
    spans = [_span(one), _span(other)]
    if spans[0] is None or spans[1] is None:
        return False
    return spans[0][0] < spans[1][1] and spans[1][0] < spans[0][1]


def _span(buffer: ir.Value) -> tuple[int, int] | None:
    alloc, record = buffer.owner, Buffer.of(buffer.type)
    if isinstance(alloc, ir.Block) or record is None or OFFSET not in alloc.attributes:
        return None
    first = ir.IntegerAttr(alloc.attributes[OFFSET]).value
    return first, first + stage_bytes(record) * record.stages


def _touches_buffers(op: ir.OpView) -> bool:
    """Whether an operation inside of the regions of `op` has an effect on a buffer."""
    return any(
        any(Buffer.of(value.type) is not None for _, value in buffer_effects(inner))
        or _touches_buffers(inner)
        for region in op.regions
        for block in region.blocks
        for inner in block.operations
    )


def _allocation(buffer: ir.Value) -> ir.Value | None:
    found = allocation_of(buffer)
    return None if found is None else found.result
