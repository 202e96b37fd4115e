"""Registers of `wgmma.mma_async` and the `wgmma.fence` that their other accesses need."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Unfenced:
    """A product without the fence it needs: why, and the place of the other access (-1: none)."""

    message: str
    other: int


class RegisterWatch:
    """When each warp last accessed each register that products use, and when it last fenced.

    PTX ISA, "wgmma.fence": one before the first product of a warpgroup, and one between any access
    to a register and a product that uses it as accumulator or fragment of A, except for
    accumulators of products of the same shape. A `mov` of a register or a constant is no access:
    compilers leave them behind the fence (the zeros that a loop begins with), and the assembler
    puts them where it likes.
    """

    def __init__(self, warps: int, registers: frozenset[int]) -> None:
        self._index = {register: i for i, register in enumerate(sorted(registers))}
        shape = (len(registers), warps)
        self._touched = np.zeros(shape, np.int64)
        self._touched_at = np.full(shape, -1, np.int64)
        self._used = np.zeros(shape, np.int64)
        self._role = np.zeros(shape, np.int64)
        self._fenced = np.full(warps, -1, np.int64)
        self._roles: dict[Hashable, int] = {}
        self._time = 0

    def _at(self, rows: Array, registers: Iterable[int]) -> tuple[Array, Array]:
        """Indices of `[registers, warps]`."""
        return np.array([self._index[register] for register in registers])[:, None], rows[None, :]

    def fence(self, rows: Array) -> None:
        self._time += 1
        self._fenced[rows] = self._time

    def touch(self, rows: Array, registers: frozenset[int], place: int) -> None:
        """An instruction other than a product reads or writes registers."""
        self._time += 1
        at = self._at(rows, registers)
        self._touched[at] = self._time
        self._touched_at[at] = place

    def rename(self, rows: Array, to: int, of: int | None) -> None:
        """A register becomes another one, or with None a constant."""
        for store in (self._touched, self._touched_at, self._used, self._role):
            store[self._index[to], rows] = 0 if of is None else store[self._index[of], rows]

    def product(
        self, rows: Array, accumulators: list[int], fragments: list[int], shape: Hashable
    ) -> Iterator[Unfenced]:
        """What is wrong as the warps start a product that uses these registers."""
        self._time += 1
        if (self._fenced[rows] < 0).any():
            yield Unfenced("the first wgmma.mma_async of a warpgroup without a wgmma.fence", -1)
        for registers, what in ((accumulators, "accumulator"), (fragments, "fragment")):
            if registers:
                role = self._roles.setdefault((what, shape), len(self._roles) + 1)
                yield from self._registers(rows, registers, role, what)

    def _registers(
        self, rows: Array, registers: list[int], role: int, what: str
    ) -> Iterator[Unfenced]:
        at = self._at(rows, registers)
        touched = self._touched[at] > self._fenced[rows]
        if touched.any() and (self._fenced[rows] >= 0).all():
            message = f"{what} registers of wgmma.mma_async are accessed after the last wgmma.fence"
            yield Unfenced(message, int(self._touched_at[at][touched][0]))
        other = (self._used[at] > self._fenced[rows]) & (self._role[at] != role)
        if other.any():
            yield Unfenced(
                f"{what} registers of wgmma.mma_async are used by one of another shape after the "
                "last wgmma.fence", -1,
            )  # fmt: skip
        self._used[at] = self._time
        self._role[at] = role
