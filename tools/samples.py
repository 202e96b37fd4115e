"""Runs the samples of the cuTile repository through this compiler and simulator.

    python tools/samples.py --samples cutile-python/samples --cc 8.0 9.0 10.0 12.0

The samples are those of https://github.com/NVIDIA/cutile-python: a path of its `samples` folder, or
its address, which is then cloned. Their functions are given small inputs and compared with NumPy in
f64, in check mode, where races and reads of what nobody wrote are failures; every kernel launched
is then compiled into a cubin for all targets at all levels. Needs what
`tools/conformance.txt` names.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from compile_all import LEVELS, Outcome, compile_everywhere
from tile_sim.suite.sample_table import SAMPLE_NAMES, Line, as_lines, render

from tile_core.target import builtin_targets

SOURCE = "https://github.com/NVIDIA/cutile-python"


def main(argv: Sequence[str] | None = None) -> int:
    given = _parser().parse_args(argv)
    with tempfile.TemporaryDirectory() as folder:
        samples = _samples(given.samples, given.revision, Path(folder))
        kept = Path(folder, "bytecode")
        kept.mkdir()
        work = [(name, cc) for name in given.only for cc in given.cc]
        with ThreadPoolExecutor(given.jobs) as pool:
            parts = pool.map(lambda one: _run(samples, one[0], one[1], kept, given), work)
            lines = [line for part in parts for line in part]
        compiled = [] if given.unchanged else _compile(kept, given)
    table = render(lines, compiled, given.cc)
    print(table)
    if given.json is not None:
        given.json.write_text(json.dumps([vars(line) for line in lines], indent=1) + "\n")
    if given.markdown is not None:
        given.markdown.write_text(table + "\n")
    return 0 if all(line.good for line in lines) and not any(o.error for o in compiled) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--samples", default=SOURCE, help="folder of samples, or a git address")
    parser.add_argument("--revision", default="v1.6.0", help="tag or commit of what is cloned")
    parser.add_argument("--cc", nargs="+", default=["10.0"], help="compute capabilities")
    parser.add_argument("--only", nargs="+", default=SAMPLE_NAMES, choices=SAMPLE_NAMES)
    parser.add_argument(
        "--unchanged", action="store_true", help="run the programs as they are, unchecked"
    )
    parser.add_argument("--gpu-name", nargs="+", default=list(builtin_targets()),
                        help="targets that every kernel is compiled for")  # fmt: skip
    parser.add_argument("-O", nargs="+", type=int, choices=LEVELS, default=LEVELS, metavar="N")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for one sample")
    parser.add_argument("--cache", type=Path, help="folder that keeps what was compiled")
    parser.add_argument("--json", type=Path, help="write all results there")
    parser.add_argument("--markdown", type=Path, help="write the table there")
    return parser


def _samples(where: str, revision: str, folder: Path) -> Path:
    if Path(where).is_dir():
        return Path(where).resolve()
    clone = ["git", "clone", "--quiet", "--depth", "1", "--branch", revision, where, "cutile"]
    subprocess.run(clone, cwd=folder, check=True)
    return folder / "cutile" / "samples"


def _run(
    samples: Path, name: str, capability: str, kept: Path, given: argparse.Namespace
) -> list[Line]:
    """One sample at one capability, in a process of its own."""
    command = [sys.executable, "-m", "tile_sim.suite.sample_process", str(samples), name]
    # The sizes of the programs themselves are made for GPUs, and looking for races takes its time.
    command += ["--unchanged", "--unchecked"] if given.unchanged else ["--bytecode", str(kept)]
    env = {**os.environ, "TILE_SIM_ARCH": "sm_" + capability.replace(".", "")}
    if given.cache is not None:
        env["TILE_SIM_CACHE"] = str(given.cache.resolve())
    try:
        done = subprocess.run(
            command, env=env, capture_output=True, text=True, timeout=given.timeout
        )
        output, error, ended = done.stdout, done.stderr, done.returncode in (0, 1)
    except subprocess.TimeoutExpired as late:
        output, error = ((part or b"").decode() for part in (late.stdout, late.stderr))
        error, ended = f"{error}\nmore than {given.timeout:g} s", False
    lines = as_lines(name, capability, output, error, ended)
    for line in lines:
        print(line.text(), file=sys.stderr, flush=True)
    return lines


def _compile(kept: Path, given: argparse.Namespace) -> list[Outcome]:
    paths = sorted(kept.glob("*.tileirbc"))
    return compile_everywhere(paths, given.gpu_name, given.O, given.jobs)


if __name__ == "__main__":
    sys.exit(main())
