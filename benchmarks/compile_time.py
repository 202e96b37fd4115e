"""Compile time of the examples: cold process and warm in-process, stage by stage, beside tileiras.

`make bench` installs NVIDIA's tileiras (group `peer`) where it can be; without it, only our own
times are printed. Both compilers run alternately, in the same run, on the same bytecode.

    python benchmarks/compile_time.py --kernel vector_add_f32 --gpu-name sm_90 -O 3 --json out.json
    python benchmarks/compile_time.py --folder kernels/ --gpu-name sm_90
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import folder
from peer import find_tool

EXAMPLES = Path(__file__).resolve().parents[1] / "examples" / "bytecode"
TILEC = [sys.executable, "-c", "from tile_core.cli.main import main; main()"]


@dataclass
class Measurement:
    """Times of one kernel, in milliseconds, medians; None where not measured."""

    kernel: str
    cold: float  # a whole `tilec compile` process
    first: float  # the first compile in a fresh process, imports included
    warm: float  # every later one
    tileiras: float | None  # a whole `tileiras` process
    stages_first: dict[str, float] = field(default_factory=dict)
    stages_warm: dict[str, float] = field(default_factory=dict)

    @property
    def cold_ratio(self) -> float | None:
        return None if self.tileiras is None else self.cold / self.tileiras

    @property
    def warm_ratio(self) -> float | None:
        return None if self.tileiras is None else self.warm / self.tileiras


def main() -> int:
    """Measure and print."""
    options = _arguments()
    if options.child:
        print(json.dumps(_in_process(options)))
        return 0
    peer = options.tileiras or find_tool("tileiras")
    if options.folder:
        run = folder.measure(
            options.folder, options.gpu_name, options.opt_level, options.sample, peer
        )
        folder.show(run)
        if options.json:
            folder.write(run, options.json, options.gpu_name, options.opt_level)
        return 0
    made = [_measure(name, options, peer) for name in options.kernel]
    for one in made:
        _print(one)
    _summary(made, options, peer)
    if options.json:
        _write_json(made, options, peer)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    known = sorted(path.stem for path in EXAMPLES.glob("*.tileirbc"))
    parser.add_argument("--kernel", action="append", choices=known, help="default: a few")
    parser.add_argument("--gpu-name", default="sm_90")
    parser.add_argument("-O", "--opt-level", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=11, help="runs that a median is taken of")
    parser.add_argument("--tileiras", type=Path, help="the tileiras to compare with")
    parser.add_argument("--folder", type=Path, help="compile every bytecode file of a folder")
    parser.add_argument("--sample", type=int, default=40, help="files of it for whole processes")
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.kernel = options.kernel or ["vector_add_f32", "softmax_f32", "layer_norm_f32"]
    return options


# --- the other compiler --------------------------------------------------------------------------


# --- measuring -----------------------------------------------------------------------------------


def _measure(name: str, options: argparse.Namespace, peer: Path | None) -> Measurement:
    source = str(EXAMPLES / f"{name}.tileirbc")
    with tempfile.TemporaryDirectory() as folder:
        output = str(Path(folder, "out.cubin"))
        flags = ["--gpu-name", options.gpu_name, f"-O{options.opt_level}", "-o", output]
        ours = [*TILEC, "compile", source, *flags]
        theirs = [str(peer), source, *flags] if peer else None
        times: dict[str, list[float]] = {"ours": [], "theirs": []}
        _run(ours)  # so that Python's caches of compiled modules exist, as after an installation
        for _ in range(options.repeat):
            Path(output).unlink(missing_ok=True)
            times["ours"].append(_run(ours))
            if theirs is not None:
                times["theirs"].append(_run(theirs))
            if not Path(output).stat().st_size:
                sys.exit("an empty cubin was written")
    inside = _child(name, options)
    return Measurement(
        name,
        cold=median(times["ours"]),
        first=inside["first"],
        warm=inside["warm"],
        tileiras=median(times["theirs"]) if theirs is not None else None,
        stages_first=inside["stages_first"],
        stages_warm=inside["stages_warm"],
    )


def _environment() -> dict[str, str]:
    """This process's, without the switch that makes Python compile every module anew."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


def _run(command: list[str]) -> float:
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=_environment())
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\nexit code {done.returncode}\n{done.stderr}")
    return (time.perf_counter() - start) * 1e3


def _child(name: str, options: argparse.Namespace) -> dict[str, Any]:
    command = [
        sys.executable, __file__, "--child", "--kernel", name, "--gpu-name", options.gpu_name,
        "-O", str(options.opt_level), "--repeat", str(options.repeat),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=_environment())
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def _in_process(options: argparse.Namespace) -> dict[str, Any]:
    """What the hidden `--child` measures: the first compile in this process, and later ones."""
    source = (EXAMPLES / f"{options.kernel[0]}.tileirbc").read_bytes()
    start = time.perf_counter()
    import tile_core

    def compile_once() -> tuple[float, dict[str, float]]:
        begin = time.perf_counter()
        made = tile_core.compile(
            source, options.gpu_name, opt_level=options.opt_level, keep_stages=False
        )
        assert made.cubin
        return (time.perf_counter() - begin) * 1e3, _stages(made.timings)

    _, stages_first = compile_once()
    first = (time.perf_counter() - start) * 1e3
    runs = [compile_once() for _ in range(options.repeat)]
    names = runs[0][1]
    return {
        "first": first,
        "warm": median(total for total, _ in runs),
        "stages_first": stages_first,
        "stages_warm": {name: median(stages[name] for _, stages in runs) for name in names},
    }


def _stages(root: Any) -> dict[str, float]:
    """Milliseconds of every direct part of a compilation, and what lies between them."""
    found = {span.name: span.wall * 1e3 for span in _parts(root)}
    found["(between)"] = root.wall * 1e3 - sum(found.values())
    return found


def _parts(root: Any) -> list[Any]:
    """The direct parts; for a named scope, those inside of it."""
    return [
        part
        for span in root.children
        for part in (_parts(span) if span.kind == "scope" else [span])
    ]


# --- printing ------------------------------------------------------------------------------------


def _print(one: Measurement) -> None:
    print(f"{one.kernel}\n    {'stage':<28} {'first, ms':>10} {'warm, ms':>10}")
    for name, first in one.stages_first.items():
        print(f"    {name:<28} {first:10.1f} {one.stages_warm.get(name, 0.0):10.1f}")
    print(f"    {'compile()':<28} {one.first:10.1f} {one.warm:10.1f}\n")


def _summary(made: list[Measurement], options: argparse.Namespace, peer: Path | None) -> None:
    print(f"{options.gpu_name}, -O{options.opt_level}, medians of {options.repeat}, milliseconds")
    print(f"{'kernel':<20} {'cold':>8} {'warm':>8} {'tileiras':>9} {'cold/til.':>10} "
          f"{'warm/til.':>10}")  # fmt: skip
    for one in made:
        row = f"{one.kernel:<20} {one.cold:8.0f} {one.warm:8.0f}"
        if one.tileiras is not None:
            row += f" {one.tileiras:9.0f} {one.cold_ratio:9.1f}x {one.warm_ratio:9.1f}x"
        print(row)
    if peer is None:
        print("tileiras is not installed: no comparison (make bench, or --tileiras FILE)")


def _write_json(made: list[Measurement], options: argparse.Namespace, peer: Path | None) -> None:
    rows = [
        {**asdict(one), "cold_ratio": one.cold_ratio, "warm_ratio": one.warm_ratio} for one in made
    ]
    document = {
        "unit": "ms",
        "gpu": options.gpu_name,
        "opt_level": options.opt_level,
        "repeat": options.repeat,
        "machine": {"python": platform.python_version(), "cpus": os.cpu_count()},
        "tileiras": _version(peer),
        "kernels": rows,
    }
    options.json.write_text(json.dumps(document, indent=1) + "\n")


def _version(peer: Path | None) -> str | None:
    if peer is None:
        return None
    done = subprocess.run([str(peer), "--version"], capture_output=True, text=True, check=False)
    return next((line for line in done.stdout.splitlines() if "release" in line), None)


if __name__ == "__main__":
    sys.exit(main())
