"""tileas-insert-barriers: a block-wide barrier where threads would meet each other's data.

Walks the function with the accesses since the last barrier. A `sync` goes before an operation
if its scratch overlaps scratch that may still be read, or if its token orders it after an access
to global memory that another thread may have made (of memory that may be the same, or one that
others may wait for). Scalars are the same in every thread, so
branches and loops are taken together and a barrier inside them is safe.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext
from tile_tileas.analysis.alias import (
    AliasAnalysis,
    elements_apart,
    is_made_once,
    is_same_view,
    may_alias,
    tile_apart,
)
from tile_tileas.analysis.tokens import ACCESSES, LOADS, TokenOrder, is_weak, only_reads
from tile_tileas.analysis.views import maker, tiled_view
from tile_tileas.dialect import layout_of

_SYNC = "nv_tileas.sync"


@dataclass
class _Pending:
    """What happened since the last barrier: scratch being read, global accesses made.

    Accesses stand under their first result, since operations hash by content.
    """

    scratch: set[tuple[int, int]] = field(default_factory=set)
    accesses: set[ir.Value] = field(default_factory=set)

    def copy(self) -> _Pending:
        return _Pending(set(self.scratch), set(self.accesses))

    def join(self, other: _Pending) -> bool:
        """Add what `other` holds; whether that changed anything."""
        before = len(self.scratch), len(self.accesses)
        self.scratch |= other.scratch
        self.accesses |= other.accesses
        return before != (len(self.scratch), len(self.accesses))

    def clear(self) -> None:
        self.scratch.clear()
        self.accesses.clear()


@dataclass(frozen=True)
class InsertBarriers(Pass):
    """Put a `sync` before the operations that need one."""

    name = "tileas-insert-barriers"
    anchor = "func.func"
    preserves = ("axis",)
    statistics = {"barriers": "barriers in front of operations"}

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        walk = _Walk(cx.analysis(AliasAnalysis, op))
        walk.region(op.regions[0], _Pending())
        cx.count("barriers", walk.barriers)


class _Walk:
    def __init__(self, roots: AliasAnalysis) -> None:
        self.barriers = 0
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
            branches = [pending.copy() for _ in op.regions]
            for region, branch in zip(op.regions, branches, strict=True):
                self.region(region, branch)
            pending.clear()
            for branch in branches:
                pending.join(branch)
        elif op.name == _SYNC:
            pending.clear()
        else:
            if op.name in ACCESSES:
                self._access(op, pending)
            # An atomic operation passes its result on when it is done.
            if "shared_offset" in op.attributes:
                self._scratch(op, pending)

    def _scratch(self, op: ir.OpView, pending: _Pending) -> None:
        start = ir.IntegerAttr(op.attributes["shared_offset"]).value
        end = start + ir.IntegerAttr(op.attributes["shared_bytes"]).value
        if any(a < end and start < b for a, b in pending.scratch):
            self._meet_before(op)
        pending.clear()  # the barrier between its own stores and loads
        pending.scratch.add((start, end))

    def _access(self, op: ir.OpView, pending: _Pending) -> None:
        if self._conflicts(op, pending.accesses):
            self._meet_before(op)
            pending.clear()
        pending.accesses.add(op.results[0])

    def _meet_before(self, op: ir.OpView) -> None:
        self.barriers += 1
        ir.Operation.create(_SYNC, loc=op.location, ip=ir.InsertionPoint(op))

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
