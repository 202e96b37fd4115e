"""The client's side, and the protocol.

This file is also run as a script, `python -S -E client.py ENTRY PROGRAM ARGUMENTS...`, and is then
all that a served compilation waits for. So it imports only what the interpreter has in memory.

A request is one message: magic, protocol version, length, then fields between NUL bytes:
identity, entry, program, umask, number of arguments, arguments, environment. Standard input,
output and error and the working directory travel beside it as open files. The reply is magic,
version, status, and an exit code. Both sides check that the other is the same user.
"""

from __future__ import annotations

import _socket
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tile_core.module_image import ModuleImage

MAGIC = b"TILEC"
PROTOCOL = 1
#: Replies: done with a code; no server for this request; the worker died of a signal.
DONE, AWAY, DIED = 0, 1, 2
REPLY_BYTES = len(MAGIC) + 6
HEAD_BYTES = len(MAGIC) + 5
STREAMS = 4  # stdin, stdout, stderr, the working directory

#: "off": never use a server; "on": use one, and start one for those to come; "wait": for itself,
#: too; "running": use one that is there.
MODE = "TILEC_SERVER"
FOLDER = "TILEC_SERVER_DIR"
#: How long a server may take until it listens, in steps of 5 ms.
_START_STEPS = 4000
#: So many steps later another one is started, if the one that was on its way has gone.
_START_AGAIN = 400


class Unavailable(Exception):
    """No server can do it; the work has to be done here."""


def installation() -> str:
    """What tells installations apart: where the interpreter and this file are."""
    return f"{os.path.dirname(sys.executable)}\n{os.path.realpath(__file__)}"


def identity() -> str:
    """What a server has to share with its clients: the installation, and PYTHONPATH, which may add
    plugins to it."""
    return f"{installation()}\n{os.environ.get('PYTHONPATH', '')}"


def folder() -> str:
    """The folder of sockets, which is this user's alone.

    Raises:
        Unavailable: it belongs to somebody else, or others may enter it.
    """
    chosen = os.environ.get(FOLDER)
    if not chosen:
        base = os.environ.get("XDG_RUNTIME_DIR", "")
        base = base if base.startswith("/") and os.path.isdir(base) else "/tmp"
        chosen = f"{base}/tilec-{os.getuid()}"
    try:
        os.mkdir(chosen, 0o700)
    except FileExistsError:
        pass
    except OSError as error:
        raise Unavailable(f"cannot make {chosen}: {error.strerror}") from error
    found = os.lstat(chosen)
    if found.st_uid != os.getuid() or found.st_mode & 0o170077 != 0o040000:
        raise Unavailable(f"{chosen} is not this user's own folder")
    return chosen


def address(which: str | None = None) -> str:
    """The path of the socket for an installation, without its ending."""
    return f"{folder()}/{fnv(which or identity()):016x}"


def fnv(text: str) -> int:
    """A number for a text: FNV-1a, which needs no import."""
    number = 0xCBF29CE484222325
    for byte in text.encode("utf-8", "surrogateescape"):
        number = (number ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return number


def same_user(connection: _socket.socket) -> bool:
    """Whether the other end runs as this user; where the system cannot tell, the folder has to."""
    peer = getattr(_socket, "SO_PEERCRED", None)
    if peer is None:
        return True
    credentials = connection.getsockopt(_socket.SOL_SOCKET, peer, 12)  # pid, uid, gid
    return int.from_bytes(credentials[4:8], sys.byteorder) == os.getuid()


def request(entry: str, program: str, arguments: list[str]) -> bytes:
    """The message that asks for `entry` to be run with `arguments` in this process's stead."""
    umask = os.umask(0o077)
    os.umask(umask)
    variables = [k + b"=" + v for k, v in os.environb.items()]
    fields = [
        os.fsencode(text)
        for text in (identity(), entry, program, str(umask), str(len(arguments)), *arguments)
    ]
    body = b"\0".join([*fields, *variables])
    return MAGIC + bytes([PROTOCOL]) + len(body).to_bytes(4, "little") + body


def reply(status: int, code: int) -> bytes:
    """The message that ends a request."""
    return MAGIC + bytes([PROTOCOL, status]) + code.to_bytes(4, "little", signed=True)


def ask(entry: str, program: str, arguments: list[str], mode: str) -> tuple[int, int]:
    """Have a server do it; the status and the exit code.

    Args:
        mode: "on", "wait" or "running".

    Raises:
        Unavailable: there is none, or it cannot be used; nothing has been done then.
    """
    connection = _connected(entry, mode)
    message = request(entry, program, arguments)
    streams = _streams()
    try:
        passed = b"".join(fd.to_bytes(4, sys.byteorder) for fd in streams)
        rights = [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, passed)]
        sent = connection.sendmsg([message], rights)
        while sent < len(message):
            sent += connection.send(message[sent:])
        answer = b""
        while len(answer) < REPLY_BYTES:
            part = connection.recv(REPLY_BYTES - len(answer))
            if not part:
                raise Unavailable("the server went away")
            answer += part
    except OSError as error:
        raise Unavailable(f"the server does not answer: {error.strerror}") from error
    finally:
        connection.close()
        os.close(streams[-1])
    if answer[: len(MAGIC) + 1] != MAGIC + bytes([PROTOCOL]) or answer[len(MAGIC) + 1] == AWAY:
        raise Unavailable("the server is of another version, or leaving")
    code = int.from_bytes(answer[-4:], "little", signed=True)
    return answer[len(MAGIC) + 1], code


def _streams() -> list[int]:
    """Files to hand over; a closed standard stream is replaced by the null device."""
    found: list[int] = []
    for fd in (0, 1, 2):
        try:
            os.fstat(fd)
        except OSError:
            while (opened := os.open(os.devnull, os.O_RDWR)) != fd and opened < fd:
                pass
        found.append(fd)
    return [*found, os.open(".", os.O_RDONLY)]


def _connected(entry: str, mode: str) -> _socket.socket:
    if not hasattr(_socket, "AF_UNIX") or not hasattr(os, "fork"):
        raise Unavailable("this system has no Unix sockets")
    path = f"{address()}.socket"
    connection = _try(path)
    if connection is None and mode != "running" and not _is_loading():
        _start(entry)
    if connection is None and mode == "wait":
        for step in range(1, _START_STEPS):
            connection = _try(path)
            if connection is not None:
                break
            if step % _START_AGAIN == 0 and not _is_loading():
                _start(entry)
            _sleep(0.005)
    if connection is None:
        raise Unavailable("no server is running")
    if not same_user(connection):
        connection.close()
        raise Unavailable("the server belongs to another user")
    return connection


def _sleep(seconds: float) -> None:
    import time

    time.sleep(seconds)


def _try(path: str) -> _socket.socket | None:
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        connection.connect(path)
    except OSError:
        connection.close()
        return None
    return connection


def _is_loading() -> bool:
    """Whether a server has been started that does not listen yet: it holds the lock."""
    import fcntl

    try:
        with open(f"{address()}.lock", "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def _start(entry: str) -> None:
    """Start a server that outlives this process and holds nothing of it open."""
    child = os.fork()
    if child:
        os.waitpid(child, 0)
        return
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.chdir("/")
        null = os.open(os.devnull, os.O_RDWR)
        log = os.open(f"{address()}.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        for fd, target in ((null, 0), (log, 1), (log, 2)):
            os.dup2(fd, target)
        os.closerange(3, 256)
        os.execv(
            sys.executable, [sys.executable, "-P", "-m", "tile_core.server", "--preload", entry]
        )
    finally:
        os._exit(1)


def wants_server(default: str) -> str:
    """The mode that the environment asks for: "off", "running", "on" or "wait"."""
    mode = os.environ.get(MODE, "").strip().lower()
    return {"": default, "0": "off", "false": "off", "1": "on", "true": "on"}.get(mode, mode)


def served(entry: str, program: str, arguments: list[str], default: str) -> int | None:
    """The exit code, if a server did the work; None if it has to be done here.

    Args:
        default: the mode when the environment says nothing.
    """
    mode = wants_server(default)
    if mode not in ("on", "wait", "running"):
        return None
    try:
        status, code = ask(entry, program, arguments, mode)
    except Unavailable:
        return None
    except KeyboardInterrupt:
        return 130
    if status == DIED:
        os.write(2, b"error: internal error: the compiler was ended by signal %d\n" % code)
        return 5
    return code


def main() -> None:
    """Run as a script: a server does it, or this process."""
    entry, program, *arguments = sys.argv[1:]
    code = served(entry, program, arguments, "on")
    os._exit(here(entry, program, arguments) if code is None else code)


def here(entry: str, program: str, arguments: list[str]) -> int:
    """Do in this process what a server would do; the exit code.

    The interpreter was started without its environment's packages (`-S`, `-E`), which a client does
    not need.
    """
    import gc

    gc.disable()  # even `site` makes objects enough; `loading` says how it goes on
    import site
    from importlib import import_module

    sys.path[:1] = [p for p in os.environ.get("PYTHONPATH", "").split(os.pathsep) if p]
    image = _image()
    site.main()
    image.complete()
    from tile_core import own_process
    from tile_core.generated_code import keep

    own_process.claim()
    own_process.loading()
    gc.enable()
    code = keep()
    module, _, name = entry.partition(":")
    sys.argv = [program, *arguments]
    result = int(getattr(import_module(module), name)(arguments, program))
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except OSError:
        result = result or 2
    code.save()
    image.save()
    return result


def _image() -> ModuleImage:
    """Kept modules, before `site` says where this project is: it is around this file."""
    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.realpath(__file__))))
    sys.path.append(home)
    try:
        from tile_core.module_image import keep_modules
    finally:
        sys.path.remove(home)
    return keep_modules(complete=False)


if __name__ == "__main__":
    main()
