"""tileas-insert-barriers: a block-wide barrier where threads would meet each other's data.

Walks the function with the accesses since the last barrier. A `sync` goes before an operation
if it writes a buffer where others may still read or write, if it reads one that others may have
written, or if its token orders it after an access
to global memory that another thread may have made (of memory that may be the same, or one that
others may wait for), cp.async included. Scalars are the same in every thread, so
branches and loops are taken together and a barrier inside them is safe.

Where the asynchronous proxy reads a buffer that threads have written, the writers fence before
that barrier (PTX ISA, "Async proxy"): before each `sync` behind which something unfenced may be
read so, and, where none stands between, before one of its own. Accesses of threads to tensor
memory are kept on their side of a barrier by fences around it, and where pairs of blocks make
products, of the next one at which blocks meet, too. No mbarrier whose phases threads count ends one
before all have seen the one before. What such mbarriers order needs no `sync`: the thread that
begins products may have been waiting alone for all others (`analysis/heard.py`).

Where copies of one block go to all of its cluster, the blocks meet before a loop fills stages in
memory that one of them used for something else since they met.

Agents of a switch run side by side: each is walked by itself, and its own threads meet. What goes
from one to another waits for barriers that say so. At the switch's end all meet.

Bulk stores go on behind the operation that begins them. The thread that began them waits before
somebody overwrites what they may still read, a tensor map among it, before an access that a token
orders behind them, and, as memory of a block ends with it, before the kernel returns.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext
from tile_tileas.analysis.accumulators import made_by_pairs
from tile_tileas.analysis.alias import (
    AliasAnalysis,
    elements_apart,
    is_made_once,
    is_same_view,
    may_alias,
    tile_apart,
)
from tile_tileas.analysis.pieces import Piece, in_tensor, overlap, piece_of, pieces, touch
from tile_tileas.analysis.proxies import is_bulk_store, reads_by_async_proxy, writes_by_async_proxy
from tile_tileas.analysis.tokens import (
    ACCESSES,
    ASYNC_LOADS,
    LOADS,
    TokenOrder,
    is_weak,
    only_reads,
)
from tile_tileas.analysis.unmet import (
    BULK,
    BULK_READ,
    GLOBAL_PROXY,
    SHARED_PROXY,
    AsyncProxy,
    Pending,
    goes_to_all,
)
from tile_tileas.analysis.views import maker, tiled_view
from tile_tileas.dialect import layout_of
from tile_tileas.dialect.agents import SWITCH, agents_of
from tile_tileas.dialect.barriers import LEADER, TEAM
from tile_tileas.dialect.buffers import Barrier
from tile_tileas.dialect.cluster import ORDERS_ACCESSES
from tile_tileas.dialect.exchange import EXCHANGES
from tile_tileas.dialect.fields import operand_of
from tile_tileas.dialect.tensor import UMMA
from tile_tileas.kernel_spec import SPEC, num_warps
from tile_tileas.pipelining.multistage import FILLS

_SYNC, _FENCE, _WAIT = "nv_tileas.sync", "nv_tileas.fence", "nv_tileas.async_wait"
_RETURN, _FILL = "func.return", "nv_tileas.fill_tma_desc"
_TMEM_FENCE = "nv_tileas.tmem_fence"
_ARRIVE, _TURN = "nv_tileas.barrier_arrive", "nv_tileas.barrier_turn"
_TURNS = (_ARRIVE, "nv_tileas.barrier_wait")
#: Where all threads of the block meet, among others; or of all blocks of a cluster.
_CLUSTER_SYNC = "nv_tileas.cluster_sync"
_MEETINGS = (_SYNC, _CLUSTER_SYNC)
#: A meeting of a cluster in two halves, and what stands for its barrier.
_PART, _REST = "nv_tileas.cluster_arrive", "nv_tileas.cluster_wait"
_OF_CLUSTER: Piece = (-1, -1, None)


@dataclass(frozen=True)
class InsertBarriers(Pass):
    """Put a `sync` before the operations that need one."""

    name = "tileas-insert-barriers"
    anchor = "func.func"
    preserves = ("axis",)
    statistics = {
        "barriers": "barriers in front of operations",
        "fences": "fences in front of barriers",
        "waits": "waits for bulk stores",
    }

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        order = TokenOrder()
        proxy = AsyncProxy(order).add(op.regions[0])
        threads = num_warps(op) * cx.target.warp_size if SPEC in op.attributes else 0
        roots, pairs = cx.analysis(AliasAnalysis, op), made_by_pairs(op)
        walk = _Walk(roots, order, proxy, threads, pairs=pairs)
        walk.region(op.regions[0], Pending())
        cx.count("barriers", walk.barriers)
        cx.count("fences", walk.fences)
        cx.count("waits", walk.waits)


class _Walk:
    def __init__(
        self,
        roots: AliasAnalysis,
        order: TokenOrder,
        proxy: AsyncProxy,
        threads: int,
        *,
        pairs: bool,
    ) -> None:
        self.barriers = self.fences = self.waits = 0
        #: Barriers with a stage for each team.
        self._of_teams: set[Piece] = set()
        self._pairs = pairs
        self._to_all = proxy.to_all
        self._proxy = proxy
        self._order, self._here = order, TokenOrder(carried=False)
        self._roots = roots
        self._threads = threads

    def region(self, region: ir.Region, pending: Pending) -> None:
        for block in region.blocks:
            for op in block.operations:
                self._operation(op, pending)

    def _operation(self, op: ir.OpView, pending: Pending) -> None:
        if op.name in ("scf.for", "scf.while"):
            if FILLS in op.attributes:
                self._before_copies(op, pending)
            self._loop(op, pending)
        elif op.name == SWITCH:
            self._agents(op, pending)
        elif op.name == "scf.if":
            self._before_copies(op, pending)
            branches = [pending.copy() for _ in op.regions]
            for region, branch in zip(op.regions, branches, strict=True):
                self.region(region, branch)
            pending.become(branches)
        elif not self._orders(op, pending):
            if op.name in (*ACCESSES, *ASYNC_LOADS):
                self._access(op, pending)
            self._buffers(op, pending)

    def _agents(self, op: ir.OpView, pending: Pending) -> None:
        """Each agent leaves nothing behind that others would have to wait for."""
        branches: list[Pending] = []
        for agent in agents_of(op):
            branch, body = pending.copy(), agent.regions[0].blocks[0]
            self.region(agent.regions[0], branch)
            end = body.operations[len(body.operations) - 1]
            if branch.leaving:
                self._wait_before(end, BULK_READ, branch)
            self._fence_before(end, branch)
            self._fence_tensor(end, branch)
            branches.append(branch)
        pending.become(branches)
        pending.clear()

    def _orders(self, op: ir.OpView, pending: Pending) -> bool:
        """Take in an operation that orders others, if `op` is one."""
        if op.name in _MEETINGS:
            if ORDERS_ACCESSES in op.attributes and pending.landing:
                self._wait_before(op, BULK, pending)
            self._fence_before(op, pending)
            if op.name == _CLUSTER_SYNC:
                pending.met_in_cluster()
            self._fence_tensor(op, pending)
            pending.clear()
        elif op.name == _PART:
            self._fence_before(op, pending)
            pending.unheard.all_arrive(_OF_CLUSTER)
        elif op.name == _REST:
            pending.unheard.wait(_OF_CLUSTER, first_alone=False)
        elif op.name == _FENCE:
            pending.fence(ir.StringAttr(op.attributes["proxy"]).value)
        elif op.name == _TMEM_FENCE:
            if ir.StringAttr(op.attributes["side"]).value == "before":
                pending.tensor.clear()
        elif op.name == _WAIT:
            self._waited(op, pending)
        elif op.name in _TURNS:
            self._turn(op, pending)
        elif op.name == _RETURN and pending.leaving:
            self._wait_before(op, BULK_READ, pending)
        else:
            return False
        return True

    def _turn(self, op: ir.OpView, pending: Pending) -> None:
        """A barrier whose turns threads count may end the next one when all have seen the last, as
        far as whoever arrives knows. It passes on what was known then.
        """
        barrier, unheard = piece_of(op, op.operands[0]), pending.unheard
        of_team = TEAM in op.attributes
        if of_team:
            self._of_teams.add(barrier)
        if op.name == _ARRIVE:
            first = ir.StringAttr(op.attributes["kind"]).value == "tcgen05"
            known = unheard.first_thread if first else unheard.any_thread
            if overlap({barrier}, known.awaited):
                self._meet_before(op, pending)
                pending.clear()
            if first:
                unheard.first_arrives(barrier)
            elif _all_arrive(op, self._threads, of_team=of_team):
                self._fence_before(op, pending)
                unheard.all_arrive(barrier)
        elif _is_counted(op.operands[2]):
            alone = LEADER in op.attributes
            if of_team:
                unheard.wait_in_team(barrier, self._of_teams, first_alone=alone)
            else:
                unheard.wait(barrier, first_alone=alone)
            if not alone:
                unheard.add(awaited={barrier})

    def _loop(self, op: ir.OpView, pending: Pending) -> None:
        """The body runs after itself: repeat until what it leaves behind adds nothing."""
        grown = True
        while grown:
            after, grown = pending.copy(), False
            for region in op.regions:
                after.grow_older()
                self.region(region, after)
                # A `while` ends behind its first region, before the second clears anything.
                grown |= pending.join(after)
        pending.grow_older()

    @staticmethod
    def _waited(op: ir.OpView, pending: Pending) -> None:
        group = ir.StringAttr(op.attributes["group"]).value
        if group == "cp.async":
            pending.unfenced |= pending.flying
        elif group in (BULK, BULK_READ) and not ir.IntegerAttr(op.attributes["pending"]).value:
            pending.waited(group)

    def _before_copies(self, op: ir.OpView, pending: Pending) -> None:
        """Meet before a branch or a loop that fills stages of a loop, as others like it follow."""
        inside = list(_filling(op))
        written = {piece for inner in inside for piece in pieces(inner, "write")}
        filled = {piece for piece in written if piece[2] is not None}
        loads = [inner for inner in inside if inner.name in ASYNC_LOADS]
        done = any(self._comes_behind(load, pending) & pending.landing for load in loads)
        if overlap(filled, pending.leaving) and not done:  # else they are done, not only read
            self._wait_before(op, BULK_READ, pending)
        for load in loads:
            self._follow(load, op, pending)
        known = pending.unheard.any_thread
        to_all = any(map(goes_to_all, inside)) and overlap(filled, pending.filled_by_others)
        if to_all or overlap(filled, known.reads | known.writes):
            self._meet_before(op, pending, in_cluster=to_all)
            pending.clear()

    def _buffers(self, op: ir.OpView, pending: Pending) -> None:
        """Others' writes before reads, others' reads and writes before writes."""
        reads, writes = (set(pieces(op, kind)) for kind in ("read", "write"))
        if not (reads or writes or op.operation.name in (_FILL, *EXCHANGES)):
            return
        if overlap(writes, pending.leaving) or (op.operation.name == _FILL and pending.leaving):
            self._wait_before(op, BULK_READ, pending)
        to_all = goes_to_all(op) and overlap(writes, pending.filled_by_others)
        if op.operation.name in EXCHANGES:
            # Writes, meets the others, and reads.
            known = pending.unheard.any_thread
            if overlap(writes, known.reads | known.writes):
                self._meet_before(op, pending)
            self._fence_tensor(op, pending)
            pending.clear()
        elif to_all or _meets_others(op, reads, writes, pending):
            self._meet_before(op, pending, in_cluster=to_all)
            pending.clear()
        self._remember(op, reads, writes, pending)

    def _remember(
        self, op: ir.OpView, reads: set[Piece], writes: set[Piece], pending: Pending
    ) -> None:
        """What others have to hear of, before they use the same memory."""
        unheard = pending.unheard
        if self._to_all:
            pending.filled_by_others |= (reads | writes) - in_tensor(reads | writes)
        if op.operation.name in UMMA:
            return  # all threads wait for it, before its buffers are used for something else
        tensor = in_tensor(reads | writes)
        pending.tensor |= tensor
        if self._pairs:
            pending.tensor_of_pair |= tensor
        if is_bulk_store(op):
            pending.leaving |= reads
        else:
            unheard.add(reads=reads)
        if op.operation.name not in EXCHANGES:
            unheard.add(writes=writes - _awaited(op, writes))
        if op.operation.name in ASYNC_LOADS:
            pending.flying |= writes
        elif not writes_by_async_proxy(op):
            pending.unfenced |= writes - tensor
        if not reads_by_async_proxy(op):
            pending.unfenced_reads |= reads - tensor

    def _access(self, op: ir.OpView, pending: Pending) -> None:
        """Let an access follow those that it comes behind, and others this one."""
        self._follow(op, op, pending)
        if is_bulk_store(op):
            pending.landing.add(op.results[0])
            return
        if op.name in ASYNC_LOADS:  # the loop that waits for it says when others may follow
            return
        pending.accesses.add(op.results[0])
        if op.results[0] in self._proxy.followed:
            pending.unfenced_accesses.add(op.results[0])

    def _follow(self, op: ir.OpView, place: ir.OpView, pending: Pending) -> None:
        """Before `place`, which is or holds `op`: meet who made accesses that `op` comes behind;
        wait for bulk stores among them.
        """
        earlier, stores = self._comes_behind(op, pending), is_bulk_store(op)
        if earlier & pending.landing:
            self._wait_before(place, BULK, pending)
            if stores:  # by the thread that has waited
                pending.stores_done()
        unfenced = stores and self._conflicts(op, earlier & pending.unfenced_accesses)
        if unfenced or self._conflicts(op, earlier & pending.accesses):
            self._meet_before(place, pending)
            pending.clear()

    def _comes_behind(self, op: ir.OpView, pending: Pending) -> frozenset[ir.Value]:
        """The accesses that the token of `op` waits for: of this iteration of the loops around,
        what it is made of here; of what may be left of earlier ones, whatever it may carry from
        those.
        """
        token = operand_of(op, "token")
        if token is None:
            return frozenset()
        carried = self._order.before(token) & pending.older
        return carried | self._here.before(token)

    def _wait_before(self, op: ir.OpView, group: str, pending: Pending) -> None:
        """The thread that begins bulk stores waits for all of them."""
        self.waits += 1
        attributes = {
            "pending": ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 0),
            "group": ir.StringAttr.get(group),
        }
        ir.Operation.create(_WAIT, attributes=attributes, loc=op.location, ip=ir.InsertionPoint(op))
        pending.waited(group)

    def _meet_before(self, op: ir.OpView, pending: Pending, *, in_cluster: bool = False) -> None:
        self.barriers += 1
        self._fence_before(op, pending)
        name = _CLUSTER_SYNC if in_cluster else _SYNC
        made = ir.Operation.create(name, loc=op.location, ip=ir.InsertionPoint(op))
        if in_cluster:
            pending.met_in_cluster()
        self._fence_tensor(made.opview, pending)

    def _fence_tensor(self, meeting: ir.OpView, pending: Pending) -> None:
        """Fences on both sides of a meeting between threads that work on tensor memory in turn."""
        if not pending.tensor:
            return
        pending.tensor.clear()
        for side in ("before", "after"):
            before = side == "before"
            place = ir.InsertionPoint(meeting) if before else ir.InsertionPoint.after(meeting)
            attributes = {"side": ir.StringAttr.get(side)}
            ir.Operation.create(_TMEM_FENCE, attributes=attributes, loc=meeting.location, ip=place)

    def _fence_before(self, op: ir.OpView, pending: Pending) -> None:
        """Fences where the next thing behind `op` may be an access by the asynchronous proxy: of
        shared memory, a read of what threads wrote, or a write of what they wrote or read; of
        global memory, a store behind accesses of threads.
        """
        proxy = self._proxy
        written = touch(pending.unfenced, proxy.reads | proxy.writes)
        if written or touch(pending.unfenced_reads, proxy.writes):
            self._fence(op, SHARED_PROXY, pending)
        if pending.unfenced_accesses:
            self._fence(op, GLOBAL_PROXY, pending)

    def _fence(self, op: ir.OpView, proxy: str, pending: Pending) -> None:
        self.fences += 1
        pending.fence(proxy)
        attributes = {"proxy": ir.StringAttr.get(proxy)}
        ir.Operation.create(
            _FENCE, attributes=attributes, loc=op.location, ip=ir.InsertionPoint(op)
        )

    def _conflicts(self, op: ir.OpView, earlier: set[ir.Value] | frozenset[ir.Value]) -> bool:
        """Whether one thread may see what others did in one of the accesses before it."""
        return any(self._meets(maker(result), op) for result in earlier)

    def _meets(self, before: ir.OpView, op: ir.OpView) -> bool:
        """Whether one thread may see what another did in an earlier access."""
        if is_weak(op) and is_weak(before):
            if only_reads(op) and only_reads(before):
                return False
            if not may_alias(self._roots.of_access(before), self._roots.of_access(op)):
                return False
        return not _same_thread_touches_same(before, op)


def _filling(op: ir.OpView) -> Iterator[ir.OpView]:
    """What a branch that may fill stages is made of, or the branches of a loop that does."""
    for inner in op.regions[0].blocks[0].operations:
        yield from _filling(inner) if op.name == "scf.for" and inner.name == "scf.if" else (inner,)


def _awaited(op: ir.OpView, writes: set[Piece]) -> set[Piece]:
    """What whoever reads it waits for on a barrier, which says more than meeting others: copies
    outside of loops. Stages of loops are ordered by the loop.
    """
    return {piece for piece in writes if piece[2] is None} if writes_by_async_proxy(op) else set()


def _meets_others(op: ir.OpView, reads: set[Piece], writes: set[Piece], pending: Pending) -> bool:
    """Whether threads that `op` runs on have to hear of others before it."""
    unheard = pending.unheard
    known = unheard.first_thread if op.operation.name in UMMA else unheard.any_thread
    unfenced = pending.unfenced | pending.unfenced_reads
    return (
        overlap(reads, known.writes)
        or overlap(writes, known.reads | known.writes)
        or (reads_by_async_proxy(op) and touch(reads, pending.unfenced))
        or (writes_by_async_proxy(op) and overlap(writes, unfenced))
    )


def _is_counted(phase: ir.Value) -> bool:
    """Whether each thread counts the turns of a barrier, and waits for the next one."""
    return not isinstance(phase.owner, ir.Block) and phase.owner.name == _TURN


def _all_arrive(op: ir.OpView, threads: int, *, of_team: bool) -> bool:
    """Whether all `threads` of the block arrive at a barrier whose turns are counted, or all of
    each team at its own.
    """
    barrier = Barrier.of(op.operands[0].type)
    assert barrier is not None, "verified"
    counted = any(use.owner.operation.name == _TURN for use in op.operands[0].uses)
    each = ir.StringAttr(op.attributes["by"]).value == "thread"
    there = barrier.arrivals * (barrier.stages if of_team else 1)
    return counted and each and there == threads


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
