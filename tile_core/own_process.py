"""Whether this process is a command of this project, and not a program that imports it.

What a library must leave alone (forking, the collector's settings), a command may do.
"""

from __future__ import annotations

import gc
import os

#: Objects between two runs of Python's collector of cycles: a compilation makes few cycles.
_COLLECT_AFTER = 50_000
#: The same while modules load; more than they make.
_WHILE_LOADING = 1_000_000

_ours = False
_serves = False


def claim(*, serves: bool = False) -> None:
    """Say so; what commands and the compile server's workers do first.

    Args:
        serves: it runs one command after the other, and waits in between.
    """
    global _ours, _serves
    _ours, _serves = True, serves


def loading() -> None:
    """Modules will be loaded now: they make many objects and drop none, so that Python's collector
    of cycles looks at all of them in vain, a tenth of a small compilation."""
    gc.set_threshold(_WHILE_LOADING)


def loaded() -> None:
    """What a command needs is loaded, and its work begins: the collector runs as it should, and
    does not look at what is there now."""
    if gc.get_threshold()[0] == _WHILE_LOADING:
        gc.freeze()
        gc.set_threshold(_COLLECT_AFTER)


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
