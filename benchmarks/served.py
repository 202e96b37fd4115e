"""How long `tileiras` takes, NVIDIA's and ours, for somebody who waits and for the processors.

    python benchmarks/served.py [path/to/bin/tileiras] [--runs 15] [--only vector_add]
    python benchmarks/served.py --corpus 200     # programs of the corpus instead of examples
    python benchmarks/served.py --first          # what the call costs that starts a server

Milliseconds, the median of the runs, taken in turns: NVIDIA's; ours cold, without a server but from
the artifact cache ("kept"), by a warm server, and by the server from the cache. "Processor" is time
of processors of the whole tree of processes, with what the server did (`process_tree.py`); other
work on the machine does not stretch it as much as it stretches waiting.
"""

from __future__ import annotations

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import process_tree
from peer import find_tool
from process_tree import Ended, Server
from tile_cudatile.bytecode.writer import write_bytecode
from tile_cudatile.tree import Module
from tile_dropin.activation import write_launchers

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = ROOT / "examples" / "bytecode"
WAYS = ("theirs", "cold", "kept", "served", "cached")
_GPU = "sm_90"
#: Seconds that a server may take to start or to stop on a busy machine.
_PATIENCE = 600


@dataclass(frozen=True)
class Way:
    """How a command line is run."""

    tool: str
    environment: dict[str, str]
    server: Server | None = None


@dataclass(frozen=True)
class Case:
    """One command line."""

    title: str
    arguments: tuple[str, ...]


def main() -> None:
    """Print the tables."""
    options = _arguments()
    theirs = options.theirs or find_tool("tileiras")
    if theirs is None:
        sys.exit("NVIDIA's tileiras is not here: name it, or `pip install --group peer`")
    process_tree.adopt_orphans()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours, base = _installed(folder)
        if options.first:
            _first_calls(str(theirs), ours, base, folder, options.runs)
            return
        with _server(base, folder) as server:
            ways = _ways(str(theirs), ours, base, server)
            if options.corpus:
                _many(_corpus(folder, options.corpus), ways, options.runs, options.corpus)
            else:
                cases = [c for c in _cases(folder) if _chosen(c.title, options.only)]
                _few(cases, ways, options.runs)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("theirs", nargs="?", type=Path, help="default: of the `nvidia` wheels")
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--only", nargs="+", metavar="TITLE", help="cases whose title has this")
    parser.add_argument(
        "--corpus", type=int, metavar="N", help="N programs of the corpus that both compile"
    )
    parser.add_argument("--first", action="store_true", help="calls that start a server")
    return parser.parse_args()


def _chosen(title: str, only: Sequence[str] | None) -> bool:
    return only is None or any(part in title for part in only)


# --- ways ----------------------------------------------------------------------------------------


def _installed(folder: Path) -> tuple[str, dict[str, str]]:
    """Our `tileiras`, as `tilec activate` makes it, and an environment of its own."""
    write_launchers(folder)
    base = {
        **os.environ, "TILEC_SERVER_DIR": str(folder / "run"), "TILEC_CACHE_DIR": str(folder / "c"),
        "TILEC_CACHE": "off", "TILEC_SERVER": "running",
    }  # fmt: skip
    # With it, Python compiles every source of an editable installation anew; wheels come compiled.
    base.pop("PYTHONDONTWRITEBYTECODE", None)
    return str(folder / "nvidia" / "cu13" / "bin" / "tileiras"), base


def _ways(theirs: str, ours: str, base: dict[str, str], server: Server) -> dict[str, Way]:
    return {
        "theirs": Way(theirs, base),
        "cold": Way(ours, base | {"TILEC_SERVER": "off"}),
        "kept": Way(ours, base | {"TILEC_SERVER": "off", "TILEC_CACHE": "on"}),
        "served": Way(ours, base, server),
        "cached": Way(ours, base | {"TILEC_CACHE": "on"}, server),
    }


@contextmanager
def _server(base: dict[str, str], folder: Path) -> Iterator[Server]:
    """A server that has loaded all it needs; a child of this process."""
    command = [sys.executable, "-P", "-m", "tile_core.server", "--preload", "tile_dropin.main:run"]
    (folder / "run").mkdir(mode=0o700)
    child = subprocess.Popen(command, env=base, stdout=subprocess.DEVNULL)
    try:
        end = time.monotonic() + _PATIENCE
        while not list((folder / "run").glob("*.socket")):
            if child.poll() is not None or time.monotonic() > end:
                sys.exit("the server did not start")
            time.sleep(0.05)
        yield Server(child.pid)
    finally:
        child.send_signal(signal.SIGTERM)
        child.wait(_PATIENCE)


def _once(way: Way, case: Case) -> Ended:
    ended = process_tree.run([way.tool, *case.arguments], way.environment, way.server)
    if ended.code:
        raise RuntimeError(f"{way.tool} {' '.join(case.arguments)}:\n{ended.err.decode()}")
    return ended


def _reason(error: RuntimeError) -> str:
    """Who refused a program, and the last part of the first line of what it said."""
    command, said, *_ = (*str(error).splitlines(), "")
    return f"{command.partition(' ')[0]}: {said[-120:]}"


# --- a few cases, every way ----------------------------------------------------------------------


def _cases(folder: Path) -> list[Case]:
    made = str(folder / "made.cubin")
    empty = folder / "empty.bc"
    empty.write_bytes(write_bytecode(Module(), version=(13, 4)))
    names = ("vector_add_f32", "softmax_f16", "matmul_f16", "attention_f16")
    return [
        Case("--version", ("--version",)),
        Case("--list-versions", ("--list-versions",)),
        Case("version probe", (str(empty), "--gpu-name", "sm_120", "-o", made)),
        *(_program(name, EXAMPLES / f"{name}.tileirbc", made) for name in names),
    ]


def _program(title: str, path: Path, made: str) -> Case:
    return Case(title, (str(path), "--gpu-name", _GPU, "-o", made))


def _few(cases: list[Case], ways: dict[str, Way], runs: int) -> None:
    found = {case: _times(ways, case, runs) for case in cases}
    _table("waited, ms", {c: {w: [e.waited for e in es] for w, es in t.items()}
                          for c, t in found.items()})  # fmt: skip
    _table("processor, ms", {c: {w: [e.processor for e in es] for w, es in t.items()}
                             for c, t in found.items()})  # fmt: skip


def _times(ways: dict[str, Way], case: Case, runs: int) -> dict[str, list[Ended]]:
    """The ways in turns, so that what else the machine does meets all of them; once to warm up."""
    times: dict[str, list[Ended]] = {way: [] for way in ways}
    for _ in range(runs + 1):
        for name, way in ways.items():
            times[name].append(_once(way, case))
    return {way: found[1:] for way, found in times.items()}


def _table(what: str, rows: dict[Case, dict[str, list[float]]]) -> None:
    print(f"{what:20}" + "".join(f"{way:>9}" for way in WAYS) + "   ratios to theirs")
    for case, times in rows.items():
        # What a server's tools took is known in whole ticks: of these the mean says more.
        middle = statistics.mean if what.startswith("processor") else statistics.median
        taken = {way: middle(times[way]) * 1e3 for way in WAYS}
        ratios = " ".join(f"{way} {taken[way] / taken['theirs']:.2f}" for way in WAYS[1:])
        print(f"{case.title:20}" + "".join(f"{taken[way]:9.1f}" for way in WAYS) + f"   {ratios}")
    print(flush=True)


# --- many programs -------------------------------------------------------------------------------


def _corpus(folder: Path, count: int) -> list[Case]:
    """The corpus in its newest bytecode: `count` programs evenly spread over their names come
    first, then the others."""
    sys.path.insert(0, str(ROOT / "tests"))
    from unit.tile_cudatile.corpus import archive  # pyright: ignore

    files = archive.files()
    versions = {archive.case_of(n): n for n in sorted(files, key=_version)}  # the newest stays
    every = sorted(versions)
    spread = [every[at * len(every) // count] for at in range(min(count, len(every)))]
    cases: list[Case] = []
    for name in dict.fromkeys((*spread, *every)):
        path = folder / f"{name.replace('/', '-')}.bc"
        path.write_bytes(files[versions[name]])
        cases.append(_program(name, path, str(folder / "made.cubin")))
    return cases


def _version(name: str) -> list[int]:
    """The bytecode version in "case.13.4"."""
    return [int(part) for part in name.rsplit(".", 2)[1:]]


def _many(cases: Iterable[Case], ways: dict[str, Way], runs: int, count: int) -> None:
    """The first `count` programs that both compile: NVIDIA's tool and our server in turns."""
    waited: list[tuple[float, float]] = []
    processor: list[tuple[float, float]] = []
    looked_at = 0
    for case in cases:
        if len(waited) == count:
            break
        looked_at += 1
        try:
            pairs = [
                (_once(ways["theirs"], case), _once(ways["served"], case)) for _ in range(runs)
            ]
        except RuntimeError as error:
            print(f"{case.title}: left out: {_reason(error)}", flush=True)
            continue
        waited.append(_medians([(t.waited, o.waited) for t, o in pairs]))
        processor.append(_means([(t.processor, o.processor) for t, o in pairs]))
    for what, times in (("waited", waited), ("processor", processor)):
        ratios = sorted(ours / theirs for theirs, ours in times)
        theirs, ours = (statistics.median(t) * 1e3 for t in zip(*times, strict=True))
        print(
            f"{what}: {len(times)} of the first {looked_at} programs, "
            f"medians {theirs:.0f} and {ours:.0f} ms, "
            f"median ratio {statistics.median(ratios):.2f}, "
            f"10 % {ratios[len(ratios) // 10]:.2f}, 90 % {ratios[len(ratios) * 9 // 10]:.2f}, "
            f"sum of ours / sum of theirs {sum(o for _, o in times) / sum(t for t, _ in times):.2f}"
        )


def _medians(pairs: list[tuple[float, float]]) -> tuple[float, float]:
    theirs, ours = zip(*pairs, strict=True)
    return statistics.median(theirs), statistics.median(ours)


def _means(pairs: list[tuple[float, float]]) -> tuple[float, float]:
    theirs, ours = zip(*pairs, strict=True)
    return statistics.mean(theirs), statistics.mean(ours)


# --- the first call ------------------------------------------------------------------------------


def _first_calls(theirs: str, ours: str, base: dict[str, str], folder: Path, runs: int) -> None:
    """Calls that find no server, start one and do the work, as under `tilec activate`."""
    print(f"{'waited, ms':20}{'theirs':>9}{'first':>9}{'cold':>9}{'second':>9}")
    for case in _cases(folder):
        times: dict[str, list[float]] = {"theirs": [], "first": [], "cold": [], "second": []}
        for run in range(runs + 1):
            # A folder of its own, so that there is no server.
            own = base | {"TILEC_SERVER": "on", "TILEC_SERVER_DIR": str(folder / f"first{run}")}
            waited = {
                "theirs": _waited(theirs, case, own),
                "cold": _waited(ours, case, own | {"TILEC_SERVER": "off"}),
                "first": _waited(ours, case, own),
            }
            _await_server(own)
            waited["second"] = _waited(ours, case, own)
            _stop_server(own)
            if run:
                for name, seconds in waited.items():
                    times[name].append(seconds * 1e3)
        print(f"{case.title:20}" + "".join(f"{statistics.median(t):9.1f}" for t in times.values()),
              flush=True)  # fmt: skip


def _waited(tool: str, case: Case, environment: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run([tool, *case.arguments], env=environment, capture_output=True, check=True)
    return time.perf_counter() - start


def _await_server(environment: dict[str, str]) -> None:
    """Until the server that a call has started listens."""
    end = time.monotonic() + _PATIENCE
    while not list(Path(environment["TILEC_SERVER_DIR"]).glob("*.socket")):
        if time.monotonic() > end:
            sys.exit("no server came")
        time.sleep(0.02)


def _stop_server(environment: dict[str, str]) -> None:
    command = [sys.executable, "-m", "tile_core", "serve", "--stop"]
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)


if __name__ == "__main__":
    main()
