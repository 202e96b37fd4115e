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
from tile_tileas.pipes.extract import REGIONS, STEPS
from tile_tileas.sched.facts import memory_effect
from tile_tileas.sched.pipes import PipeSteps
from tile_tileas.sched.rotation import Place, Rotation

PIPE_OPERATIONS = frozenset((*STEPS, *REGIONS))
_COPIED = ("nv_tileas.async_load", "nv_tileas.async_tiled_load")
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
    place: Place | None = None  # the stage of the buffer, where it is known
    pipe: bool = False  # it is an end of a pipe that takes or gives back a stage of `buffer`

    def meets(self, other: _Access) -> bool:
        if self.pipe or other.pipe:
            return self._meets_pipe(other)
        if self.by_tokens and other.by_tokens:
            return False
        if self.in_buffer != other.in_buffer:
            return False
        if self.in_buffer:
            if self.buffer is None or other.buffer is None:
                return True
            return self.buffer == other.buffer or _share_bytes(self.buffer, other.buffer)
        return may_alias(self.roots, other.roots)

    def _meets_pipe(self, other: _Access) -> bool:
        """What a pipe carries is not touched past it; its ends are ordered by rings."""
        if self.pipe and other.pipe:
            return False
        if self.opaque or other.opaque:
            return True
        between = self.in_buffer and other.in_buffer
        return between and (None in (self.buffer, other.buffer) or self.buffer == other.buffer)

    def later(self, other: _Access) -> int | None:
        """Iterations after which `other`, an access to a stage of the same ring, meets the stage
        of this one; less than no iteration counts once around. None if that is not known.
        """
        if self.place is None or other.place is None or self.buffer != other.buffer:
            return None
        if self.place.step != 1 or not self.place.comparable(other.place):
            return None
        record = Buffer.of(self.buffer.type) if self.buffer is not None else None
        return None if record is None else self.place.ahead_of(other.place) % record.stages

    def apart(self, other: _Access) -> bool:
        """Whether both are always in different stages of one buffer."""
        if self.place is None or other.place is None or self.buffer != other.buffer:
            return False
        fixed = self.place.step == other.place.step == 0
        record = Buffer.of(self.buffer.type) if self.buffer is not None else None
        if record is None or not fixed or not self.place.comparable(other.place):
            return False
        return self.place.ahead_of(other.place) % record.stages != 0

    def covers(self, other: _Access) -> bool:
        """Whether whatever `other` must not pass lies before this one, too."""
        if self.effect != "write" or self.in_buffer != other.in_buffer or self.by_tokens:
            return False
        if self.pipe or other.pipe or self.place is not None:
            return False  # one stage of several, and not the same one in every iteration
        if self.in_buffer:
            return self.buffer is None or (other.buffer is not None and self.buffer == other.buffer)
        return self.roots is None or self.roots == other.roots


def memory_edges(
    ops: list[ir.OpView],
    aliases: AliasAnalysis | None,
    is_loop: bool,
    pipes: PipeSteps | None = None,
) -> list[Edge]:
    """Order of accesses: each behind those that it must not pass, in its own and in the iteration
    before. What lies before a write that covers it is ordered through that write. Accesses to a
    ring of stages meet as many iterations apart as it takes to come to the same stage.
    """
    found = _Accesses(aliases, pipes, Rotation(ops[0].operation.block) if is_loop and ops else None)
    accesses = [access for at, op in enumerate(ops) for access in found.of(at, op)]
    edges = {}
    for index, access in enumerate(accesses):
        # Nearest first: this iteration back to its begin, then the one before from its end.
        behind = [(place, 0) for place in reversed(range(index))]
        behind += [(place, 1) for place in reversed(range(len(accesses)))] if is_loop else []
        for place, distance in behind:
            before = accesses[place]
            if access.effect == before.effect == "read" or not before.meets(access):
                continue
            if before.apart(access):
                continue
            around = before.later(access) if is_loop else None
            if around is not None:
                distance = around or (0 if place < index else _stages(before))
            if distance and Edge(before.at, access.at, 0) in edges:
                continue  # which says more
            if before.at != access.at or distance:
                kind = "mutex" if access.opaque and before.opaque else "memory"
                edges[Edge(before.at, access.at, 0, distance, kind)] = None
            if before.covers(access):
                break
    return list(edges)


def _stages(access: _Access) -> int:
    record = None if access.buffer is None else Buffer.of(access.buffer.type)
    assert record is not None, "only buffers have stages"
    return record.stages


@dataclass(frozen=True)
class _Accesses:
    """What the operations of a body access."""

    aliases: AliasAnalysis | None
    pipes: PipeSteps | None
    rotation: Rotation | None

    def of(self, at: int, op: ir.OpView) -> list[_Access]:
        """What operation `at` does, its regions included."""
        if self.pipes is not None and op.operation.name in PIPE_OPERATIONS:
            ends = [
                _Access(at, "write", True, buffer=_allocation(payload), pipe=True)
                for payload in self.pipes.payloads(at)
            ]
            inner = [a for op_ in _inner(op) for a in self.of(at, op_)]
            # Without a payload, there is still the order with what nobody describes.
            return ends + inner or [_Access(at, "write", False, pipe=True)]
        return self._plain(at, op)

    def _plain(self, at: int, op: ir.OpView) -> list[_Access]:
        effect = memory_effect(op)
        found = [
            self._buffer(at, "read" if kind == "read" else "write", value)
            for kind, value in buffer_effects(op)
            if kind != "allocate" and Buffer.of(value.type) is not None and not _is_payload(value)
        ]
        if op.regions and _touches_buffers(op):
            found.append(_Access(at, "write", True))
        if effect == "none":
            return found
        if op.operation.name in _COPIED and is_weak(op):
            # It reads global memory by its token; what it does to buffers is declared.
            return [*found, _Access(at, "read", False, by_tokens=True)]
        if op.operation.name in _TRACKED:
            roots = self.aliases.of_access(op) if self.aliases is not None else None
            by_tokens = is_weak(op) and "volatile" not in op.attributes
            return [*found, _Access(at, effect, False, roots, by_tokens=by_tokens)]
        opaque = effect == "write"
        return [*found, _Access(at, effect, False, opaque=opaque),
                _Access(at, effect, True, opaque=opaque)]  # fmt: skip

    def _buffer(self, at: int, effect: str, value: ir.Value) -> _Access:
        root = _allocation(value)
        return _Access(at, effect, True, buffer=root, place=self._place(value, root))

    def _place(self, value: ir.Value, root: ir.Value | None) -> Place | None:
        """The stage that a view is of; None for more than one, and for what is not known."""
        record = None if root is None else Buffer.of(root.type)
        owner = value.owner
        if self.rotation is None or record is None or record.stages == 1:
            return None
        if isinstance(owner, ir.Block) or owner.name != "nv_tileas.buffer_view":
            return None
        source = owner.operands[0]
        if source != root:
            return None
        return self.rotation.place(owner.operands[1], record.stages)


def _inner(op: ir.OpView) -> list[ir.OpView]:
    return [inner for region in op.regions for block in region.blocks for inner in block.operations]


def _is_payload(value: ir.Value) -> bool:
    """Whether a buffer is what a region of a pipe takes: rings order the ends of the pipe."""
    while not isinstance(value.owner, ir.Block) and value.owner.name == "nv_tileas.buffer_view":
        value = value.owner.operands[0]
    owner = value.owner
    return isinstance(owner, ir.Block) and owner.owner.name in REGIONS


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
