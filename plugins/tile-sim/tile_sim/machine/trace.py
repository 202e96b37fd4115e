"""What a recorder of a launch is told, in the order of each warp.

`Settings.trace` is None but for tools that need to know which code every warp ran, with the
addresses and sizes of what it asked for: tile-time gives such an object. None of the calls may
change anything. `wave.cursor` names the instruction that runs; `rows` are warps of the wave.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from tile_sim.machine.access import Part
    from tile_sim.machine.group import Group
    from tile_sim.machine.wave import Wave
    from tile_sim.program.flow import Block

Array = np.ndarray


class Trace(Protocol):
    """A recorder."""

    def block(self, wave: Wave, block: Block, g: Group) -> None:
        """Threads enter a block; what follows belongs to it."""
        ...

    def access(self, wave: Wave, kind: str, g: Group, part: Part, count: int) -> None:
        """A load, store or atomic (`kind`) of `count` elements by each lane."""
        ...

    def copy(self, wave: Wave, rows: Array, lanes: Array, start: Array, width: int) -> None:
        """`cp.async` of lanes of warps from global addresses."""
        ...

    def mbarrier(
        self, wave: Wave, what: str, rows: Array, places: Array, counts: Array, extra: Array
    ) -> None:
        """`what`: init (counts), arrive (counts, bytes expected), expect (-, bytes), copies
        (`cp.async.mbarrier.arrive`), wait (parities, whether it was complete). Places are 64-bit
        words of the wave's shared memory, one for each lane."""
        ...

    def bulk(
        self, wave: Wave, row: int, size: int, address: int, inner: int, ends: list[tuple[int, int]]
    ) -> None:
        """A bulk or tensor load of `size` bytes for each of `ends`: (CTA, place of the mbarrier);
        no ends: a store. `address` is the first byte in global memory, `inner` the bytes of the
        innermost extent."""
        ...

    def product(
        self, wave: Wave, row: int, shape: tuple[int, int, int], pair: bool, a: bool
    ) -> None:
        """`tcgen05.mma` of M, N, K; `pair` for two CTAs, `a` for A in tensor memory."""
        ...

    def commit(self, wave: Wave, row: int, places: list[int]) -> None:
        """`tcgen05.commit`, with the mbarriers that learn of it."""
        ...

    def columns(self, wave: Wave, row: int, count: int) -> None:
        """Columns of tensor memory allocated."""
        ...
