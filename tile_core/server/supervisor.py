"""The process that listens: loads the compiler once, forks workers, hands them connections.

It watches the connections of jobs that run, so that a client that goes takes its job along, and the
workers, so that one that dies costs its own client an error and nobody else anything. It leaves
when nobody has asked for anything for a while, or when the files it was loaded from change.
"""

from __future__ import annotations

import contextlib
import fcntl
import gc
import os
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tile_core.server import client as wire
from tile_core.server.worker import DONE, FILE, LEAVING, Worker
from tile_core.snapshot import Stamp, renewed, stamp, trust, watched_folders

#: A worker that is asked to stop has this many seconds to clean up.
_GRACE = 1.0
#: Objects between two runs of Python's collector of cycles.
_COLLECT_AFTER = 50_000
#: A server whose socket somebody removed finds out within so many seconds, and leaves.
_LOOK = 5.0
_GONE = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR


@dataclass(frozen=True)
class Settings:
    """How a server behaves."""

    idle: float = 600.0  # seconds without a request after which it leaves
    jobs: int = 0  # workers at once; 0 is one for each core
    memory: int = 8 << 30  # bytes of address space for a worker
    preload: tuple[str, ...] = ()  # entries, as "module:function"

    @classmethod
    def of_environment(cls, preload: tuple[str, ...] = ()) -> Settings:
        """TILEC_SERVER_IDLE (seconds), TILEC_SERVER_JOBS, TILEC_SERVER_MEMORY (MiB)."""
        idle = _number("TILEC_SERVER_IDLE", cls.idle)
        memory = int(_number("TILEC_SERVER_MEMORY", cls.memory >> 20)) << 20
        return cls(idle, int(_number("TILEC_SERVER_JOBS", cls.jobs)), memory, preload)

    @property
    def workers(self) -> int:
        """How many workers may run."""
        return self.jobs or len(os.sched_getaffinity(0))


def _number(variable: str, default: float) -> float:
    text = os.environ.get(variable, "")
    try:
        return max(0.0, float(text))
    except ValueError:
        if text:
            print(f"warning: {variable}={text} is not a number", file=sys.stderr)
        return default


@dataclass
class _Slot:
    """A worker as the supervisor sees it."""

    pid: int
    control: socket.socket
    connection: socket.socket | None = None
    files: list[str] = field(default_factory=list)
    kill_at: float | None = None
    heard: bytes = b""
    leaving: bool = False


def serve(settings: Settings) -> int:
    """Listen until idle, told to stop, or out of date; the exit code."""
    path = wire.address()
    lock = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return 0  # another one is serving, or about to
    os.ftruncate(lock, 0)
    os.write(lock, str(os.getpid()).encode())
    supervisor = Supervisor(settings, path, lock)
    try:
        supervisor.run()
    finally:
        supervisor.close()
    return 0


class Supervisor:
    """The event loop."""

    def __init__(self, settings: Settings, path: str, lock: int) -> None:
        self.settings = settings
        self.lock = lock
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.path = path
        self.slots: dict[int, _Slot] = {}  # by file descriptor of `control`
        self.waiting: deque[socket.socket] = deque()
        self.leaving = False
        self.last = time.monotonic()
        self.poll = select.poll()
        self.stamps: list[Stamp] = []

    def run(self) -> None:
        """Serve."""
        # Python goes on waiting after a signal unless something wakes it.
        self.wake, wake = socket.socketpair()
        wake.setblocking(False)
        signal.set_wakeup_fd(wake.fileno(), warn_on_full_buffer=False)
        self.poll.register(self.wake, select.POLLIN)
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        self.stamps = load(self.settings.preload)
        # Only now: until it can answer, clients do their work themselves.
        self._listen()
        self._fork()
        self.last = time.monotonic()
        while not self._finished():
            self._turn()
        self.close()
        for slot in list(self.slots.values()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(slot.pid, signal.SIGTERM)
            slot.kill_at = time.monotonic() + _GRACE
        while self.slots:
            self._turn()

    def _listen(self) -> None:
        path = f"{self.path}.socket"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)  # a server before this one was killed
        self.listener.bind(path)
        self.listener.listen(256)
        self.poll.register(self.listener, select.POLLIN)

    def _turn(self) -> None:
        events = self.poll.poll(self._patience() * 1000)
        # Workers first: a client that goes after its job is done has not given up.
        for fd, _ in events:
            if fd in self.slots:
                self._hear(self.slots[fd])
        for fd, event in events:
            if fd == self.listener.fileno():
                self._accept()
            elif fd == self.wake.fileno():
                self.wake.recv(64)
            elif event & _GONE:
                self._cancel(fd)
        now = time.monotonic()
        for slot in self.slots.values():
            if slot.kill_at is not None and now >= slot.kill_at:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(slot.pid, signal.SIGKILL)
                slot.kill_at = None
        self._assign()

    def _patience(self) -> float:
        ends = [slot.kill_at for slot in self.slots.values() if slot.kill_at is not None]
        if not self.leaving:
            ends.append(min(self.last + self.settings.idle, time.monotonic() + _LOOK))
        return max(0.0, min(ends) - time.monotonic()) if ends else 1.0

    def _busy(self) -> bool:
        return bool(self.waiting) or any(slot.connection for slot in self.slots.values())

    def _finished(self) -> bool:
        if self._busy():
            self.last = time.monotonic()
            return False
        idle = time.monotonic() - self.last >= self.settings.idle
        return self.leaving or idle or not os.path.exists(f"{self.path}.socket")

    def close(self) -> None:
        """Take no more requests; clients that are too late do their work themselves."""
        self.leaving = True
        if self.listener.fileno() >= 0:
            # The lock's file goes, too, so that a new server need not wait for the last job here.
            for ending in ("socket", "lock"):
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(f"{self.path}.{ending}")
            with contextlib.suppress(KeyError):  # it may never have come so far
                self.poll.unregister(self.listener)
            self.listener.close()

    def _stop(self, _signal: int, _frame: object) -> None:
        self.leaving = True
        for connection in self.waiting:
            _answer(connection, wire.AWAY, 0)
        self.waiting.clear()

    # --- connections -----------------------------------------------------------------------------

    def _accept(self) -> None:
        connection, _ = self.listener.accept()
        self.last = time.monotonic()
        if not wire.same_user(connection):
            connection.close()
            return
        if not self.leaving:
            stamps = renewed(self.stamps)
            if stamps is None:
                # What is installed has changed; whoever comes next starts a new server.
                self.close()
            else:
                self.stamps = stamps
        if self.leaving:
            _answer(connection, wire.AWAY, 0)
        else:
            self.waiting.append(connection)

    def _assign(self) -> None:
        while self.waiting:
            free = next((s for s in self.slots.values() if _is_free(s)), None)
            if free is None:
                if len(self.slots) >= self.settings.workers:
                    return
                try:
                    free = self._fork()
                except OSError:  # no room for one: the client does its work itself
                    _answer(self.waiting.popleft(), wire.AWAY, 0)
                    continue
            connection = self.waiting.popleft()
            try:
                socket.send_fds(free.control, [b"J"], [connection.fileno()])
            except OSError:  # it has just died; its end will be heard of
                self.waiting.appendleft(connection)
                return
            free.connection = connection
            self.poll.register(connection, _GONE)

    def _cancel(self, fd: int) -> None:
        """The client of a running job has gone: so goes the job."""
        for slot in self.slots.values():
            if slot.connection is not None and slot.connection.fileno() == fd:
                self.poll.unregister(fd)
                slot.connection.close()
                slot.connection = None
                slot.leaving = True  # it dies soon, and gets nothing more to do
                slot.kill_at = time.monotonic() + _GRACE
                with contextlib.suppress(ProcessLookupError):
                    os.kill(slot.pid, signal.SIGTERM)
                return

    # --- workers ---------------------------------------------------------------------------------

    def _fork(self) -> _Slot:
        """A new worker.

        Raises:
            OSError: the system has no room for its folder, or for a process.
        """
        folder = tempfile.mkdtemp(prefix="tilec-worker-")
        ours, theirs = socket.socketpair()
        sys.stdout.flush()
        sys.stderr.flush()
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        pid = -1
        try:
            pid = os.fork()
        finally:
            if pid:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
            if pid < 0:
                os.rmdir(folder)
        if pid == 0:
            code = 1
            try:
                self._become_worker(ours, theirs, folder)
                code = 0
            except SystemExit:
                pass
            finally:
                os._exit(code)
        theirs.close()
        slot = _Slot(pid, ours, files=[folder])
        self.slots[ours.fileno()] = slot
        self.poll.register(ours, select.POLLIN)
        return slot

    def _become_worker(self, ours: socket.socket, theirs: socket.socket, folder: str) -> None:
        # First of all: the supervisor's own answer to SIGTERM would send its clients away.
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        die_with_parent()
        os.close(self.lock)  # it says that this supervisor lives, and no worker of it
        self.listener.close()
        ours.close()
        for slot in self.slots.values():
            slot.control.close()
            if slot.connection is not None:
                slot.connection.close()
        for connection in self.waiting:
            connection.close()
        Worker(theirs, self.settings.memory, folder).run()

    def _hear(self, slot: _Slot) -> None:
        try:
            data = slot.control.recv(1 << 16)
        except OSError:
            data = b""
        if not data:
            self._bury(slot)
            return
        slot.heard += data
        for message in self._messages(slot):
            if message[:1] == FILE:
                slot.files.append(os.fsdecode(message[1:]))
            elif message[:1] in (DONE, LEAVING):
                self._release(slot)
                slot.leaving |= message[:1] == LEAVING
                del slot.files[1:]  # the first is the worker's own folder

    def _messages(self, slot: _Slot) -> Iterator[bytes]:
        while len(slot.heard) >= 4:
            length = int.from_bytes(slot.heard[:4], "little")
            if len(slot.heard) < 4 + length:
                return
            message, slot.heard = slot.heard[4 : 4 + length], slot.heard[4 + length :]
            yield message

    def _release(self, slot: _Slot) -> None:
        if slot.connection is not None:
            self.poll.unregister(slot.connection)
            slot.connection.close()
            slot.connection = None

    def _bury(self, slot: _Slot) -> None:
        """A worker has ended: remove what it may have left, and tell its client."""
        fd = slot.control.fileno()
        self.poll.unregister(fd)
        del self.slots[fd]
        slot.control.close()
        _, status = os.waitpid(slot.pid, 0)
        for path in slot.files:
            if Path(path).is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    os.unlink(path)
        if slot.connection is not None:
            self.poll.unregister(slot.connection)
            number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
            _answer(slot.connection, wire.DIED, number)
            slot.connection = None


def _is_free(slot: _Slot) -> bool:
    return slot.connection is None and not slot.leaving


def _answer(connection: socket.socket, status: int, code: int) -> None:
    with contextlib.suppress(OSError):
        connection.sendall(wire.reply(status, code))
    connection.close()


def die_with_parent() -> None:
    """Ask Linux for SIGKILL when the supervisor dies; elsewhere its closed socket has to do."""
    if sys.platform.startswith("linux"):
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG, linux/prctl.h


def load(entries: tuple[str, ...]) -> list[Stamp]:
    """Import the compiler, so that workers have it at birth; the state of the files behind it."""
    from importlib import import_module

    from tile_core import api
    from tile_core.fingerprint import behind, installed
    from tile_core.pipeline.build import build
    from tile_core.registry import default_registry
    from tile_core.session import session_of

    gc.set_threshold(_COLLECT_AFTER)
    registry = default_registry()
    stamps = [*watched_folders(), *map(stamp, behind(registry))]
    trust()
    installed()
    for entry in entries:
        import_module(entry.partition(":")[0])
    for level in range(4):
        resolved = api.plan_for("sm_90", opt_level=level, registry=registry)
        build(resolved, registry)
        for call in resolved.emitters:
            api.make_emitter(call, registry)
    with session_of(registry) as session:
        session.load_all_dialects()
    gc.collect()
    gc.freeze()
    return stamps
