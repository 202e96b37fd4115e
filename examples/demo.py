"""Compile every example, show what came out, and run it in the simulator. `make demo` runs this."""

from __future__ import annotations

import re
import sys
import time
from dataclasses import dataclass

import cases
from tile_nvptx.emit.ptxas import KernelResources
from tile_sim import Module, SimError

import tile_core

TARGETS = ("sm_80", "sm_90", "sm_100", "sm_120")
SIMULATED = "sm_90"
EXCERPT = "vector_add_f32"

_GLOBAL = re.compile(r"\b(ld|st)\.global[\w.:]*?(?:\.v(\d))?\.[bfsu](\d+)\b")
_THREADS = re.compile(r"^\.reqntid (\d+)", re.MULTILINE)


@dataclass(frozen=True)
class Built:
    """One example, compiled for one target."""

    ptx: str
    cubin: bytes
    resources: KernelResources
    seconds: float


def build(name: str, target: str) -> Built:
    """Compile example `name`.

    Raises:
        TileError: it does not compile.
    """
    start = time.perf_counter()
    made = tile_core.compile(cases.case(name).bytecode, target, name=f"{name}.tileirbc")
    (resources,) = made.metadata["cubin"]["kernels"]
    return Built(str(made.stage("ptx")), made.cubin, resources, time.perf_counter() - start)


def widest(ptx: str) -> str:
    """The widest global load and store of `ptx`, bits, e.g. "128/128"."""
    bits = {"ld": 0, "st": 0}
    for kind, count, width in _GLOBAL.findall(ptx):
        bits[kind] = max(bits[kind], int(count or 1) * int(width))
    return f"{bits['ld']}/{bits['st']}"


def show_builds() -> dict[tuple[str, str], Built]:
    """Compile everything; a table with a line for each example and target."""
    print(f"{'kernel':<24} {'target':<7} {'ms':>5} {'regs':>5} {'smem':>6} {'spills':>7} "
          f"{'ld/st bits':>11} {'cubin':>7}")  # fmt: skip
    built: dict[tuple[str, str], Built] = {}
    for name in cases.NAMES:
        for target in TARGETS:
            one = built[name, target] = build(name, target)
            used = one.resources
            print(
                f"{name:<24} {target:<7} {one.seconds * 1e3:5.0f} {used.registers:5} "
                f"{used.static_shared:6} {used.spill_stores + used.spill_loads:7} "
                f"{widest(one.ptx):>11} {len(one.cubin):7}"
            )
    return built


def show_excerpt(ptx: str) -> None:
    """The global loads and stores of `ptx`, and what lies between them."""
    lines = ptx.splitlines()
    hits = [at for at, line in enumerate(lines) if _GLOBAL.search(line)]
    print(f"\n{EXCERPT} at {SIMULATED}, from its first load to its last store:\n")
    for line in lines[hits[0] : hits[-1] + 1][:40]:
        print(f"    {line.strip()}")


def check(name: str, ptx: str) -> list[str]:
    """Run example `name` in the simulator; what differs from NumPy."""
    case = cases.case(name)
    threads = _THREADS.search(ptx)
    assert threads is not None
    Module(ptx).launch(name, case.grid, (int(threads[1]), 1, 1), case.flat)
    return case.errors()


def show_checks(built: dict[tuple[str, str], Built]) -> int:
    """Simulate every example; how many are wrong."""
    print(f"\nresults of the PTX for {SIMULATED} in the simulator, against NumPy:\n")
    wrong = 0
    for name in cases.NAMES:
        start = time.perf_counter()
        errors = check(name, built[name, SIMULATED].ptx)
        wrong += bool(errors)
        verdict = "; ".join(errors) or "right"
        print(f"    {name:<24} {verdict}  ({time.perf_counter() - start:.1f} s)")
    return wrong


def main() -> int:
    """Exit status: 0 if all compiled and every number was right."""
    try:
        built = show_builds()
        show_excerpt(built[EXCERPT, SIMULATED].ptx)
        return 1 if show_checks(built) else 0
    except (tile_core.TileError, SimError) as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
