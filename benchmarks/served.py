"""How long `tileiras` takes, NVIDIA's and ours, as a process that somebody waits for.

    python benchmarks/served.py path/to/nvidia/cu13/bin/tileiras [--runs 15] [PROGRAM...]

Milliseconds, the median of the runs, taken in turns: NVIDIA's; ours cold, without a server but from
the artifact cache, served by a warm server, and served from the cache. With --processor it is time
of processors, of the process and what it started, which other work on the machine does not stretch
as much; what a server does is not in it. With PROGRAMs, also the median of all, once each.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tile_cudatile.bytecode.writer import write_bytecode
from tile_cudatile.tree import Module
from tile_dropin.activation import write_launchers

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "bytecode"
WAYS = ("theirs", "cold", "kept", "served", "cached")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("theirs")
    parser.add_argument("programs", nargs="*", type=Path)
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--processor", action="store_true")
    options = parser.parse_args()
    clock = _processor if options.processor else time.perf_counter
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tools = _tools(options.theirs, folder)
        (folder / "empty.bc").write_bytes(write_bytecode(Module(), version=(13, 4)))
        print(f"{'':28}" + "".join(f"{way:>9}" for way in WAYS) + "   ratios")
        for title, arguments in _cases(folder):
            times = _times(tools, arguments, options.runs, clock)
            _row(title, {way: statistics.median(t) for way, t in times.items()})
        if options.programs:
            _mixed(options.programs, tools, clock)
        subprocess.run([sys.executable, "-m", "tile_core", "serve", "--stop"],
                       env=tools["served"][1], stdout=subprocess.DEVNULL, check=False)  # fmt: skip


def _tools(theirs: str, folder: Path) -> dict[str, tuple[str, dict[str, str]]]:
    write_launchers(folder)
    ours = str(folder / "nvidia" / "cu13" / "bin" / "tileiras")
    base = {
        **os.environ, "TILEC_SERVER_DIR": str(folder / "run"), "TILEC_CACHE_DIR": str(folder / "c"),
        "TILEC_CACHE": "off", "TILEC_SERVER": "wait",
    }  # fmt: skip
    return {
        "theirs": (theirs, base),
        "cold": (ours, base | {"TILEC_SERVER": "off"}),
        "kept": (ours, base | {"TILEC_SERVER": "off", "TILEC_CACHE": "on"}),
        "served": (ours, base),
        "cached": (ours, base | {"TILEC_CACHE": "on"}),
    }


def _cases(folder: Path) -> list[tuple[str, list[str]]]:
    made = str(folder / "made.cubin")

    def program(path: Path | str, gpu: str) -> list[str]:
        return [str(path), "--gpu-name", gpu, "-o", made]

    names = ("vector_add_f32", "softmax_f16", "matmul_f16", "attention_f16")
    return [
        ("--version", ["--version"]),
        ("--list-versions", ["--list-versions"]),
        ("version probe", program(folder / "empty.bc", "sm_120")),
        *((name, program(EXAMPLES / f"{name}.tileirbc", "sm_90")) for name in names),
    ]


def _processor() -> float:
    """Seconds of processors that children which have ended have taken."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _times(
    tools: dict[str, tuple[str, dict[str, str]]],
    arguments: list[str],
    runs: int,
    clock: Callable[[], float],
) -> dict[str, list[float]]:
    """The ways in turns, so that what else the machine does meets all of them; once to warm up."""
    times: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(runs + 1):
        for way in WAYS:
            times[way].append(_once(*tools[way], arguments, clock))
    return {way: found[1:] for way, found in times.items()}


def _once(
    tool: str, environment: dict[str, str], arguments: list[str], clock: Callable[[], float]
) -> float:
    start = clock()
    done = subprocess.run([tool, *arguments], env=environment, capture_output=True)
    seconds = clock() - start
    if done.returncode:
        raise SystemExit(f"{tool} {' '.join(arguments)}: {done.stderr.decode()}")
    return seconds * 1e3


def _mixed(
    programs: list[Path],
    tools: dict[str, tuple[str, dict[str, str]]],
    clock: Callable[[], float],
) -> None:
    """Programs that both compile, once each, in turns."""
    found: list[tuple[float, float]] = []
    for path in programs:
        arguments = [str(path), "--gpu-name", "sm_90", "-o", os.devnull]
        try:
            theirs, ours = (_once(*tools[way], arguments, clock) for way in ("theirs", "served"))
            found.append((theirs, ours))
        except SystemExit:
            continue
    theirs, ours = (statistics.median(times) for times in zip(*found, strict=True))
    ratio = statistics.median(o / t for t, o in found)
    print(
        f"{len(found)} programs: medians {theirs:.0f} and {ours:.0f} ms; median ratio {ratio:.2f}"
    )


def _row(title: str, medians: dict[str, float]) -> None:
    theirs = medians["theirs"]
    ratios = " ".join(f"{way} {medians[way] / theirs:.2f}" for way in WAYS[1:])
    print(
        f"{title:28}" + "".join(f"{medians[way]:9.1f}" for way in WAYS) + f"   {ratios}", flush=True
    )


if __name__ == "__main__":
    main()
