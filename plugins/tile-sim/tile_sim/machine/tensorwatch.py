"""Check mode for tensor memory: races, and tcgen05 instructions that nothing orders."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tile_sim.machine.distinct import distinct
from tile_sim.machine.shadow import Shadow

if TYPE_CHECKING:
    from tile_sim.machine.monitor import Monitor
    from tile_sim.machine.wave import Wave

Array = np.ndarray
# A cell is a column of 16 lanes: no access takes part of that.
_LANES, _PARTS, _COLUMNS, _BYTES = 16, 8, 512, 4


class TensorWatch:
    """Who accessed each cell of tensor memory last, and which loads and stores are in flight.

    PTX ISA, "Memory Consistency Model for 5th generation of TensorCore operations": accesses of
    different threads are ordered by `tcgen05.fence::before_thread_sync`, a synchronisation and
    `tcgen05.fence::after_thread_sync`, where `tcgen05.commit` has the first of these in itself;
    `tcgen05.ld` and `.st` are over at `tcgen05.wait`. Threads of one warp count as one. Missing
    fences are reported where `strict` is set: the barriers order the accesses on hardware.
    """

    def __init__(self, monitor: Monitor, wave: Wave) -> None:
        self._monitor = monitor
        self._strict = wave.settings.strict
        cells = wave.ctas * _PARTS * _COLUMNS
        self._shadow = Shadow(cells * _BYTES)
        self._loading = np.zeros(cells, np.int32)
        self._storing = np.zeros(cells, np.int32)
        self._load_place = np.full(cells, -1, np.int64)
        self._stores: dict[int, list[Array]] = {}

    def _cells(self, cta: Array | int, lane: Array, column: Array) -> Array:
        where = (np.asarray(cta) * _PARTS + lane // _LANES) * _COLUMNS + column
        return distinct(where)

    def allocated(self, cta: int, column: int, count: int) -> None:
        """Columns begin anew: the allocation waits for whoever gives them back."""
        at = self._columns(cta, column, count)
        self._shadow.writer[at] = -1
        self._shadow.reader[:, at] = -1
        self._loading[at] = self._storing[at] = 0

    def released(self, row: int, cta: int, column: int, count: int) -> None:
        """A warp gives columns back, which nobody may use any more."""
        at = self._columns(cta, column, count)
        self._races(at, row, True, "deallocation of tensor memory that another warp", False)

    def _columns(self, cta: int, column: int, count: int) -> Array:
        parts, columns = np.arange(_PARTS)[:, None], column + np.arange(count)[None, :]
        return ((cta * _PARTS + parts) * _COLUMNS + columns).reshape(-1)

    # --- accesses ---------------------------------------------------------------------------

    def access(
        self, row: int, cta: Array | int, lane: Array, column: Array, write: bool, what: str
    ) -> Array:
        """A tcgen05 instruction of a warp reads or writes tensor memory; its cells."""
        at = self._cells(cta, lane, column)
        verb = "write of" if write else "read of"
        self._races(at, row, write, f"{verb} tensor memory that another warp", True)
        self._in_flight(at, write, what)
        monitor, shadow = self._monitor, self._shadow
        warp = np.full(len(at), row)
        if write:
            shadow.note_write(at, warp, monitor.clocks.now(warp), monitor.place())
        else:
            shadow.note_read(at, warp, monitor.clocks.now(warp), monitor.place())
        return at

    def _races(self, at: Array, row: int, write: bool, text: str, fenced: bool) -> None:
        shadow = self._shadow
        before = [(shadow.writer[at], shadow.write_clock[at], shadow.write_place[at], "writes")]
        if write:
            before += [
                (shadow.reader[k, at], shadow.read_clock[k, at], shadow.read_place[k, at], "reads")
                for k in shadow.readers
            ]
        clocks, warp = self._monitor.clocks, np.full(len(at), row)
        for other, clock, place, verb in before:
            # A relaxed meeting of a cluster orders what has tcgen05's fences on both sides, alone.
            passed = clocks.tensor[warp, np.maximum(other, 0)] >= clock
            self._monitor.unordered(
                "race", f"{text} {verb}", np.where(passed, -1, other), clock, place, warp,
                clocks.ordered,
            )  # fmt: skip
            if fenced and self._strict:
                heard = clocks.ordered[warp, np.maximum(other, 0)] >= clock
                self._monitor.unordered(
                    "missing-tcgen05-fence",
                    f"{text} {verb}, with no tcgen05.fence on both sides of the synchronisation",
                    np.where(heard, other, -1), clock, place, warp, clocks.tensor,
                )  # fmt: skip

    def _in_flight(self, at: Array, write: bool, what: str) -> None:
        if self._storing[at].any():
            self._monitor.report(
                "missing-store-wait", f"{what} of tensor memory before tcgen05.wait::st", -1
            )
        if write and self._loading[at].any():
            place = int(self._load_place[at][self._loading[at] > 0][0])
            self._monitor.report(
                "missing-load-wait", f"{what} of tensor memory before tcgen05.wait::ld", place
            )

    # --- loads and stores -------------------------------------------------------------------

    def load(self, row: int, cta: Array, lane: Array, column: Array) -> Array:
        """A `tcgen05.ld` begins; the cells are to be handed to `loaded` at its end."""
        at = self.access(row, cta, lane, column, False, "tcgen05.ld")
        self._loading[at] += 1
        self._load_place[at] = self._monitor.place()
        return at

    def loaded(self, at: Array) -> None:
        self._loading[at] = np.maximum(self._loading[at] - 1, 0)

    def store(self, row: int, cta: Array, lane: Array, column: Array) -> None:
        """A `tcgen05.st` begins; it ends at the warp's `tcgen05.wait::st`."""
        at = self.access(row, cta, lane, column, True, "tcgen05.st")
        self._storing[at] += 1
        self._stores.setdefault(row, []).append(at)

    def stored(self, rows: Array) -> None:
        for row in rows.tolist():
            for at in self._stores.pop(row, ()):
                self._storing[at] = np.maximum(self._storing[at] - 1, 0)
