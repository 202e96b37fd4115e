"""tileas-insert-barriers: a block-wide barrier where threads would meet each other's data.

Walks the function with the accesses since the last barrier. An operation gets `barrier_before`
if its scratch overlaps scratch that may still be read, or if its token orders it after an access
to global memory that another thread may have made. Scalars are the same in every thread, so
branches and loops are taken together and a barrier inside them is safe.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext
from tile_tileas.analysis.views import maker, tiled_view
from tile_tileas.dialect import layout_of

_LOADS = ("nv_tileas.load", "nv_tileas.tiled_load")
_STORES = ("nv_tileas.store", "nv_tileas.tiled_store")
_ATOMICS = ("nv_tileas.atomic_cas", "nv_tileas.atomic_rmw", "nv_tileas.multimem")
_ACCESSES = (*_LOADS, *_STORES, *_ATOMICS)


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
    """Mark the operations that need a barrier before them."""

    name = "tileas-insert-barriers"
    anchor = "func.func"
    preserves = ("axis",)
    statistics = {"barriers": "barriers in front of operations"}

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        walk = _Walk()
        walk.region(op.regions[0], _Pending())
        cx.count("barriers", len(walk.marked))


class _Walk:
    def __init__(self) -> None:
        self.marked: set[ir.Value] = set()
        self._orders: dict[ir.Value, frozenset[ir.Value]] = {}

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
        else:
            if op.name in _ACCESSES:
                self._access(op, pending)
            # An atomic operation passes its result on when it is done.
            if "shared_offset" in op.attributes:
                self._scratch(op, pending)

    def _scratch(self, op: ir.OpView, pending: _Pending) -> None:
        start = ir.IntegerAttr(op.attributes["shared_offset"]).value
        end = start + ir.IntegerAttr(op.attributes["shared_bytes"]).value
        if any(a < end and start < b for a, b in pending.scratch):
            self._mark(op)
        pending.clear()  # the barrier between its own stores and loads
        pending.scratch.add((start, end))

    def _access(self, op: ir.OpView, pending: _Pending) -> None:
        if self._conflicts(op, pending.accesses):
            self._mark(op)
            pending.clear()
        pending.accesses.add(op.results[0])

    def _mark(self, op: ir.OpView) -> None:
        if op.results[0] not in self.marked:
            self.marked.add(op.results[0])
            op.attributes["barrier_before"] = ir.UnitAttr.get()

    def _conflicts(self, op: ir.OpView, earlier: set[ir.Value]) -> bool:
        if not earlier or op.token is None:
            return False
        for result in self.ordered_after(op.token) & earlier:
            before = maker(result)
            reads_only = op.name in _LOADS and before.name in _LOADS
            if reads_only and _is_weak(op) and _is_weak(before):
                continue
            if not _same_thread_touches_same(before, op):
                return True
        return False

    def ordered_after(self, token: ir.Value) -> frozenset[ir.Value]:
        """Every access that `token` waits for, directly or through other accesses."""
        if token in self._orders:
            return self._orders[token]
        found: set[ir.Value] = set()
        seen: set[ir.Value] = set()
        stack = [token]
        while stack:
            value = stack.pop()
            if value in seen:
                continue
            seen.add(value)
            if not isinstance(value.owner, ir.Block):
                maker = value.owner
                if maker.name in _ACCESSES:
                    found.add(maker.results[0])
            stack += _token_sources(value)
        self._orders[token] = frozenset(found)
        return self._orders[token]


def _is_weak(op: ir.OpView | ir.Operation) -> bool:
    return ir.StringAttr(op.attributes["mem_semantic"]).value == "weak"


def _token_sources(token: ir.Value) -> list[ir.Value]:
    """The tokens that `token` is made of."""
    owner = token.owner
    if isinstance(owner, ir.Block):
        return _argument_sources(owner, ir.BlockArgument(token).arg_number)
    at = ir.OpResult(token).result_number
    if owner.name == "scf.for":
        return [owner.operands[3 + at], _yielded(owner.regions[0].blocks[0], at)]
    if owner.name == "scf.while":
        return [_yielded(owner.regions[0].blocks[0], 1 + at)]
    if owner.name == "scf.if":
        return [_yielded(region.blocks[0], at) for region in owner.regions]
    return [value for value in owner.operands if value.type == token.type]


def _argument_sources(block: ir.Block, at: int) -> list[ir.Value]:
    loop = block.owner
    if loop.name == "scf.for":
        return [loop.operands[2 + at], _yielded(block, at - 1)]
    if loop.name == "scf.while":
        before, after = (region.blocks[0] for region in loop.regions)
        if block == before:
            return [loop.operands[at], _yielded(after, at)]
        return [_yielded(before, 1 + at)]
    return []


def _yielded(block: ir.Block, at: int) -> ir.Value:
    return block.operations[len(block.operations) - 1].operands[at]


def _is_function_level(op: ir.OpView) -> bool:
    parent = op.operation.parent
    return parent is not None and parent.name == "func.func"


def _elements_apart(view: ir.Value) -> bool:
    """Whether no two elements of a tile can share an address: one axis, a constant step."""
    record = tiled_view(view)
    axes = [axis for axis, extent in enumerate(record.tile) if extent > 1]
    steps = [record.memref.strides[record.dim_map[axis]] for axis in axes]
    return len(steps) <= 1 and all(isinstance(step, int) and step > 0 for step in steps)


def _same_thread_touches_same(before: ir.OpView, after: ir.OpView) -> bool:
    """Whether both touch one tile with one layout, each element by one thread only."""
    if not (before.name.startswith("nv_tileas.tiled") and after.name.startswith("nv_tileas.tiled")):
        return False
    # Tiles of one view are equal or disjoint, but a view made inside a loop may be another one
    # each time round.
    if before.view != after.view or not _is_function_level(maker(before.view)):
        return False
    if not _elements_apart(before.view) or not tiled_view(before.view).is_grid:
        return False
    layouts = [
        layout_of((op.result if op.name in _LOADS else op.value).type) for op in (before, after)
    ]
    first = layouts[0]
    return first is not None and first == layouts[1] and first.is_injective
