"""Shared memory that pending asynchronous operations read, which nobody may write meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tile_sim.machine.distinct import distinct

Array = np.ndarray
_WORD = 4


class Sources:
    """How many pending operations read each word: bulk copies, until they have read, and products
    of warpgroups, until their warpgroup has waited for them.
    """

    def __init__(self, size: int) -> None:
        self._copied = np.zeros(-(-size // _WORD), np.int32)
        self._multiplied = np.zeros(-(-size // _WORD), np.int32)
        #: How many operations there are that do.
        self._copies = self._products = 0

    def copy(self, where: Array, delta: int) -> None:
        """A bulk copy begins (1) to read bytes, or has read them (-1)."""
        self._copied[_words(where)] += delta
        self._copies += delta

    def product(self, where: Array, delta: int) -> None:
        """A product that reads bytes is issued (1), or has been waited for (-1)."""
        self._multiplied[_words(where)] += delta
        self._products += delta

    def abandoned(self) -> bool:
        """Whether bulk copies have yet to read."""
        return self._copies > 0

    def overwritten(self, where: Array) -> Iterator[str]:
        """What is wrong with a write to bytes now."""
        at = np.asarray(where) // _WORD
        if self._copies and self._copied[at].any():
            yield "write to shared memory that a pending bulk copy still reads"
        if self._products and self._multiplied[at].any():
            yield "write to shared memory that a product reads which no wgmma.wait_group covers"


def _words(where: Array) -> Array:
    return distinct(np.asarray(where) // _WORD)
