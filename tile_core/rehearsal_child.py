"""The process in which text is read and passes run to see whether MLIR survives it."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

from tile_core.diagnostics import TileError
from tile_core.pipe_messages import read_message, write_message
from tile_core.pipeline.instrument import Instrumentation
from tile_core.pipeline.resolve import Resolved

if TYPE_CHECKING:
    from tile_core.registry import Registry

#: The last message of a trial; those before it say where it is.
DONE = "done"
PluginName = tuple[str, str]  # the plugin's name, and its module's


@dataclass(frozen=True)
class Trial:
    """What is to be tried. `plugins` is None where they cannot be imported."""

    data: bytes
    resolved: Resolved
    verify: str
    plugins: tuple[PluginName, ...] | None
    gates: tuple[Instrumentation, ...] = ()


class _Progress(Instrumentation):
    """Says before each pass what is about to run."""

    def __init__(self, replies: int) -> None:
        self.replies = replies

    def before_pass(self, step: Any, op: Any, run: Any) -> None:
        from tile_core.pipeline.run import running

        write_message(self.replies, running(step, op))


def attempt(trial: Trial, registry: Registry, replies: int) -> None:
    """Read, run the passes, print; whatever Python raises has ended no process."""
    from tile_core.frontend import FrontendContext, read_input
    from tile_core.pipeline.build import build
    from tile_core.pipeline.run import Run
    from tile_core.session import session_of

    plan = build(trial.resolved, registry)
    with session_of(registry) as session:
        module = read_input(trial.data, FrontendContext(plan.target, "-", plan.options), session)
        watchers = (*trial.gates, _Progress(replies))
        run = Run(plan, session, module, instrumentations=watchers, verify=trial.verify)
        with suppress(TileError):
            run.execute()
        module.operation.get_asm(enable_debug_info=True)


def in_fork(trial: Trial, registry: Registry, replies: int, log: int) -> NoReturn:
    """What the fork of a caller does; it leaves without any of its parent's business."""
    status = 1
    try:
        _quiet()
        os.dup2(log, 1)
        os.dup2(log, 2)
        with suppress(Exception):
            attempt(trial, registry, replies)
        write_message(replies, DONE)
        status = 0
    finally:
        os._exit(status)


def serve() -> None:
    """What a helper does: one trial after the other, until its standard input ends."""
    replies = os.dup(1)
    os.dup2(2, 1)
    _quiet()
    with suppress(EOFError, OSError):
        while True:
            trial = read_message(0)
            with suppress(Exception):
                attempt(trial, _registry(trial.plugins), replies)
            write_message(replies, DONE)


@cache
def _registry(names: tuple[PluginName, ...]) -> Registry:
    from tile_core.plugins import Origin, Plugin
    from tile_core.registry import Registry

    return Registry([Plugin(n, import_module(m), Origin(n, "0")) for n, m in names])


def _quiet() -> None:
    """No core dumps, and Ctrl-C is the caller's: it goes to the whole group."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(ImportError):  # not on Windows
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
