"""Work in processes of its own, which may crash or hang."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tile_core.registry import Registry, default_registry
from tile_core.rehearsal import VARIABLE
from tile_fuzz.case import Case, launches_of
from tile_fuzz.generator import Settings, generate
from tile_fuzz.oracle import Failure, Setting, Tally, certain, examine

#: Seconds that one program may take.
PATIENCE = 300.0

#: What makes the registry in the process; has to be importable there.
Source = Callable[[], Registry]


class Installed:
    """Everything installed but for some plugins."""

    def __init__(self, disabled: tuple[str, ...] = ()) -> None:
        self.disabled = disabled

    def __call__(self) -> Registry:
        return default_registry(frozenset(self.disabled))


class Worker:
    """A process that runs functions of (registry, ...), restarted when it dies."""

    def __init__(self, source: Source, patience: float = PATIENCE) -> None:
        self._source = source
        self._patience = patience
        self._process: Any = None
        self._pipe: Any = None

    def ask(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What `function(registry, *arguments)` gives; a `Failure` where the process ended."""
        self._start()
        self._pipe.send((function, arguments))
        if not self._pipe.poll(self._patience):
            self.close()
            return Failure("timeout", "timeout", f"no answer within {self._patience:g} seconds")
        try:
            return self._pipe.recv()
        except EOFError:
            self._process.join()
            code = self._process.exitcode
            self.close()
            name = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            return Failure("crash", name, f"the process ended with {name}")

    def _start(self) -> None:
        if self._process is not None:
            return
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._source), daemon=False)
        self._process.start()
        theirs.close()

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None:
            self._pipe.close()
            self._process.terminate()
            self._process.join()
            self._process = None


def _serve(pipe: Any, source: Source) -> None:
    # A terminal's ^C goes to all; the parent ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.environ[VARIABLE] = "off"  # what ends this process is told by the one that waits for it
    registry = source()
    try:
        while True:
            function, arguments = pipe.recv()
            pipe.send(_guarded(function, registry, arguments))
    except (EOFError, BrokenPipeError):
        return  # nobody asks any more


def _guarded(function: Callable[..., Any], registry: Registry, arguments: Any) -> Any:
    try:
        return function(registry, *arguments)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        return Failure("internal", type(error).__name__, text)


# --- what workers do ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tried:
    """What became of a program: its first failure, and the codes that it was compiled to."""

    failure: Failure | None
    tally: Tally = field(default_factory=Tally)


def try_seed(
    registry: Registry, seed: int, limits: Settings, settings: tuple[Setting, ...]
) -> Tried:
    """Whether the program of a seed fails anywhere."""
    tally = Tally()
    return Tried(examine(generate(seed, limits), settings, registry, tally=tally), tally)


def try_setting(registry: Registry, data: bytes, setting: Setting) -> Failure | None:
    """Whether a case, as bytecode with a recipe, fails; one that is not certain fails as such."""
    from tile_cudatile import read_bytecode

    module = read_bytecode(data)
    case = Case(module, launches_of(module))
    failure = examine(case, (setting,), registry)
    if failure is not None and failure.kind == "result" and not certain(case, ftz=setting.ftz):
        return Failure("undefined", "uncertain", "the result is not the same in every order")
    return failure
