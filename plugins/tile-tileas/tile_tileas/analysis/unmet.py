"""What threads of a block did since all of them met, for `tileas-insert-barriers`."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from tile_core.mlir import ir
from tile_tileas.analysis.heard import Unheard
from tile_tileas.analysis.pieces import Piece, pieces
from tile_tileas.analysis.proxies import is_bulk_store, reads_by_async_proxy, writes_by_async_proxy
from tile_tileas.analysis.tokens import TokenOrder
from tile_tileas.analysis.views import maker
from tile_tileas.dialect.barriers import CTAS, PAIR
from tile_tileas.dialect.fields import operand_of

_TO_ALL = "nv_tileas.async_tiled_tma_load"
#: Fences between accesses of threads and of the asynchronous proxy.
SHARED_PROXY, GLOBAL_PROXY = "async", "async.global"
#: Groups of bulk stores: all is done, or all is read.
BULK, BULK_READ = "bulk", "bulk.read"


@dataclass
class AsyncProxy:
    """What the asynchronous proxy reads and writes of shared memory, and the accesses of global
    memory that come before its stores. `to_all`: copies of one block go to all of its cluster.
    """

    order: TokenOrder
    reads: set[Piece] = field(default_factory=set)
    writes: set[Piece] = field(default_factory=set)
    followed: set[ir.Value] = field(default_factory=set)
    to_all: bool = False

    def add(self, region: ir.Region) -> AsyncProxy:
        """Take in what operations inside of `region` do."""
        for block in region.blocks:
            for op in block.operations:
                if reads_by_async_proxy(op):
                    self.reads |= set(pieces(op, "read"))
                self.to_all |= goes_to_all(op)
                if writes_by_async_proxy(op):
                    self.writes |= set(pieces(op, "write"))
                if is_bulk_store(op):
                    token = operand_of(op, "token")
                    self.followed |= set() if token is None else self.order.before(token)
                for inner in op.regions:
                    self.add(inner)
        return self


@dataclass
class Pending:
    """What happened since the last barrier: pieces of shared memory that were read and written,
    global accesses made.

    Accesses stand under their first result, since operations hash by content.
    """

    unheard: Unheard = field(default_factory=Unheard)
    accesses: set[ir.Value] = field(default_factory=set)
    #: Writes and reads of threads since the last fence, and writes of cp.async, which are done some
    #: `wait` later.
    unfenced: set[Piece] = field(default_factory=set)
    unfenced_reads: set[Piece] = field(default_factory=set)
    flying: set[Piece] = field(default_factory=set)
    #: Accesses of threads since the last fence of global memory that a bulk store comes after.
    unfenced_accesses: set[ir.Value] = field(default_factory=set)
    #: Bulk stores that nobody has waited for: what they read, and the stores themselves.
    leaving: set[Piece] = field(default_factory=set)
    landing: set[ir.Value] = field(default_factory=set)
    #: Those of the accesses above that an earlier iteration of a loop may have made.
    older: set[ir.Value] = field(default_factory=set)
    #: What threads read and wrote of tensor memory since the last fence of that.
    tensor: set[Piece] = field(default_factory=set)
    #: The same since blocks of a cluster have met, where products of pairs use it in both.
    tensor_of_pair: set[Piece] = field(default_factory=set)
    #: What the block did to shared memory since then, where others copy into it.
    filled_by_others: set[Piece] = field(default_factory=set)

    def _sets(self) -> list[set[Piece] | set[ir.Value]]:
        """All but what is told apart by who has heard of it."""
        return [getattr(self, one.name) for one in fields(self)[1:]]

    def copy(self) -> Pending:
        copied = Pending(self.unheard.copy())
        copied.join(self)
        return copied

    def join(self, other: Pending) -> bool:
        """Add what `other` holds; whether that changed anything."""
        before = [len(one) for one in self._sets()]
        for mine, more in zip(self._sets(), other._sets(), strict=True):
            mine.update(more)  # pyright: ignore[reportArgumentType]
        grown = self.unheard.join(other.unheard)
        return grown or before != [len(one) for one in self._sets()]

    def become(self, branches: list[Pending]) -> None:
        """One of the branches was taken."""
        for one in self._sets():
            one.clear()
        self.unheard = branches[0].unheard.copy()
        for branch in branches:
            self.join(branch)

    def clear(self) -> None:
        """All threads have met."""
        self.unheard.met()
        self.accesses.clear()
        self._forget()

    def grow_older(self) -> None:
        """An iteration of a loop begins, or its last one has ended."""
        self.older |= self.accesses | self.landing | self.unfenced_accesses

    def _forget(self) -> None:
        self.older &= self.accesses | self.landing | self.unfenced_accesses

    def met_in_cluster(self) -> None:
        """All threads of all blocks of the cluster are about to meet."""
        self.tensor |= self.tensor_of_pair
        self.tensor_of_pair.clear()
        self.filled_by_others.clear()

    def waited(self, group: str) -> None:
        """The thread that began bulk stores has waited for them; others know when they meet it."""
        self.unheard.add(reads=self.leaving)
        self.leaving.clear()
        if group == BULK:
            self.accesses |= self.landing
            self.landing.clear()

    def stores_done(self) -> None:
        """Bulk stores that the thread which began them has waited for; the next comes from it."""
        self.accesses = {one for one in self.accesses if not is_bulk_store(maker(one))}
        self._forget()

    def fence(self, proxy: str) -> None:
        """All threads have fenced."""
        if proxy == SHARED_PROXY:
            self.unfenced.clear()
            self.unfenced_reads.clear()
        elif proxy == GLOBAL_PROXY:
            self.unfenced_accesses.clear()
            self._forget()


def signals_others(region: ir.Region) -> bool:
    """Whether something in a region copies into other blocks of its cluster, or arrives at their
    barriers.
    """
    return any(
        goes_to_all(op)
        or any(name in op.attributes for name in (PAIR, CTAS))
        or any(map(signals_others, op.regions))
        for block in region.blocks
        for op in block.operations
    )


def goes_to_all(op: ir.OpView) -> bool:
    """Whether an operation copies into shared memory of other blocks, too."""
    return op.operation.name == _TO_ALL and operand_of(op, "mask") is not None
