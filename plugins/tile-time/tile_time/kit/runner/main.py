"""`python run.py`: the parts of the kit one after the other, most important first.

Each part is a process of its own. A case that takes longer than it may, or that ends its process,
is a result; the part goes on behind it in another process, until its own time is up.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from .gpu import DRIVER, Gpu
from .table import as_table

KIT = Path(__file__).resolve().parents[1]
_POLL = 0.05
_GRACE = 5.0  # seconds that a process which was ended has for going
Found = dict[str, Any]


def main(argv: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(argv)
    device = _facts(given.driver, given.gpu)
    chosen = _manifest(given.target, device)
    about = json.loads(chosen.read_text())
    if given.list:
        for part in about["parts"]:
            print(f"{part['name']}: {len(part['cases'])} cases, {part['seconds']:g} s")
        return 0
    given.out.mkdir(parents=True, exist_ok=True)
    results = Results(given.out / "results.json", about, device)
    known = [part["name"] for part in about["parts"]]
    for name in given.only:
        if name not in known:
            sys.exit(f"there is no part '{name}'; there are: {', '.join(known)}")
    end = time.monotonic() + given.seconds
    for part in about["parts"]:
        if not given.only or part["name"] in given.only:
            run_part(part, chosen, results, end, given)
    text = as_table(results.data)
    (given.out / "results.md").write_text(text)
    print(text)
    return 0 if results.good else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="run.py", description="Runs the GPU kit of tilec.")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of the results")
    parser.add_argument("--seconds", type=float, default=480.0, help="for all parts together")
    parser.add_argument("--only", nargs="+", default=[], metavar="PART")
    parser.add_argument("--list", action="store_true", help="say which parts there are")
    parser.add_argument("--gpu", type=int, default=0, metavar="N", help="which device")
    parser.add_argument("--target", help="cubins to take (sm_90); default: the device's")
    parser.add_argument(
        "--patience", type=float, default=1.0, metavar="FACTOR",
        help="so many times the limits of parts and cases: for a simulated driver",
    )  # fmt: skip
    parser.add_argument("--driver", default=DRIVER, help="module that stands for the driver's")
    return parser


def _manifest(target: str | None, device: Found) -> Path:
    """The manifest for a target; without one, of the highest that the device runs."""
    made = sorted(KIT.glob("sm_*/manifest.json"), key=lambda path: int(path.parent.name[3:]))
    names = {path.parent.name: path for path in made}
    if target is not None:
        if target not in names:
            sys.exit(f"the kit has nothing for {target}; it has: {', '.join(names)}")
        return names[target]
    major, minor = device["capability"]
    fitting = [path for name, path in names.items()
               if int(name[3:]) // 10 == major and int(name[3:]) % 10 <= minor]  # fmt: skip
    if not fitting:
        sys.exit(f"the kit has nothing for compute capability {major}.{minor}; "
                 f"it has: {', '.join(names)}")  # fmt: skip
    return fitting[-1]


def _facts(driver: str, ordinal: int) -> Found:
    """Asked in a process of its own: a driver that hangs or crashes must not take this one."""
    asked = "import sys; from runner.main import told; told(*sys.argv[1:])"
    command = [sys.executable, "-c", asked, driver, str(ordinal)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=KIT,
                              env=_environment())  # fmt: skip
    except subprocess.TimeoutExpired:
        sys.exit("the CUDA driver did not answer in 60 s")
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it ended without a word"])[-1]
        sys.exit(f"no GPU: {last}")
    return json.loads(done.stdout.splitlines()[-1])


def told(driver: str, ordinal: str) -> None:
    """What `_facts` runs."""
    print(json.dumps(Gpu(driver, int(ordinal)).facts()))


def _environment() -> dict[str, str]:
    paths = [str(KIT), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in paths if p)}


class Results:
    """What was found so far, written whole after each case."""

    def __init__(self, path: Path, about: Mapping[str, Any], device: Found) -> None:
        self.path = path
        self.data: Found = {
            "kit": about["kit"], "target": about["target"], "device": device,
            "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "parts": {},
        }  # fmt: skip

    def add(self, part: Mapping[str, Any], case: Mapping[str, Any], found: Found) -> None:
        told = {k: case[k] for k in ("name", "kind", "about", "number", "row") if k in case}
        self.data["parts"].setdefault(part["name"], []).append({**told, **found})
        fresh = self.path.with_suffix(".part")
        fresh.write_text(json.dumps(self.data, indent=1) + "\n")
        fresh.replace(self.path)
        print(f"{part['name']}: {case['name']}: {_state(found)}", file=sys.stderr, flush=True)

    @property
    def good(self) -> bool:
        cases = [case for part in self.data["parts"].values() for case in part]
        return bool(cases) and all(case["ok"] is not False for case in cases)


def _state(found: Found) -> str:
    if found["ok"]:
        value = found.get("value", found.get("us"))
        return "passed" if value is None else f"{value:.6g}"
    why = found.get("skipped") or found.get("error") or "wrong"
    return f"skipped: {why}" if found["ok"] is None else f"FAILED: {why}"


# --- one part -------------------------------------------------------------------------------------


def run_part(
    part: Mapping[str, Any], manifest: Path, results: Results, end: float, given: Any
) -> None:
    """All cases of a part; each gets a result, whatever happens."""
    cases = part["cases"]
    end = min(end, time.monotonic() + part["seconds"] * given.patience)
    first = 0
    while first < len(cases) and time.monotonic() < end:
        first = _process(part, first, manifest, results, end, given)
    for case in cases[first:]:
        results.add(part, case, {"ok": None, "skipped": "no time was left"})


def _process(
    part: Mapping[str, Any], first: int, manifest: Path, results: Results, end: float, given: Any
) -> int:
    """Run cases from `first` on in a child; the first one that it has no result of."""
    output = results.path.with_name(f"{part['name']}.jsonl")
    output.unlink(missing_ok=True)
    command = [sys.executable, "-m", "runner.part", str(manifest), part["name"], str(first),
               str(output.resolve()), given.driver, str(given.gpu)]  # fmt: skip
    child = subprocess.Popen(
        command, cwd=KIT, env=_environment(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    watched = Watched(part, first, output, results, given.patience)
    started = time.monotonic()
    try:
        while child.poll() is None:
            time.sleep(_POLL)
            watched.read()
            now = time.monotonic()
            if now > end or now > watched.since + watched.allowed:
                what = "the part's time is up" if now > end else f"more than {watched.allowed:g} s"
                _end(child)
                watched.read()
                return watched.lost(f"ended: {what}")
    finally:
        _end(child)
    watched.read()
    if watched.current is None and (child.returncode == 0 or watched.next > first):
        return watched.next
    said = (child.stderr.read() if child.stderr else "").strip().splitlines()[-1:]
    took = f"after {time.monotonic() - started:.1f} s"
    return watched.lost(f"its process ended with {child.returncode} {took}: {' '.join(said)}")


def _end(child: subprocess.Popen[str]) -> None:
    """End a process and those it started; one that does not go is left behind."""
    if child.poll() is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            child.wait(_GRACE)


class Watched:
    """What a child has written: the case it is at, and since when."""

    #: Seconds that a process may take until it is ready: imports, the driver's start.
    START = 45.0

    def __init__(
        self, part: Mapping[str, Any], first: int, output: Path, results: Results, patience: float
    ) -> None:
        self.part, self.output, self.results = part, output, results
        self.patience = patience
        self.next = first
        self.current: int | None = None
        self.since = time.monotonic()
        self.allowed = self.START * max(patience, 1.0)
        self._read = 0

    def read(self) -> None:
        if not self.output.exists():
            return
        with self.output.open() as file:
            file.seek(self._read)
            for line in iter(file.readline, ""):
                if not line.endswith("\n"):
                    break
                self._read += len(line.encode())
                self._line(json.loads(line))

    def _line(self, line: Found) -> None:
        self.since = time.monotonic()
        if "ready" in line:
            return
        if "begins" in line:
            self.current = line["begins"]
            self.allowed = self.part["cases"][self.current]["seconds"] * self.patience
            return
        index = line.pop("ends")
        self.results.add(self.part, self.part["cases"][index], line)
        self.current, self.next = None, index + 1

    def lost(self, error: str) -> int:
        """The case that the child did not finish has this error; the one behind it."""
        index = self.next if self.current is None else self.current
        if index < len(self.part["cases"]):
            self.results.add(self.part, self.part["cases"][index], {"ok": False, "error": error})
        return index + 1
