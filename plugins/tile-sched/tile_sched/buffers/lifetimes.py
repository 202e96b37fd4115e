"""Lifetimes of buffers in the rows of an interval, and what may share a barrier or a buffer."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.diagnostics import CompileError


def rows(start: int, end: int, ii: int) -> int:
    """The cycles of the interval in which something that lives in [start, end) is alive, as bits.

    What lives for an interval or longer is alive in all of them.
    """
    full = (1 << ii) - 1
    if end - start >= ii:
        return full
    if end <= start:
        return 0
    bits = ((1 << (end - start)) - 1) << (start % ii)
    return (bits | bits >> ii) & full


@dataclass
class Barriers:
    """Named barriers: each may serve several values whose lifetimes do not meet.

    `first` is the lowest identifier: 0 belongs to the barrier of the whole block (PTX ISA, bar).
    """

    size: int = 15
    first: int = 1

    def __post_init__(self) -> None:
        self._taken: list[int] = []  # union of the rows of what each barrier serves

    def bind(self, lifetime: int) -> int:
        """The barrier for a value alive in `lifetime` (rows as bits): the lowest that is unused,
        else the lowest whose values never live at the same time.

        Raises:
            CompileError: all barriers are alive then.
        """
        if len(self._taken) < self.size:
            self._taken.append(lifetime)
            return self.first + len(self._taken) - 1
        for at, taken in enumerate(self._taken):
            if not taken & lifetime:
                self._taken[at] |= lifetime
                return self.first + at
        raise CompileError(
            "fails to assign named barrier",
            notes=(f"all {self.size} are in use in one cycle of the interval",),
        )


@dataclass(frozen=True)
class Request:
    """A buffer of `depth` slots of `bytes_` bytes; `lifetime` is rows as bits."""

    name: str
    bytes_: int
    depth: int = 1
    align: int = 128
    lifetime: int = -1  # all rows


def place_shared(requests: list[Request], capacity: int) -> dict[str, int]:
    """Offsets in shared memory: first fit in order of requests, beside all that lives then.

    Raises:
        CompileError: it does not fit into `capacity` bytes.
    """
    placed: list[tuple[int, int, int]] = []  # first byte, last byte, rows
    offsets: dict[str, int] = {}
    for request in requests:
        size = request.bytes_ * request.depth
        offset = 0
        for first, last, lifetime in sorted(placed):
            if lifetime & request.lifetime and first < offset + size and last > offset:
                offset = -(-last // request.align) * request.align
        if offset + size > capacity:
            raise CompileError(
                "fails to assign smem buffer",
                notes=(f"'{request.name}' needs {size} bytes at {offset}, of {capacity}",),
                hint="fewer stages, or smaller tiles",
            )
        placed.append((offset, offset + size, request.lifetime))
        offsets[request.name] = offset
    return offsets
