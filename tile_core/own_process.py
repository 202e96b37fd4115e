"""Whether this process is a command of this project, and not a program that imports it.

What a library must leave alone (forking, the collector's settings), a command may do.
"""

from __future__ import annotations

import os

_ours = False
_serves = False


def claim(*, serves: bool = False) -> None:
    """Say so; what commands and the compile server's workers do first.

    Args:
        serves: it runs one command after the other, and waits in between.
    """
    global _ours, _serves
    _ours, _serves = True, serves


def waits() -> bool:
    """Whether there is time when nobody waits for this process, to get ready for what may come."""
    return not _ours or _serves


def may_fork() -> bool:
    """Whether a fork can go on with what is loaded: no other thread may hold a lock in it."""
    if not _ours:
        return False
    try:
        return len(os.listdir("/proc/self/task")) == 1  # MLIR's threads and NumPy's, too
    except OSError:
        return False  # no Linux; macOS' libraries do not bear it
