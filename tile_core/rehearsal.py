"""Trying, in a process of its own, what MLIR may not survive.

MLIR's parser and its passes end their process on some inputs: a wrong memory access, a division by
zero in an option, a fatal error. IR that this project's passes made of verified bytecode, run
through a shipped pipeline, does not meet those places; text and lists of passes that somebody wrote
may. These are therefore tried once in a child before they run here: what ends the child is an
error, and since compilation is deterministic, what does not end it does not end this process.

The child is a fork where a fork is safe (`own_process.may_fork`), else a helper process that
is kept. A helper has the plugins that can be imported; with others nothing is tried.
"""

from __future__ import annotations

import atexit
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import IO

import tile_core
from tile_core import rehearsal_child
from tile_core.diagnostics import CompileError, InputError, TileError
from tile_core.own_process import may_fork
from tile_core.pipe_messages import read_message, write_message
from tile_core.pipeline.instrument import Instrumentation
from tile_core.pipeline.resolve import Resolved
from tile_core.registry import Registry
from tile_core.rehearsal_child import DONE, PluginName, Trial

#: Environment variable: "off" tries nothing, so that the process itself ends (for debuggers, and
#: where that costs nobody anything).
VARIABLE = "TILEC_REHEARSAL"
_BOOT = "import sys; sys.path[:] = {path!r}; from tile_core.rehearsal_child import serve; serve()"
_LAST_LINES = 4


def rehearse(
    data: bytes,
    registry: Registry,
    resolved: Resolved,
    *,
    verify: str = "none",
    watchers: Sequence[Instrumentation] = (),
) -> None:
    """Read `data` and run the passes of `resolved` over it, in a child, where that may end it.

    Errors in the text or of a pass are left to the caller's own run to find.

    Args:
        watchers: those that keep passes from running do so in the child, too.

    Raises:
        InputError: MLIR ends its process while it reads the text.
        CompileError: a pass does.
    """
    if os.environ.get(VARIABLE) == "off" or not _may_end_it(data, registry, resolved):
        return
    gates = tuple(w for w in watchers if type(w).permits is not Instrumentation.permits)
    trial = Trial(data, resolved, verify, _names(registry.plugins), gates)
    if may_fork():
        _forked(trial, registry)
    elif trial.plugins is not None:
        _HELPER.ask(replace(trial, gates=tuple(filter(_can_be_sent, gates))))


def rehearse_reading(data: bytes, registry: Registry) -> None:
    """`rehearse` for who only reads the text."""
    target = registry.target("sm_90")  # text is read alike for all of them
    rehearse(data, registry, Resolved("reading", target, {}, ()))


def _may_end_it(data: bytes, registry: Registry, resolved: Resolved) -> bool:
    """Whether MLIR's parser reads the text, or passes run that no shipped pipeline has so."""
    if registry.frontend_for(data) is None:
        return True
    return bool(resolved.segments) and not registry.has("pipeline", resolved.name)


def _can_be_sent(gate: Instrumentation) -> bool:
    """Whether a watcher can be copied into another process; one that writes to a stream cannot."""
    try:
        pickle.dumps(gate)
    except Exception:  # whatever its own methods raise
        return False
    return True


def _names(plugins: Sequence[object]) -> tuple[PluginName, ...] | None:
    """The plugins as another process can import them, None where one cannot be."""
    found: list[PluginName] = []
    for plugin in plugins:
        module = getattr(plugin, "module", None)
        name = getattr(module, "__name__", "")
        if not isinstance(module, ModuleType) or sys.modules.get(name) is not module:
            return None
        found.append((getattr(plugin, "name", ""), name))
    return tuple(found)


# --- a fork --------------------------------------------------------------------------------------


def _forked(trial: Trial, registry: Registry) -> None:
    with tempfile.TemporaryFile() as log:
        reader, writer = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reader)
            rehearsal_child.in_fork(trial, registry, writer, log.fileno())
        os.close(writer)
        try:
            last = _followed(reader)
        except BaseException:
            os.kill(child, signal.SIGKILL)
            raise
        finally:
            os.close(reader)
            _, status = os.waitpid(child, 0)
        if last != DONE:
            raise _death(last, os.waitstatus_to_exitcode(status), _said(log, 0))


def _followed(reader: int) -> str:
    """The last message of a child: `DONE`, or where it was when it ended."""
    last = ""
    with suppress(EOFError, OSError):
        while last != DONE:
            last = str(read_message(reader))
    return last


# --- a helper ------------------------------------------------------------------------------------


@dataclass
class _Running:
    """The helper's process, where it logs to, and the process that started it."""

    process: subprocess.Popen[bytes]
    log: IO[bytes]
    owner: int


class _Helper:
    """One process that tries what it is sent, started anew after one that ended."""

    def __init__(self) -> None:
        self._one: _Running | None = None
        self._lock = threading.Lock()

    def ask(self, trial: Trial) -> None:
        """Let it try."""
        with self._lock:
            one = self._started()
            assert one.process.stdin is not None
            assert one.process.stdout is not None
            before = os.fstat(one.log.fileno()).st_size
            last = ""
            try:
                write_message(one.process.stdin.fileno(), trial)
                last = _followed(one.process.stdout.fileno())
            except OSError:
                pass  # it is gone
            except BaseException:
                self._drop()
                raise
            if last != DONE:
                one.process.stdin.close()
                status = one.process.wait()
                said = _said(one.log, before)
                self._drop()
                raise _death(last, status, said)

    def _started(self) -> _Running:
        if self._one is not None and self._one.owner != os.getpid():
            self._one.process.returncode = 0  # it is our parent's child
            self._one = None
        if self._one is None:
            home = str(Path(tile_core.__file__).parents[1])
            boot = _BOOT.format(path=[home, *(p for p in sys.path if p)])
            log = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the process
            process = subprocess.Popen(
                [sys.executable, "-S", "-c", boot], bufsize=0,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log,
            )  # fmt: skip
            self._one = _Running(process, log, os.getpid())
        return self._one

    def _drop(self) -> None:
        one, self._one = self._one, None
        if one is not None and one.owner == os.getpid():
            one.process.kill()
            one.process.wait()
            one.log.close()

    def close(self) -> None:
        """End the process, if there is one."""
        with self._lock:
            self._drop()


_HELPER = _Helper()
atexit.register(_HELPER.close)


# --- what is said --------------------------------------------------------------------------------


def _said(log: IO[bytes], start: int) -> tuple[str, ...]:
    """The last lines that were printed; stack traces are of MLIR, and say nothing here."""
    size = os.fstat(log.fileno()).st_size
    text = os.pread(log.fileno(), size - start, start).decode(errors="replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    ends = [i for i, line in enumerate(lines) if line.startswith(("PLEASE submit", "Stack dump"))]
    return tuple(lines[: ends[0]] if ends else lines)[-_LAST_LINES:]


def _death(where: str, status: int, said: tuple[str, ...]) -> TileError:
    how = f"exit code {status}"
    if status < 0:
        with suppress(ValueError):
            how = signal.Signals(-status).name
    if not where:
        return InputError(f"MLIR ends its process while it reads the text ({how})", notes=said)
    return CompileError(
        f"MLIR ends its process {where} ({how})", notes=said,
        hint=f"{VARIABLE}=off lets it end this process, for a debugger",
    )  # fmt: skip
