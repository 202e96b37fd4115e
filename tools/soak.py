"""Load on a compile server: many clients, some of them wrong, crashing or killed half-way.

    python tools/soak.py --requests 1000 --clients 8      # `make soak`: --minutes 120
    python tools/soak.py --minutes 120 --rate 30          # on a machine that others use, too

Every answer is compared with what a compilation without a server gives; in the end, memory, worker
folders and unfinished files are looked at. A request without an answer within `--patience` seconds
is lost: where the server's processes are then, and what its log says, is printed. Exit code 1 when
anything is wrong or lost.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tile_core.server import client

ROOT = Path(__file__).resolve().parents[1]
ENTRY = "tile_dropin.main:run"
GPUS = ("sm_80", "sm_90", "sm_100", "sm_120")
_TICKS = os.sysconf("SC_CLK_TCK")
#: What a client does, and how many of a hundred do it.
MIX = {"compile": 70, "version": 8, "garbage": 8, "crash": 5, "kill": 5, "usage": 4}


@dataclass
class Soak:
    """One run: its folder, its clients' environment, and what went wrong."""

    folder: Path
    programs: list[Path]
    patience: float
    wrong: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    memory: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        (self.folder / "out").mkdir()
        (self.folder / "garbage.bc").write_bytes(b"garbage")
        self.environment = {
            **os.environ, "TILEC_SERVER": "wait", "TILEC_SERVER_DIR": str(self.folder / "run"),
            "TILEC_CACHE": "off", "TILEC_CACHE_DIR": str(self.folder / "cache"),
            "TMPDIR": str(self.folder / "tmp"), "PYTHONPATH": str(ROOT / "tests"),
        }  # fmt: skip
        (self.folder / "tmp").mkdir()
        self.expected = {
            (program, gpu): self._alone(program, gpu) for program in self.programs for gpu in GPUS
        }

    def _alone(self, program: Path, gpu: str) -> str:
        path = self.folder / "alone.cubin"
        self._run(ENTRY, str(program), "--gpu-name", gpu, "-o", str(path), TILEC_SERVER="off")
        return hashlib.sha256(path.read_bytes()).hexdigest()

    def _start(self, entry: str, *arguments: str, **more: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-S", "-E", client.__file__, entry, "tileiras", *arguments]
        return subprocess.Popen(
            command, env=self.environment | more, cwd=self.folder, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def _run(self, entry: str, *arguments: str, **more: str) -> tuple[int, bytes, bytes]:
        process = self._start(entry, *arguments, **more)
        try:
            out, err = process.communicate(timeout=self.patience)
        except subprocess.TimeoutExpired:
            self._show_server()
            process.kill()
            process.communicate()
            raise
        return process.returncode, out, err

    def _show_server(self) -> None:
        """Where its processes are; workers write where in Python they are to the server's log."""
        supervisor = self._supervisor()
        for pid in (supervisor, *self._children(supervisor)):
            with suppress(OSError):
                command = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")[:80]
                state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                place = Path(f"/proc/{pid}/wchan").read_text()
                used = (int(state[11]) + int(state[12])) / _TICKS
                print(f"{pid} of {state[1]}: {state[0]} in {place}, {used:.1f} s: {command!r}")
                if int(state[1]) == supervisor:
                    os.kill(pid, signal.SIGUSR1)
        time.sleep(2)
        for log in (self.folder / "run").glob("*.log"):
            print(log.read_text(errors="replace")[-8000:], flush=True)

    def one(self, number: int) -> None:
        """One client, chosen by `number`."""
        chance = random.Random(number)
        kind = chance.choices(list(MIX), list(MIX.values()))[0]
        try:
            problem = getattr(self, f"_{kind}")(number, chance)
        except subprocess.TimeoutExpired:
            problem = f"lost: no answer within {self.patience:g} s"
            self.counts["lost"] += 1
        self.counts[kind] += 1
        if problem:
            self.wrong.append(f"request {number} ({kind}): {problem}")

    def _compile(self, number: int, chance: random.Random) -> str | None:
        program, gpu = chance.choice(self.programs), chance.choice(GPUS)
        path = self.folder / "out" / f"{number}.cubin"
        code, _, err = self._run(ENTRY, str(program), "--gpu-name", gpu, "-o", str(path))
        if code or hashlib.sha256(path.read_bytes()).hexdigest() != self.expected[program, gpu]:
            return f"{program.name} for {gpu}: code {code}, {err.decode()}, or other bytes"
        path.unlink()
        return None

    def _version(self, _number: int, _chance: random.Random) -> str | None:
        code, out, _ = self._run(ENTRY, "--version")
        return None if code == 0 and b"release 13.5" in out else f"code {code}, {out!r}"

    def _garbage(self, number: int, _chance: random.Random) -> str | None:
        path = self.folder / "out" / f"{number}.cubin"
        arguments = ("garbage.bc", "--gpu-name", "sm_90", "-o", str(path))
        code, _, err = self._run(ENTRY, *arguments)
        return None if (code, path.exists()) == (3, False) else f"code {code}, {err!r}"

    def _usage(self, _number: int, _chance: random.Random) -> str | None:
        code, _, err = self._run(ENTRY, "--bogus")
        return None if code == 1 and b"Unknown" in err else f"code {code}, {err!r}"

    def _crash(self, number: int, _chance: random.Random) -> str | None:
        path = self.folder / "out" / f"{number}.cubin"
        code, _, err = self._run("support.served:crash", str(path))
        return None if code == 5 and b"signal 11" in err else f"code {code}, {err!r}"

    def _kill(self, number: int, chance: random.Random) -> str | None:
        path = self.folder / "out" / f"{number}.cubin"
        program = str(chance.choice(self.programs))
        process = self._start(ENTRY, program, "--gpu-name", chance.choice(GPUS), "-o", str(path))
        time.sleep(chance.random() * 0.2)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
        path.unlink(missing_ok=True)
        return None

    # --- what is left ------------------------------------------------------------------------

    def watch(self) -> None:
        """Note the memory of the supervisor and its children, in KiB."""
        pids = [self._supervisor(), *self._children(self._supervisor())]
        self.memory.append(sum(_resident(pid) for pid in pids if pid))

    def _supervisor(self) -> int:
        found = list((self.folder / "run").glob("*.lock"))
        return int(found[0].read_text() or "0") if found else 0

    def _children(self, pid: int) -> list[int]:
        try:
            text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
        except OSError:
            return []
        own = [int(child) for child in text.split()]
        return own + [c for child in own for c in self._children(child)]

    def finish(self) -> None:
        """Stop the server, and see what it leaves."""
        time.sleep(2.5)  # killed clients' jobs have a second to clean up
        left = [p.name for p in (self.folder / "out").iterdir()]
        if left:
            self.wrong.append(f"left behind: {left}")
        pid = self._supervisor()
        if pid:
            os.kill(pid, signal.SIGTERM)
            end = time.monotonic() + 30
            while self._supervisor() and time.monotonic() < end:
                time.sleep(0.05)
            time.sleep(1.5)
        left = [p.name for p in (self.folder / "tmp").iterdir()]
        left += [p.name for p in (self.folder / "run").iterdir() if p.suffix != ".log"]
        if left:
            self.wrong.append(f"left behind when it stopped: {left}")


def _resident(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    except OSError:
        pass
    return 0


def main() -> int:
    """Run the load."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--patience", type=float, default=300, help="seconds for an answer [300]")
    parser.add_argument("--minutes", type=float, help="go on for so long instead")
    parser.add_argument(
        "--rate", type=float, help="requests a minute: pauses after each hundred [no pauses]"
    )
    options = parser.parse_args()
    names = ("vector_add_f32", "softmax_f16", "matmul_f16", "rms_norm_f32")
    programs = [ROOT / "examples" / "bytecode" / f"{name}.tileirbc" for name in names]
    start = time.monotonic()
    with tempfile.TemporaryDirectory() as name:
        soak = Soak(Path(name), programs, options.patience)
        done = 0
        with ThreadPoolExecutor(options.clients) as pool:
            while done < options.requests if options.minutes is None else (
                time.monotonic() - start < options.minutes * 60
            ):  # fmt: skip
                list(pool.map(soak.one, range(done, done + 100)))
                done += 100
                soak.watch()
                if options.rate:
                    time.sleep(max(0.0, start + done * 60 / options.rate - time.monotonic()))
                print(f"{done} requests, {len(soak.wrong)} wrong, {soak.memory[-1] >> 10} MiB, "
                      f"{time.monotonic() - start:.0f} s", flush=True)  # fmt: skip
        soak.finish()
    tenths = [soak.memory[len(soak.memory) * i // 10] >> 10 for i in range(10)]
    print(f"memory at the start of each tenth, MiB: {tenths}, last {soak.memory[-1] >> 10}")
    print(dict(soak.counts), "memory in MiB:", [m >> 10 for m in soak.memory])
    print("\n".join(soak.wrong[:20]) or "all answers right, nothing left behind")
    return int(bool(soak.wrong))


if __name__ == "__main__":
    sys.exit(main())
