"""tileas-insert-barriers: a block-wide barrier where threads would meet each other's data.

Walks the function with the accesses since the last barrier. A `sync` goes before an operation
if it writes a buffer where others may still read or write, if it reads one that others may have
written, or if its token orders it after an access
to global memory that another thread may have made (of memory that may be the same, or one that
others may wait for). Scalars are the same in every thread, so
branches and loops are taken together and a barrier inside them is safe.

Where the asynchronous proxy reads a buffer that threads have written, the writers fence before
that barrier (PTX ISA, "Async proxy"): before each `sync` behind which something unfenced may be
read so, and, where none stands between, before one of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, error_at
from tile_tileas.analysis.alias import (
    AliasAnalysis,
    elements_apart,
    is_made_once,
    is_same_view,
    may_alias,
    tile_apart,
)
from tile_tileas.analysis.buffers import allocation_of, is_shared, stage_bytes
from tile_tileas.analysis.proxies import reads_by_async_proxy, writes_by_async_proxy
from tile_tileas.analysis.tokens import ACCESSES, LOADS, TokenOrder, is_weak, only_reads
from tile_tileas.analysis.views import maker, tiled_view
from tile_tileas.dialect import layout_of
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dialect.effects import buffer_effects
from tile_tileas.dialect.exchange import EXCHANGES
from tile_tileas.pipelining.multistage import PIPELINED

_SYNC, _FENCE, _WAIT = "nv_tileas.sync", "nv_tileas.fence", "nv_tileas.async_wait"
#: Copies of threads, which are done when the thread has waited for them.
_CP_ASYNC = ("nv_tileas.async_load", "nv_tileas.async_tiled_load")

#: The first byte of a piece of shared memory, the first one behind it, and the pipelined buffer
#: that it belongs to: what its loop does to that is ordered by the loop's own waits and meetings.
Piece = tuple[int, int, ir.Value | None]


def piece_of(op: ir.OpView, buffer: ir.Value) -> Piece:
    """Where the memory of a buffer lies that `op` works on.

    Raises:
        CompileError: nobody has given it a place.
    """
    made = allocation_of(buffer)
    if made is None or "shared_offset" not in made.attributes:
        raise error_at(op, "works on a buffer without a place; run 'tileas-allocate-shared' before")
    whole = Buffer.of(made.results[0].type)
    assert whole is not None
    start = ir.IntegerAttr(made.attributes["shared_offset"]).value
    pipelined = made.results[0] if PIPELINED in made.attributes else None
    return start, start + stage_bytes(whole) * whole.stages, pipelined


def _overlap(left: set[Piece], right: set[Piece]) -> bool:
    return any(
        a < d and c < b and (one is None or other is None or one != other)
        for a, b, one in left
        for c, d, other in right
    )


def _touch(left: set[Piece], right: set[Piece]) -> bool:
    """Whether they have memory in common."""
    return any(a < d and c < b for a, b, _ in left for c, d, _ in right)


def _pieces(op: ir.OpView, kind: str) -> Iterator[Piece]:
    """What an operation reads or writes of shared memory."""
    for effect, value in buffer_effects(op):
        if effect == kind and is_shared(value.type):
            yield piece_of(op, value)
    if op.operation.name == "nv_tileaa.print" and kind == "read":
        yield from (piece_of(op, value) for value in op.operands if is_shared(value.type))


@dataclass
class AsyncProxy:
    """What the asynchronous proxy reads and writes of shared memory."""

    reads: set[Piece] = field(default_factory=set)
    writes: set[Piece] = field(default_factory=set)

    def add(self, region: ir.Region) -> AsyncProxy:
        """Take in what operations inside of `region` do."""
        for block in region.blocks:
            for op in block.operations:
                if reads_by_async_proxy(op):
                    self.reads |= set(_pieces(op, "read"))
                if writes_by_async_proxy(op):
                    self.writes |= set(_pieces(op, "write"))
                for inner in op.regions:
                    self.add(inner)
        return self


@dataclass
class _Pending:
    """What happened since the last barrier: pieces of shared memory that were read and written,
    global accesses made.

    Accesses stand under their first result, since operations hash by content.
    """

    reads: set[Piece] = field(default_factory=set)
    writes: set[Piece] = field(default_factory=set)
    accesses: set[ir.Value] = field(default_factory=set)
    #: Writes and reads of threads since the last fence, and writes of cp.async, which are done some
    #: `wait` later.
    unfenced: set[Piece] = field(default_factory=set)
    unfenced_reads: set[Piece] = field(default_factory=set)
    flying: set[Piece] = field(default_factory=set)

    def copy(self) -> _Pending:
        return _Pending(
            set(self.reads), set(self.writes), set(self.accesses), set(self.unfenced),
            set(self.unfenced_reads), set(self.flying),
        )  # fmt: skip

    def join(self, other: _Pending) -> bool:
        """Add what `other` holds; whether that changed anything."""
        before = self._sizes()
        self.reads |= other.reads
        self.writes |= other.writes
        self.accesses |= other.accesses
        self.unfenced |= other.unfenced
        self.unfenced_reads |= other.unfenced_reads
        self.flying |= other.flying
        return before != self._sizes()

    def _sizes(self) -> tuple[int, ...]:
        sets = self.reads, self.writes, self.accesses, self.unfenced, self.unfenced_reads
        return (*map(len, sets), len(self.flying))

    def clear(self) -> None:
        """All threads have met."""
        self.reads.clear()
        self.writes.clear()
        self.accesses.clear()

    def fence(self) -> None:
        """All threads have fenced."""
        self.unfenced.clear()
        self.unfenced_reads.clear()


@dataclass(frozen=True)
class InsertBarriers(Pass):
    """Put a `sync` before the operations that need one."""

    name = "tileas-insert-barriers"
    anchor = "func.func"
    preserves = ("axis",)
    statistics = {
        "barriers": "barriers in front of operations",
        "fences": "fences in front of barriers",
    }

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        walk = _Walk(cx.analysis(AliasAnalysis, op), AsyncProxy().add(op.regions[0]))
        walk.region(op.regions[0], _Pending())
        cx.count("barriers", walk.barriers)
        cx.count("fences", walk.fences)


class _Walk:
    def __init__(self, roots: AliasAnalysis, proxy: AsyncProxy) -> None:
        self.barriers = self.fences = 0
        self._proxy = proxy
        self._order = TokenOrder()
        self._roots = roots

    def region(self, region: ir.Region, pending: _Pending) -> None:
        for block in region.blocks:
            for op in block.operations:
                self._operation(op, pending)

    def _operation(self, op: ir.OpView, pending: _Pending) -> None:
        if op.name in ("scf.for", "scf.while"):
            # The body runs after itself: repeat until what it leaves behind adds nothing.
            while True:
                after, grown = pending.copy(), False
                for region in op.regions:
                    self.region(region, after)
                    # A `while` ends behind its first region, before the second clears anything.
                    grown |= pending.join(after)
                if not grown:
                    return
        elif op.name == "scf.if":
            self._before_copies(op, pending)
            branches = [pending.copy() for _ in op.regions]
            for region, branch in zip(op.regions, branches, strict=True):
                self.region(region, branch)
            pending.clear()
            pending.fence()
            for branch in branches:
                pending.join(branch)
        elif op.name == _SYNC:
            self._fence_before(op, pending)
            pending.clear()
        elif op.name == _FENCE and ir.StringAttr(op.attributes["proxy"]).value == "async":
            pending.fence()
        elif op.name == _WAIT and ir.StringAttr(op.attributes["group"]).value == "cp.async":
            pending.unfenced |= pending.flying
        else:
            if op.name in ACCESSES:
                self._access(op, pending)
            self._buffers(op, pending)

    def _before_copies(self, op: ir.OpView, pending: _Pending) -> None:
        """Meet before a branch that fills stages of a loop, as others like it follow."""
        inside = [inner for block in op.regions[0].blocks for inner in block.operations]
        written = {piece for inner in inside for piece in _pieces(inner, "write")}
        filled = {piece for piece in written if piece[2] is not None}
        if _overlap(filled, pending.reads | pending.writes):
            self._meet_before(op, pending)
            pending.clear()

    def _buffers(self, op: ir.OpView, pending: _Pending) -> None:
        """Others' writes before reads, others' reads and writes before writes."""
        reads, writes = (set(_pieces(op, kind)) for kind in ("read", "write"))
        if op.operation.name in EXCHANGES:
            # Writes, meets the others, and reads.
            if _overlap(writes, pending.reads | pending.writes):
                self._meet_before(op, pending)
            pending.clear()
        elif (
            _overlap(reads, pending.writes)
            or _overlap(writes, pending.reads | pending.writes)
            or (reads_by_async_proxy(op) and _touch(reads, pending.unfenced))
            or (
                writes_by_async_proxy(op)
                and _overlap(writes, pending.unfenced | pending.unfenced_reads)
            )
        ):
            self._meet_before(op, pending)
            pending.clear()
        pending.reads |= reads
        if op.operation.name not in EXCHANGES:
            pending.writes |= writes
        if op.operation.name in _CP_ASYNC:
            pending.flying |= writes
        elif not writes_by_async_proxy(op):
            pending.unfenced |= writes
        if not reads_by_async_proxy(op):
            pending.unfenced_reads |= reads

    def _access(self, op: ir.OpView, pending: _Pending) -> None:
        if self._conflicts(op, pending.accesses):
            self._meet_before(op, pending)
            pending.clear()
        pending.accesses.add(op.results[0])

    def _meet_before(self, op: ir.OpView, pending: _Pending) -> None:
        self.barriers += 1
        self._fence_before(op, pending)
        ir.Operation.create(_SYNC, loc=op.location, ip=ir.InsertionPoint(op))

    def _fence_before(self, op: ir.OpView, pending: _Pending) -> None:
        """A fence where the next thing behind `op` may be an access by the asynchronous proxy: a
        read of what threads wrote, or a write of what they wrote or read.
        """
        proxy = self._proxy
        written = _touch(pending.unfenced, proxy.reads | proxy.writes)
        if not written and not _touch(pending.unfenced_reads, proxy.writes):
            return
        self.fences += 1
        attributes = {"proxy": ir.StringAttr.get("async")}
        ir.Operation.create(
            _FENCE, attributes=attributes, loc=op.location, ip=ir.InsertionPoint(op)
        )
        pending.fence()

    def _conflicts(self, op: ir.OpView, earlier: set[ir.Value]) -> bool:
        if not earlier or op.token is None:
            return False
        return any(
            self._meets(maker(result), op) for result in self._order.before(op.token) & earlier
        )

    def _meets(self, before: ir.OpView, op: ir.OpView) -> bool:
        """Whether one thread may see what another did in an earlier access."""
        if is_weak(op) and is_weak(before):
            if only_reads(op) and only_reads(before):
                return False
            if not may_alias(self._roots.of_access(before), self._roots.of_access(op)):
                return False
        return not _same_thread_touches_same(before, op)


def _same_thread_touches_same(before: ir.OpView, after: ir.OpView) -> bool:
    """Whether both touch one tile with one layout, each element by one thread only."""
    if not (before.name.startswith("nv_tileas.tiled") and after.name.startswith("nv_tileas.tiled")):
        return False
    if not is_same_view(before.view, after.view):
        return False
    view = tiled_view(before.view)
    places = list(before.coords), list(after.coords)
    one_tile = places[0] == places[1] and all(is_made_once(place) for place in places[0])
    # Tiles of a view whose elements lie apart are equal or disjoint.
    if not (tile_apart(view) if one_tile else elements_apart(view) and view.is_grid):
        return False
    layouts = [
        layout_of((op.result if op.name in LOADS else op.value).type) for op in (before, after)
    ]
    first = layouts[0]
    return first is not None and first == layouts[1] and first.is_injective
