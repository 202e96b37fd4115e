"""What warps leave at a place, a barrier or a location, for those that come there later."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import numpy as np

Array = np.ndarray
#: As many phases of a place are told apart: who waits for one is seldom two behind.
_KEPT = 3
_ANY = -1


class Left:
    """Knowledge by place and phase.

    Barriers have phases: who waits for one of them has not heard of those who have arrived for the
    next meanwhile, though they have arrived. `join` of two arrays is what is known of both.
    """

    def __init__(self, join: Callable[[Array, Array], Array] = np.maximum) -> None:
        self._join = join
        #: Place -> (phase, what was left in it or before), oldest first.
        self._found: dict[Hashable, list[tuple[int, Array]]] = {}

    def leave(self, key: Hashable, known: Array, phase: int = 0) -> None:
        """Who takes that phase or a later one will know this, too."""
        found = self._found.get(key)
        if found is None:
            self._found[key] = [(phase, known)]
            return
        if phase > found[-1][0]:
            found.append((phase, found[-1][1]))
            if len(found) > _KEPT:
                del found[0]
                found[0] = _ANY, found[0][1]
        for k in range(len(found) - 1, -1, -1):
            at, old = found[k]
            if at < phase:
                break
            found[k] = at, self._join(old, known)

    def take(self, key: Hashable, phase: int = 0) -> Array | None:
        """What was left at a place until the end of a phase; None for nothing."""
        for at, known in reversed(self._found.get(key, ())):
            if at <= phase:
                return known
        return None
