"""Builds the GPU kit: a folder that is taken to a machine with a GPU and run there.

    python tools/gpu_kit.py --out build/gpu-kit --target sm_90 sm_100
    python tools/gpu_kit.py --quick --target sm_90       # a few cases of each part

On the other machine: `pip install numpy cuda-bindings; python run.py`, then here
`tilec gpu-report results/results.json`. Every expected result is the simulator's. tileiras' code
goes in where tileiras is installed, cuTile's benchmarks where cuda-tile is; what is left out is
told.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from gpu_kit_rows import FRAMEWORKS, TIMES, Timed
from tile_sim.errors import SimError
from tile_time.kit import build
from tile_time.kit.build import Code, Kit, Near, Seeded
from tile_time.kit.codes import assembled, by_tileiras, compiled
from tile_time.kit.handwritten import in_kernel_map
from tile_time.mechanisms import every

from tile_core.diagnostics import ConfigurationError, TileError
from tile_core.machines import builtin_machines, machine_for

ROOT = Path(__file__).resolve().parents[1]
TARGETS = ("sm_80", "sm_90", "sm_100", "sm_120")
#: How far sums of tensor cores and approximations may be from the simulator's, which rounds once.
_ROUNDING = {
    "f32": Near(2e-5, 1e-5, "sums in another order, ex2.approx and rsqrt.approx of 2 ulp"),
    "f16": Near(2e-3, 1e-3, "as f32, then rounded to 11 bits: half an ulp either way"),
}
_VARIANTS: tuple[tuple[str, int, dict[str, str]], ...] = (
    ("O3", 3, {}),
    ("O3, no tensor maps", 3, {"tma-descriptors": "off"}),
    ("O3, mma.sync", 3, {"mma": "mma.sync"}),
    ("O2, serial", 2, {"scheduler": "serial"}),
    ("O0", 0, {}),
)


def main(argv: Sequence[str] | None = None) -> int:
    sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "benchmarks")]
    given = _parser().parse_args(argv)
    shutil.rmtree(given.out, ignore_errors=True)
    given.out.mkdir(parents=True)
    for target in given.target:
        kit = Kit(given.out, target, _made_by())
        for fill in FILLS:
            if not given.part or fill.__name__ in given.part:
                fill(kit, given.quick)
        kit.write()
        count = sum(len(cases) for cases in kit.parts.values())
        print(f"{target}: {count} cases in {sum(map(bool, kit.parts.values()))} parts")
    build.copy_runner(given.out)
    size = build.check_size(given.out)
    print(f"{given.out}: {size / 2**20:.1f} MiB; there: python run.py")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "gpu-kit")
    parser.add_argument("--target", nargs="+", default=list(TARGETS), choices=TARGETS)
    parser.add_argument("--quick", action="store_true", help="a few cases of each part")
    parser.add_argument("--part", nargs="+", default=[], choices=list(build.PARTS))
    return parser


@cache
def _made_by() -> dict[str, str]:
    """Which sources and tools."""
    command = ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = {"tilec": version("tilec"), "commit": done.stdout.strip() or "unknown"}
    if tileiras := _tileiras():
        found["tileiras"] = tileiras
    return found


@cache
def _tileiras() -> str:
    """The installed tileiras' version; nothing where there is none."""
    from tile_sim.peer import tileiras

    try:
        return tileiras.find().version
    except ConfigurationError:
        return ""


def _left_out(kit: Kit, name: str, error: Exception) -> None:
    print(f"{kit.target}: left out: {name}: {str(error).splitlines()[0]}", file=sys.stderr)


# --- parts ----------------------------------------------------------------------------------------


def device(kit: Kit, quick: bool) -> None:
    kit.add("device", {"name": "facts", "kind": "facts", "seconds": 8.0})


def launch(kit: Kit, quick: bool) -> None:
    """That kernels marked as Tile IR are launched with a block of (1, 1, 1); and what else is."""
    case = _example("vector_add_f32")
    code = compiled(case.bytecode, kit.target, 3)
    _, after = build.simulated(code, case.grid, case.flat)
    kit.add_launch("launch", "a block of (1, 1, 1)", code, case.grid, case.flat, after)
    threads = Code(code.cubin, code.entry, (128, 1, 1))
    kit.add_launch("launch", "told: a block of (128, 1, 1) of a kernel in Tile IR", threads,
                   case.grid, case.flat, {}, expects="told")  # fmt: skip
    if _tileiras():
        theirs = by_tileiras(case.bytecode, kit.target)
        kit.add_launch("launch", "tileiras' code", theirs, case.grid, case.flat, after)


def maps(kit: Kit, quick: bool) -> None:
    """Tensor maps: hidden ones filled by the host object, in parameters, changed in the kernel."""
    if int(kit.target[3:]) < 90:
        return
    code = compiled(_example("matmul_f16").bytecode, kit.target, 3, {"tma-descriptors": "host"})
    a, b = Seeded("f16", 256 * 128, "small", 1), Seeded("f16", 128 * 256, "small", 2)
    out = np.zeros((256, 256), np.float16)
    flat = _flat((a, 256, 128), (b, 128, 256), (out, 256, 256))
    _, after = build.simulated(code, (4, 4, 1), flat)
    kit.add_launch("maps", "hidden maps of the host object, matmul", code, (4, 4, 1), flat, after)
    if kit.target != "sm_90":
        return  # the PTX beneath is for sm_90a
    for name, nothing in (("from a template", False), ("told: from zeros", True)):
        one = in_kernel_map(nothing)
        made = assembled(one.ptx, (32, 1, 1))
        expects: dict[str, Any] = {"expects": "told"} if nothing else {}
        kit.add_launch("maps", f"a map changed in the kernel, {name}", made, (1, 1, 1),
                       one.arguments, {3: one.expected},
                       **expects)  # fmt: skip
    kit.add("maps", {
        "name": "our words of a map are the driver's", "kind": "maps", "seconds": 5.0,
        **_encoded_map(),
    })  # fmt: skip


def _encoded_map() -> dict[str, Any]:
    from tile_sim import TensorMap

    array = np.zeros((300, 512), np.float16)
    ours = TensorMap(array, box=(64, 128), swizzle="128B", l2_promotion="128B")
    about = {
        "array": 0, "dims": [512, 300], "strides": [1024], "box": [64, 128], "DataType": "FLOAT16",
        "Interleave": "NONE", "Swizzle": "128B", "L2promotion": "L2_128B", "FloatOOBfill": "NONE",
    }  # fmt: skip
    return {"map": about, "words": ours.encode(1 << 20).hex()}


def results(kit: Kit, quick: bool) -> None:
    """The examples, every way of compiling them; the simulator's results."""
    names = (
        ("softmax_f32", "matmul_f16", "transpose_f16") if quick else import_module("cases").NAMES
    )
    for name in names:
        case = _example(name)
        for label, level, options in _VARIANTS[: 2 if quick else None]:
            if "tma-descriptors" in options and int(kit.target[3:]) < 90:
                continue
            full = f"{name}, {label}"
            try:
                code = compiled(case.bytecode, kit.target, level, options)
                _, after = build.simulated(code, case.grid, case.flat)
            except (TileError, SimError) as error:
                _left_out(kit, full, error)
                continue
            kinds = {build.kind_of(array.dtype) for array in after.values()}
            exact = name.startswith(("vector_add", "saxpy", "transpose"))
            near = None if exact else _ROUNDING["f16" if "f16" in kinds else "f32"]
            kit.add_launch("results", full, code, case.grid, case.flat, after, near)


def times(kit: Kit, quick: bool) -> None:
    """Launches of cuTile's benchmarks, ours and tileiras'."""
    for row in TIMES[: 2 if quick else None]:
        for who, make in _compilers(kit.target):
            try:
                captured = row.captured(kit.target)
                code = make(captured.bytecode)
            except (TileError, SimError, ImportError) as error:
                _left_out(kit, f"{row.name}, {who}", error)
                continue
            kit.add_launch(
                "times", f"{row.name}, {who}", code, captured.grid, captured.arguments,
                seconds=2.0 if quick else 4.0, flops=captured.flops, bytes=captured.bytes,
                row=row.name, by=who,
            )  # fmt: skip
            kit.parts["times"][-1]["kind"] = "time"


def _compilers(target: str) -> Iterator[tuple[str, Callable[[bytes], Code]]]:
    yield "tilec", lambda bytecode: compiled(bytecode, target, 3)
    if _tileiras():
        yield "tileiras", lambda bytecode: by_tileiras(bytecode, target)


def frameworks(kit: Kit, quick: bool) -> None:
    """cuBLAS, SDPA and others by PyTorch, Triton, CuPy, where they are found."""
    for row in FRAMEWORKS[: 1 if quick else None]:
        kit.add("frameworks", {"kind": "framework", "seconds": 12.0, **row})


def mechanisms(kit: Kit, quick: bool) -> None:
    """The numbers of the machine file."""
    machine = machine_for(kit.target)
    found = [m for m in every() if builtin_machines()[m.gpu].target == machine.target]
    for one in found[:3] if quick else found:
        code = assembled(one.ptx, (one.threads, 1, 1))
        array, clocks = one.array(), np.zeros(1, np.int64)
        kit.add_launch("mechanisms", one.name, code, (one.grid, 1, 1),
                       (array, np.uint32(one.turns[0]), clocks), seconds=4.0)  # fmt: skip
        kit.parts["mechanisms"][-1] |= {
            "kind": "mechanism", "turns": list(one.gpu_turns), "per": one.per, "rate": one.rate,
            "offset": one.offset, "repeats": 3 if quick else 7, "count": 1, "clocks": 1,
            "cold": one.size > 1 << 16, "unit": one.unit, "about": one.unit,
        }  # fmt: skip


def open(kit: Kit, quick: bool) -> None:  # noqa: A001 - the part's name
    """What tile-sim's README calls unproven: launches of the simulator's own tests."""
    from gpu_kit_recording import recorded, rounding_of

    for row, name, one in recorded(kit.target, quick):
        try:
            code = assembled(one.ptx, one.block, one.cluster)
        except TileError as error:
            _left_out(kit, name, error)
            continue
        kind = rounding_of(kit.target, name)
        launch = one if kind is None else one.rounded(kind)
        kit.add_launch("open", name, code, one.grid, one.arguments, launch.after,
                       None if kind is None else _ROUNDING[kind], row=row, seconds=6.0)  # fmt: skip


FILLS = (device, launch, maps, results, times, frameworks, mechanisms, open)


# --- arguments ------------------------------------------------------------------------------------


def _example(name: str) -> Any:
    return import_module("cases").case(name)


def _flat(*arrays: tuple[Any, int, int]) -> list[Any]:
    """Matrices as cuTile's kernels take them: address, shape, strides."""
    found: list[Any] = []
    for array, rows, columns in arrays:
        found += [array, *(np.int32(n) for n in (rows, columns, columns, 1))]
    return found


__all__ = ["Timed", "main"]

if __name__ == "__main__":
    sys.exit(main())
