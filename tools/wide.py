"""Runs products with wide tiles, which is where tensor cores are used in full.

    python tools/wide.py --gpu-name sm_90 sm_100 --schedule late early random --json wide.json
    python tools/wide.py --compiler tilec --set pipeline-strategy=warp-specialize

cuTile's own tests have tiles too small for wgmma and tcgen05. Here the products and attention of
`examples/` are exported with wide tiles, in one CTA and in clusters, compiled by tileiras or by
this compiler, and run in the simulator in check mode; NumPy judges. Says how many programs ran that
use TMA, wgmma, tcgen05 (one and two CTAs), clusters and multicast. Needs cuda-tile, and tileiras
for its code. Exits with 1 if a program has a finding, an error or wrong results. A program of
tileiras that reads memory that nobody wrote runs again with that let pass (the simulator fills such
memory with values that show) and is judged by its results; the line of the program and the JSON's
`remarks` say so.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from tile_sim import Module, SimError
from tile_sim.machine.launch import SCHEDULES
from tile_sim.peer import tileiras
from tile_sim.suite.features import NAMES, features_of

import tile_core
from tile_core.diagnostics import TileError

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "examples"))

#: Types of operands, and how far a sum of a few hundred products of them may be off.
_TYPES: dict[str, Any] = {
    "float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float32": np.float32,
}  # fmt: skip
_TOLERANCE = {"float16": 2e-3, "bfloat16": 1.6e-2, "float8_e4m3fn": 2e-3, "float32": 2e-2}


@dataclass(frozen=True)
class Program:
    """A kernel with its tile, the CTAs of its clusters, and the elements of its operands.

    `kernel` is "matmul" (tile: rows, columns, depth) or "attention" (rows, keys, depth).
    """

    kernel: str
    tile: tuple[int, int, int]
    ctas: int = 1
    element: str = "float16"

    def __str__(self) -> str:
        tile = "x".join(map(str, self.tile))
        return f"{self.kernel} {tile} {self.element}, {self.ctas} CTAs"


def _programs() -> Iterator[Program]:
    for ctas in (1, 2, 4):
        for tile in ((128, 128, 64), (256, 128, 64), (128, 256, 64), (256, 256, 64)):
            yield Program("matmul", tile, ctas)
    for element in ("bfloat16", "float8_e4m3fn", "float32"):
        for ctas in (1, 2):
            yield Program("matmul", (128, 128, 64), ctas, element)
    for ctas in (1, 2):
        for tile in ((128, 128, 64), (256, 128, 128)):
            yield Program("attention", tile, ctas)


PROGRAMS = tuple(_programs())


# --- programs -------------------------------------------------------------------------------------


def bytecode_of(program: Program, arch: str) -> bytes:
    """What cuTile makes of a program; the entry is called `wide`."""
    import attention
    import cuda.tile as ct
    import matmul
    from cuda.tile.compilation import export_kernel
    from signatures import array, signature

    module = {"matmul": matmul, "attention": attention}[program.kernel]
    element = getattr(ct, program.element)
    if program.kernel == "matmul":
        result = ct.float16 if program.element == "float8_e4m3fn" else element
        operands = [array(element, 2), array(element, 2), array(result, 2)]
        variant = signature("wide", [*operands, *program.tile])
    else:
        variant = module.variant("wide", element, *program.tile)
    stream = io.BytesIO()
    here = Path.cwd()
    os.chdir(ROOT)  # paths of sources end up in bytecode
    try:
        kernel = module.KERNEL.replace_hints(num_ctas=program.ctas)
        export_kernel(
            kernel, [variant], stream, gpu_code=arch, output_format="tileir_bytecode",
            bytecode_version="13.3",
        )  # fmt: skip
    finally:
        os.chdir(here)
    return stream.getvalue()


@dataclass(frozen=True)
class Launch:
    """Arguments, tile blocks, and the argument that holds the result with what it should be."""

    arguments: list[Any]
    blocks: tuple[int, int]
    result: int
    expected: np.ndarray


def launch_of(program: Program) -> Launch:
    """Inputs whose edges cut tiles, with more steps along K than any ring has stages."""
    rng = np.random.default_rng(7)
    make: Callable[..., np.ndarray] = lambda *shape: (  # noqa: E731
        rng.standard_normal(shape).astype(_TYPES[program.element])
    )
    rows, columns, depth = program.tile
    if program.kernel == "matmul":
        m, n, k = rows - 8, 2 * columns - 16, 6 * depth
        a, b = make(m, k), make(k, n)
        kind = np.float16 if program.element == "float8_e4m3fn" else _TYPES[program.element]
        expected = a.astype(np.float64) @ b.astype(np.float64)
        return Launch(_flat([a, b, np.zeros((m, n), kind)]), (1, 2), 10, expected)
    q, k, v = (make(1, rows + 64, depth), make(1, 3 * columns, depth), make(1, 3 * columns, depth))
    scale = np.float32(depth**-0.5)
    wide = [x[0].astype(np.float64) for x in (q, k, v)]
    scores = np.exp(wide[0] @ wide[1].T * float(scale))
    expected = (scores / scores.sum(axis=1, keepdims=True) @ wide[2])[None]
    arguments = [*_flat([q, k, v, np.zeros_like(q)]), scale]
    return Launch(arguments, (1, 2), 21, expected)


def _flat(arrays: Sequence[np.ndarray]) -> list[Any]:
    """Address, shape and strides in elements of each array, as cuTile's kernels take them."""
    return [
        value
        for array in arrays
        for value in (
            array,
            *map(np.int32, array.shape),
            *(np.int32(stride // array.itemsize) for stride in array.strides),
        )
    ]


# --- runs -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """One program for one GPU: what its code uses, and what was wrong under each schedule."""

    program: Program
    arch: str
    features: tuple[str, ...]
    faults: dict[str, str | None]
    remarks: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        return not any(self.faults.values())


@dataclass(frozen=True)
class Code:
    """The code of a program, and how it is loaded anew for each launch. `lenient`: reads of memory
    that nobody wrote are let pass where results do not depend on them.
    """

    ptx: str
    load: Callable[[], Module]
    lenient: bool


#: Bytecode and architecture to code. Raises TileError: it does not compile.
Compiler = Callable[[bytes, str], Code]


def theirs(path: str | None) -> Compiler:
    """The tileiras at a path; None: the installed one."""
    found = tileiras.find(path)

    def compiled(bytecode: bytes, arch: str) -> Code:
        cubin = found.compile(bytecode, arch)
        return Code(cubin.ptx, lambda: cubin.load(arch), lenient=True)

    return compiled


def ours(options: Sequence[str]) -> Compiler:
    """This compiler at -O3 with `NAME=VALUE` options."""
    given = dict(option.split("=", 1) for option in options)

    def compiled(bytecode: bytes, arch: str) -> Code:
        artifact = tile_core.compile(bytecode, arch, opt_level=3, options=given, emit="ptx")
        ptx = str(artifact.stages["ptx"])
        return Code(ptx, lambda: Module(ptx), lenient=False)

    return compiled


def run(compiler: Compiler, program: Program, arch: str, schedules: Sequence[str]) -> Outcome:
    """Compile a program and launch it under each schedule, in check mode."""
    faults: dict[str, str | None] = {}
    try:
        code = compiler(bytecode_of(program, arch), arch)
    except TileError as error:
        return Outcome(program, arch, (), dict.fromkeys(schedules, error.message))
    remarks: list[str] = []
    for schedule in schedules:
        try:
            faults[schedule] = _fault(code.load(), program, schedule, unwritten=False)
        except SimError as error:
            if code.lenient and error.kind == "uninitialised":
                remarks.append(f"{schedule}: {error}")
                faults[schedule] = _again(code.load(), program, schedule)
            else:
                faults[schedule] = str(error)
    return Outcome(program, arch, tuple(features_of(code.ptx)), faults, tuple(remarks))


def _again(module: Any, program: Program, schedule: str) -> str | None:
    """The same, where memory may be read that nobody wrote: is what was in it in no result?"""
    try:
        return _fault(module, program, schedule, unwritten=True)
    except SimError as error:
        return str(error)


def _fault(module: Any, program: Program, schedule: str, *, unwritten: bool) -> str | None:
    """What is wrong about findings or results; `unwritten` allows reads of what nobody wrote.

    Raises SimError: what the kernel did wrong.
    """
    launch = launch_of(program)
    grid = (*launch.blocks, 1)  # `.blocksareclusters`: a launch counts clusters
    report = module.launch(
        "wide", grid, None, launch.arguments, check=True, schedule=schedule,
        check_uninitialised=not unwritten,
    )  # fmt: skip
    if report.findings:
        return str(report.findings[0])
    found = launch.arguments[launch.result].astype(np.float64)
    error = np.abs(found - launch.expected).max() / np.abs(launch.expected).max()
    tolerance = _TOLERANCE[program.element]
    return None if error <= tolerance else f"off by {error:.2g} of the largest element"


def main(argv: Sequence[str] | None = None) -> int:
    parser = _parser()
    given = parser.parse_args(argv)
    if given.set and given.compiler != "tilec":
        parser.error("--set is of the compiler tilec")
    if any("=" not in option for option in given.set):
        parser.error("--set takes OPTION=VALUE")
    compiler = ours(given.set) if given.compiler == "tilec" else theirs(given.tileiras)
    outcomes: list[Outcome] = []
    for arch in given.gpu_name:
        for program in PROGRAMS[:: given.every]:
            found = run(compiler, program, arch, given.schedule)
            outcomes.append(found)
            wrong = [f"{name}: {fault}" for name, fault in found.faults.items() if fault]
            uses, allowed = ", ".join(found.features), "; ".join(found.remarks)
            said = f"{'; '.join(wrong) or 'right'}{f' (let pass: {allowed})' if allowed else ''}"
            print(f"{arch} {program} [{uses}]: {said}", flush=True)
    print(table(outcomes))
    if given.json is not None:
        given.json.write_text(json.dumps([_record(o) for o in outcomes], indent=1) + "\n")
    return 0 if all(outcome.good for outcome in outcomes) else 1


def table(outcomes: Sequence[Outcome]) -> str:
    """How many programs ran right under all schedules, by what their code uses."""
    lines = [
        f"| target | programs | right | {' | '.join(NAMES)} |",
        "|---" * (len(NAMES) + 3) + "|",
    ]
    for arch in dict.fromkeys(o.arch for o in outcomes):
        mine = [o for o in outcomes if o.arch == arch]
        used = Counter(name for o in mine if o.good for name in o.features)
        figures = [len(mine), sum(o.good for o in mine), *(used[name] for name in NAMES)]
        lines.append(f"| {arch} | {' | '.join(map(str, figures))} |")
    return "\n".join(lines)


def _record(outcome: Outcome) -> dict[str, Any]:
    return {
        "program": str(outcome.program), "arch": outcome.arch, "features": outcome.features,
        "faults": outcome.faults, "remarks": outcome.remarks,
    }  # fmt: skip


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--gpu-name", nargs="+", default=["sm_90", "sm_100"])
    parser.add_argument("--schedule", nargs="+", choices=SCHEDULES, default=list(SCHEDULES))
    parser.add_argument("--every", type=int, default=1, help="only each n-th program")
    parser.add_argument(
        "--compiler", choices=("tileiras", "tilec"), default="tileiras", help="whose code runs"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="OPTION=VALUE",
        help="an option of the pipeline, with --compiler tilec",
    )  # fmt: skip
    parser.add_argument("--tileiras", help="which tileiras, if not the installed one")
    parser.add_argument("--json", type=Path, help="write what was found there")
    return parser


if __name__ == "__main__":
    sys.exit(main())
