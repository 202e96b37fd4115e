"""The compile server: what a client sees, and that nothing a client or worker does hurts others."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from tile_core.server import client

ROOT = Path(__file__).parents[3]
CLIENT = [sys.executable, "-S", "-E", client.__file__]

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="watches Linux's poll")


class Served:
    """A folder of sockets, and clients that use it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            **os.environ,
            "TILEC_SERVER_DIR": str(folder / "run"),
            "TILEC_SERVER": "wait",
            "TILEC_CACHE_DIR": str(folder / "cache"),
            "PYTHONPATH": os.pathsep.join((str(ROOT / "tests"), os.environ.get("PYTHONPATH", ""))),
            "TILEC_SERVER_JOBS": "2",
        }

    def start(self, entry: str, *arguments: str, **more: str) -> subprocess.Popen[str]:
        """A client that asks for a function of `support.served`."""
        return subprocess.Popen(
            [*CLIENT, f"support.served:{entry}", "prog", *arguments],
            env=self.environment | more, cwd=self.folder, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def ask(self, entry: str, *arguments: str, **more: str) -> tuple[int, str, str]:
        """Exit code, output and errors of such a client."""
        process = self.start(entry, *arguments, **more)
        out, err = process.communicate("input", timeout=60)
        return process.returncode, out, err

    @property
    def pid(self) -> int | None:
        """The supervisor."""
        for path in (self.folder / "run").glob("*.lock"):
            with suppress(FileNotFoundError):  # it goes just now
                return int(path.read_text())
        return None

    def stop(self) -> None:
        if self.pid is not None:
            os.kill(self.pid, signal.SIGTERM)
        wait_until(lambda: self.pid is None)


def wait_until(condition: object, seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    made = Served(tmp_path)
    yield made
    made.stop()


def test_the_server_takes_the_clients_place(served: Served) -> None:
    first = served.ask("tell", "a", "b c", WORD="x")
    pid = served.pid
    second = served.ask("tell", WORD="y")
    assert first == (2, f"prog a b c {served.folder} x 0o22 input\n", "to stderr\n")
    assert second == (0, f"prog {served.folder} y 0o22 input\n", "to stderr\n")
    assert served.pid == pid


def test_a_worker_that_dies_costs_its_own_client_an_error(served: Served) -> None:
    code, _, err = served.ask("crash", "out.bin")
    assert (code, err) == (5, "error: internal error: the compiler was ended by signal 11\n")
    assert served.ask("tell")[0] == 0
    assert not list(served.folder.glob("*out.bin*"))


def test_an_exception_is_told_and_the_worker_goes_on(served: Served) -> None:
    code, _, err = served.ask("fail")
    assert code == 5
    assert "RuntimeError: on purpose" in err
    assert served.ask("tell")[0] == 0


def test_a_client_that_goes_takes_its_job_along(served: Served) -> None:
    process = served.start("wait", "out.bin", "begun")
    wait_until((served.folder / "begun").exists)
    worker = int((served.folder / "begun").read_text() or "0")
    assert list(served.folder.glob(".out.bin*.part"))
    process.kill()
    process.communicate()
    wait_until(lambda: not Path(f"/proc/{worker}").exists())
    wait_until(lambda: not list(served.folder.glob("*out.bin*")))
    assert served.ask("tell")[0] == 0


def test_a_worker_that_has_to_be_killed_gets_nothing_more_to_do(served: Served) -> None:
    served.environment["TILEC_SERVER_JOBS"] = "1"
    process = served.start("stubborn", "begun")
    wait_until((served.folder / "begun").exists)
    process.kill()
    process.communicate()
    assert served.ask("tell")[0] == 0


def test_a_worker_may_not_take_all_memory(served: Served) -> None:
    served.environment["TILEC_SERVER_MEMORY"] = "600"
    code, _, err = served.ask("devour")
    assert code == 5
    assert "MemoryError" in err
    assert served.ask("tell")[0] == 0


def test_a_socket_that_a_killed_server_left_is_replaced(served: Served) -> None:
    assert served.ask("tell")[0] == 0
    pid = served.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not Path(f"/proc/{pid}/fd").exists() or _zombie(pid))
    assert list((served.folder / "run").glob("*.socket"))
    assert served.ask("tell")[0] == 0
    assert served.pid != pid


def _zombie(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z"


def test_a_client_of_another_version_is_sent_away(served: Served) -> None:
    assert served.ask("tell")[0] == 0
    (path,) = (served.folder / "run").glob("*.socket")
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(path))
        connection.sendall(client.MAGIC + bytes([client.PROTOCOL + 1]) + (0).to_bytes(4, "little"))
        assert connection.recv(100) == client.reply(client.AWAY, 0)
    assert served.ask("tell")[0] == 0


def test_without_a_server_the_client_does_the_work_itself(served: Served) -> None:
    code, out, _ = served.ask("tell", "a", TILEC_SERVER="off")
    assert (code, out.split()[:2]) == (1, ["prog", "a"])
    assert served.pid is None
    assert served.ask("tell", "a", TILEC_SERVER="running")[0] == 1
    assert served.pid is None


def test_a_folder_that_others_can_enter_is_not_used(served: Served) -> None:
    (served.folder / "run").mkdir(mode=0o755)
    assert served.ask("tell", "a")[0] == 1
    assert not list((served.folder / "run").iterdir())


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
def test_another_user_is_refused(served: Served) -> None:
    assert served.ask("tell")[0] == 0
    (path,) = (served.folder / "run").glob("*.socket")
    # Even where the folders let them through.
    for folder in (path, *path.parents[:-1]):
        folder.chmod(0o777)
    code = (
        "import os, socket; os.setgid(65534); os.setuid(65534); s = socket.socket(socket.AF_UNIX); "
        f"s.connect({str(path)!r}); print(s.recv(10))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20)
    assert done.stdout == "b''\n"


def test_a_client_with_other_plugins_is_not_served_with_these(served: Served) -> None:
    def does_it_itself(**more: str) -> bool:
        process = served.start("whose", **{"TILEC_SERVER": "running"} | more)
        return process.communicate(timeout=60)[0] == f"{process.pid}\n"

    assert served.ask("tell")[0] == 0
    assert not does_it_itself()
    assert does_it_itself(PYTHONPATH=f"{ROOT / 'tests'}{os.pathsep}{served.folder}")


def test_an_idle_server_leaves_and_leaves_nothing(served: Served) -> None:
    served.environment["TILEC_SERVER_IDLE"] = "0.3"
    assert served.ask("tell")[0] == 0
    wait_until(lambda: served.pid is None)
    wait_until(lambda: [p.suffix for p in (served.folder / "run").iterdir()] == [".log"])


def test_a_server_that_nobody_can_reach_leaves(served: Served) -> None:
    assert served.ask("tell")[0] == 0
    pid = served.pid
    (path,) = (served.folder / "run").glob("*.socket")
    path.unlink()
    wait_until(lambda: not Path(f"/proc/{pid}/fd").exists() or _zombie(pid or 0), 60)


def test_many_clients_at_once(served: Served) -> None:
    """Right ones among some that fail, crash or give up: each gets its own answer."""

    def one(number: int) -> bool:
        if number % 7 == 3:
            return served.ask("crash", f"out{number}")[0] == 5
        if number % 7 == 5:
            return served.ask("fail")[0] == 5
        words = [str(number)] * (number % 4)
        code, out, _ = served.ask("tell", *words, WORD=str(number))
        return code == len(words) and out.split()[1 : 1 + len(words)] == words

    assert served.ask("tell")[0] == 0
    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(one, range(56)))
    assert not list(served.folder.glob("*out*"))


def test_a_server_stays_when_python_compiles_a_module(served: Served, tmp_path: Path) -> None:
    """`__pycache__` in a folder that it watches is no change of what is installed."""
    more = tmp_path / "more"
    more.mkdir()
    served.environment["PYTHONPATH"] += f"{os.pathsep}{more}"
    assert served.ask("tell")[0] == 0
    pid = served.pid
    (more / "__pycache__").mkdir()
    assert (served.ask("tell")[0], served.pid) == (0, pid)
    (more / "module.py").touch()
    # The server that is asked leaves; the client does the work itself.
    assert served.ask("tell", "a")[0] == 1
    assert served.ask("tell")[0] == 0
    assert served.pid != pid


def test_the_first_client_waits_for_no_server(served: Served) -> None:
    served.environment["TILEC_SERVER"] = "on"
    process = served.start("whose")
    assert process.communicate(timeout=60)[0] == f"{process.pid}\n"
    wait_until(lambda: bool(list((served.folder / "run").glob("*.socket"))))
    process = served.start("whose")
    assert process.communicate(timeout=60)[0] != f"{process.pid}\n"


def test_one_server_is_started_by_many_clients(served: Served) -> None:
    served.environment["TILEC_SERVER"] = "on"
    clients = [served.start("whose") for _ in range(4)]
    assert [client.communicate(timeout=60)[0] for client in clients] == [
        f"{client.pid}\n" for client in clients
    ]
    wait_until(lambda: bool(list((served.folder / "run").glob("*.socket"))))
    assert len(list((served.folder / "run").glob("*.lock"))) == 1
