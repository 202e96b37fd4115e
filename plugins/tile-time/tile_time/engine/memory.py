"""Requests to memory: when each is done, and which part of the way took longest."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable

from tile_core.machines import Machine
from tile_time.engine.ops import COPY, DRAM, L2, LATENCY, SHARED
from tile_time.engine.state import Sm
from tile_time.record import SECTOR


class Traffic:
    """Shares of accesses that miss L2, by the place of the PTX instruction.

    `miss` is the share of bytes that come from DRAM; `write_back` how many bytes L2 writes to DRAM
    for each that is stored.
    """

    def __init__(self, miss: dict[int, float] | None = None, write_back: float = 1.0) -> None:
        self.miss = miss or {}
        self.write_back = write_back

    def of(self, pos: int) -> float:
        return self.miss.get(pos, 1.0)


class L1:
    """The sectors of one CTA's accesses, by number; the least recently used go first.

    A sector is there when its bytes have come: who asks for it before waits with who fetched it.
    """

    def __init__(self, capacity: float) -> None:
        self._most = int(capacity // SECTOR)
        self._held: OrderedDict[int, tuple[float, int]] = OrderedDict()

    def ask(self, sectors: Iterable[int]) -> tuple[list[int], tuple[float, int]]:
        """Which of them are not held; when the last of the others is there, and what that waits
        for.
        """
        missing: list[int] = []
        last = 0.0, LATENCY
        for sector in sectors:
            found = self._held.get(sector)
            if found is None:
                missing.append(sector)
                continue
            self._held.move_to_end(sector)
            last = max(last, found)
        return missing, last

    def fill(self, sectors: Iterable[int], found: tuple[float, int]) -> None:
        """Sectors that were not held: when they are there, and what that waits for."""
        self._held.update(dict.fromkeys(sectors, found))
        while len(self._held) > self._most:
            self._held.popitem(last=False)


class Requests:
    """The memory pipe, the ports and the servers behind it, for one machine."""

    def __init__(self, machine: Machine, traffic: Traffic) -> None:
        self.m = machine
        self.traffic = traffic

    def front(self, sm: Sm, t: float, turns: float) -> float:
        """The memory pipe takes a request that needs `turns` clk of it; when it begins."""
        start = max(t, sm.memory_front)
        sm.memory_front = start + max(turns, self.m.memory.request_interval)
        return start

    def port(self, sm: Sm, t: float, size: float) -> float:
        """Bytes through the data port of shared memory; when the last has passed."""
        start = max(t, sm.shared_port)
        clk = size / self.m.memory.shared_bandwidth
        sm.shared_port = start + clk
        sm.use("shared", clk)
        return sm.shared_port

    def shared(self, sm: Sm, t: float, wavefronts: float) -> tuple[float, int]:
        """A load of shared memory: when its result is there."""
        start = self.front(sm, t, wavefronts)
        end = self.port(sm, start, wavefronts * 128)
        return end - 1 + self.m.memory.shared_latency, SHARED if end - t > 16 else LATENCY

    def fetch(
        self, sm: Sm, t: float, size: float, pos: int, latency: float | None = None
    ) -> tuple[float, int]:
        """Bytes from L2 or DRAM to an SM; `latency` of a hit in L2 if not the usual one."""
        hit = self.m.memory.l2_latency if latency is None else latency
        miss = self.traffic.of(pos)
        passed = sm.through_l2(t, size)
        done, cause = passed + hit, (L2 if passed - t > hit / 2 else LATENCY)
        if miss > 0.0:
            passed = sm.through_dram(t, size * miss)
            far = passed + hit + self.m.memory.dram_latency - self.m.memory.l2_latency
            if far > done:
                done, cause = far, (DRAM if passed - t > hit / 2 else LATENCY)
        return done, cause

    def store(self, sm: Sm, t: float, size: float) -> None:
        """Bytes to L2, and some of them on to DRAM; nobody waits."""
        sm.through_l2(t, size)
        if self.traffic.write_back:
            sm.through_dram(t, size * self.traffic.write_back)

    def copy_in(self, sm: Sm, t: float, size: int, inner: int, pos: int) -> tuple[float, int]:
        """A bulk or tensor load: when its bytes have reached shared memory."""
        c = self.m.copies
        begin = max(t, sm.copy_engine)
        rows = -(-size // max(inner, 1))
        sm.copy_engine = begin + max(c.tma_issue, rows * c.tma_box_row)
        sm.use("copy engine", sm.copy_engine - begin)
        first = sm.l2_port
        more = c.tma_per_row * min(max(-(-inner // 512) - 1, 0), c.tma_rows)
        ended, cause = self.fetch(sm, begin, size, pos, c.tma_latency + more)
        stream = c.tma_per_kb * size / 1024  # never faster than alone
        done = max(ended, begin + c.tma_latency + more + stream, sm.copy_engine + c.tma_latency)
        if begin - t > max(c.tma_latency / 2, sm.l2_port - begin):
            cause = COPY
        arrive = done - c.tma_latency - more
        sm.fills.append((max(first, begin), arrive, size / max(arrive - max(first, begin), 1.0)))
        sm.use("shared", size / self.m.memory.shared_bandwidth)
        return done, cause

    def copy_out(self, sm: Sm, t: float, size: int, inner: int) -> tuple[float, float]:
        """A bulk or tensor store: when shared memory has been read, when it is written."""
        c = self.m.copies
        begin = max(t, sm.copy_engine)
        rows = -(-size // max(inner, 1))
        sm.copy_engine = begin + max(c.tma_issue, rows * c.tma_box_row)
        read = max(self.port(sm, begin, size), sm.copy_engine) + c.tma_store_latency / 2
        self.store(sm, begin, size)
        stream = begin + c.tma_store_latency + c.tma_store_per_kb * size / 1024
        return read, max(stream, sm.l2_port + c.tma_store_latency)

    def filled(self, sm: Sm, start: float, end: float) -> float:
        """Bytes that copies write to shared memory between two moments."""
        return sum(
            rate * (min(end, until) - max(start, since))
            for since, until, rate in sm.fills
            if since < end and until > start
        )
