"""How long `tileiras` takes, NVIDIA's and ours, as a process that somebody waits for.

    python benchmarks/served.py path/to/nvidia/cu13/bin/tileiras [--runs 15] [PROGRAM...]

Milliseconds, the median of the runs, taken in turns: NVIDIA's; ours cold, served by a warm server,
and from the artifact cache. With PROGRAMs, also the median of all of them, once each.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tile_cudatile.bytecode.writer import write_bytecode
from tile_cudatile.tree import Module
from tile_dropin.activation import write_launchers

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "bytecode"
WAYS = ("theirs", "cold", "served", "cached")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("theirs")
    parser.add_argument("programs", nargs="*", type=Path)
    parser.add_argument("--runs", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        tools = _tools(options.theirs, folder)
        (folder / "empty.bc").write_bytes(write_bytecode(Module(), version=(13, 4)))
        print(f"{'':28}" + "".join(f"{way:>9}" for way in WAYS) + "   ratios")
        for title, arguments in _cases(folder):
            times = _times(tools, arguments, options.runs)
            _row(title, {way: statistics.median(t) for way, t in times.items()})
        if options.programs:
            _mixed(options.programs, tools)
        subprocess.run([sys.executable, "-m", "tile_core", "serve", "--stop"],
                       env=tools["served"][1], stdout=subprocess.DEVNULL, check=False)  # fmt: skip


def _tools(theirs: str, folder: Path) -> dict[str, tuple[str, dict[str, str]]]:
    write_launchers(folder)
    ours = str(folder / "nvidia" / "cu13" / "bin" / "tileiras")
    base = {
        **os.environ, "TILEC_SERVER_DIR": str(folder / "run"), "TILEC_CACHE_DIR": str(folder / "c"),
        "TILEC_CACHE": "off", "TILEC_SERVER": "on",
    }  # fmt: skip
    return {
        "theirs": (theirs, base),
        "cold": (ours, base | {"TILEC_SERVER": "off"}),
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


def _times(
    tools: dict[str, tuple[str, dict[str, str]]], arguments: list[str], runs: int
) -> dict[str, list[float]]:
    """The ways in turns, so that what else the machine does meets all of them; once to warm up."""
    times: dict[str, list[float]] = {way: [] for way in WAYS}
    for _ in range(runs + 1):
        for way in WAYS:
            times[way].append(_once(*tools[way], arguments))
    return {way: found[1:] for way, found in times.items()}


def _once(tool: str, environment: dict[str, str], arguments: list[str]) -> float:
    start = time.perf_counter()
    done = subprocess.run([tool, *arguments], env=environment, capture_output=True)
    seconds = time.perf_counter() - start
    if done.returncode:
        raise SystemExit(f"{tool} {' '.join(arguments)}: {done.stderr.decode()}")
    return seconds * 1e3


def _mixed(programs: list[Path], tools: dict[str, tuple[str, dict[str, str]]]) -> None:
    """Programs that both compile, once each, in turns."""
    found: list[tuple[float, float]] = []
    for path in programs:
        arguments = [str(path), "--gpu-name", "sm_90", "-o", os.devnull]
        try:
            found.append(tuple(_once(*tools[way], arguments) for way in ("theirs", "served")))  # type: ignore[arg-type]
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
