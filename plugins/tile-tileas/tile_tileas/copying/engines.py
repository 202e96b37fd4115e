"""Loads that the copy engine makes, by tensor maps or in bulk, and who copies the rest."""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.mlir import ir
from tile_tileas.analysis.bounds import BoundsAnalysis
from tile_tileas.copying.bulk import BulkLoads
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.pipelining.cp_async import CpAsync
from tile_tileas.pipelining.filling import Filling
from tile_tileas.pipelining.multistage import Fillings
from tile_tileas.pipelining.prefetch import Prefetch
from tile_tileas.tma.filling import TmaLoads


class EngineLoads:
    """Of one loop; which loads are taken is known once all have been asked for."""

    def __init__(self, func: ir.Operation, loop: ir.OpView, bounds: BoundsAnalysis) -> None:
        self.tma = TmaLoads(func, loop, bounds)
        self.bulk = BulkLoads.of_loop(func, loop)

    def takes(self, load: ir.OpView, buffer: Buffer) -> bool:
        """Whether the copy engine fills `buffer` with the tile of `load`."""
        return self.tma.takes(load, buffer) or self.bulk.takes(load, buffer)

    @property
    def overhead(self) -> int:
        """Bytes beside the stages."""
        return self.tma.overhead + (self.bulk.overhead if self.bulk.copies else 0)

    def fillings(
        self,
        loads: Sequence[Prefetch],
        readers: int = 0,
        *,
        pair: bool = False,
        copier: bool = False,
        once: bool = False,
    ) -> Fillings:
        """Who copies which of the loads; `readers` of tensor maps' stages, `pair`, `copier` and
        `once`, as for `TmaLoads`.
        """
        by_tma = [load for load in loads if load.load.results[0] in self.tma.copies]
        in_bulk = [load for load in loads if load.load.results[0] in self.bulk.copies]
        found: list[tuple[Filling, list[Prefetch]]] = []
        if by_tma:
            filling = self.tma.filling(readers, pair=pair, copier=copier, once=once)
            found.append((filling, [self.tma.aligned(load) for load in by_tma]))
        if in_bulk:
            found.append((self.bulk.filling(), in_bulk))
        others = [load for load in loads if not load.by_engine]
        if others:
            found.append((CpAsync(), others))
        return found
