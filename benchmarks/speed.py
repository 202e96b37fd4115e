"""Ours beside tileiras' code, in the timing model: cuTile's benchmarks at their own sizes.

    python benchmarks/speed.py --quick                      # eight rows, H100 and B200
    python benchmarks/speed.py --gpu h100 b200 a100 rtx5090 --json build/speed.json
    python benchmarks/speed.py --only attention --compiler tilec
    python benchmarks/speed.py --update                     # the tables of docs/benchmarks.md

A row is a launch of `speed_rows.py`. Each is compiled from the same bytecode by both compilers and
timed by `tile_time` with an empty L2, in a process of its own: what it took of time and memory is
told, and so is a row that fails. What was found once is kept in a folder (`--cache`) by everything
that decides it, so that a run that was ended goes on where it was. With `--suite`, kernels come
from a checkout of cuTile (https://github.com/NVIDIA/cutile-python) where it has them. Needs
cuda-tile and NVIDIA's tools (groups `export` and `peer`).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from importlib import import_module
from math import exp, log
from pathlib import Path
from resource import RLIMIT_CPU, RUSAGE_CHILDREN, RUSAGE_SELF, getrusage, setrlimit
from signal import SIGKILL, SIGXCPU
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from speed_rows import Row

HERE = Path(__file__).resolve().parent
DOCUMENT = HERE.parent / "docs" / "benchmarks.md"
BEGIN, END = "<!-- speed: begin -->", "<!-- speed: end -->"
COMPILERS = ("tilec", "tileiras")
#: What a row may take of one core and of memory.
MOST_SECONDS, MOST_BYTES = 15.0, 2 << 30
#: Seconds of processor time, then of waiting for it, after which a row is given up.
_KILLED_AFTER, _WAITED_FOR = 120, 3600.0
_NOT_RUN = "not run"
Found = dict[str, Any]


def main(argv: Sequence[str] | None = None) -> int:
    sys.path[:0] = [str(HERE), str(HERE.parent / "examples")]
    given = _parser().parse_args(argv)
    if given.one is not None:
        setrlimit(RLIMIT_CPU, (_KILLED_AFTER, _KILLED_AFTER))
        print(json.dumps(_kept(*given.one, given)))
        return 0
    rows = [row for row in rows_of(given.rows) if _wanted(row, given)]
    if not rows:
        sys.exit(f"no row has {' or '.join(given.only)} in its name")
    found = run_rows(rows, given.gpu, given.compiler, given.jobs, given.rows, _passed_on(given))
    text = "\n\n".join(table(gpu, found[gpu]) for gpu in given.gpu)
    print(text)
    if given.json is not None:
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    if given.update:
        update(text)
    return _told(found)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--gpu", nargs="+", default=["h100", "b200"])
    parser.add_argument("--only", nargs="+", default=[], help="rows with one of these in the name")
    parser.add_argument("--quick", action="store_true", help="eight rows, one of each kind")
    parser.add_argument("--compiler", nargs="+", default=list(COMPILERS), choices=COMPILERS)
    parser.add_argument("-O", "--opt-level", type=int, default=3)
    parser.add_argument("--suite", type=Path, help="checkout of cuTile, whose kernels are taken")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", type=Path, help="write all results there")
    parser.add_argument("--update", action="store_true", help=f"write docs/{DOCUMENT.name}")
    parser.add_argument("--cache", type=Path, help="keep and take results here")
    parser.add_argument("--kept", action="store_true", help="run nothing: rows that --cache has")
    parser.add_argument("--rows", default="speed_rows:ROWS", help="which rows, MODULE:NAME")
    parser.add_argument(
        "--one", nargs=3, metavar=("ROW", "GPU", "COMPILER"), help=argparse.SUPPRESS
    )
    return parser


def rows_of(where: str) -> Sequence[Row]:
    """The rows of a module beside this one, "module:name"."""
    module, name = where.split(":")
    return getattr(import_module(module), name)


def _wanted(row: Row, given: argparse.Namespace) -> bool:
    return (row.quick or not given.quick) and (
        not given.only or any(part in row.name for part in given.only)
    )


def _passed_on(given: argparse.Namespace) -> list[str]:
    """Options of the process of one row."""
    suite = [] if given.suite is None else ["--suite", str(given.suite.resolve())]
    cache = [] if given.cache is None else ["--cache", str(given.cache.resolve())]
    return ["-O", str(given.opt_level), *suite, *cache, *(["--kept"] if given.kept else [])]


# --- one measurement, in a process of its own -----------------------------------------------------


def _kept(name: str, gpu: str, compiler: str, given: argparse.Namespace) -> Found:
    """What the cache has of a row, or what it is measured to be."""
    if given.cache is None or given.suite is not None:
        return _measure(name, gpu, compiler, given)
    what = (name, gpu, compiler, str(given.opt_level), given.rows)
    file = given.cache / f"{_digest(compiler, what)}.json"
    if file.exists():
        return json.loads(file.read_text())
    if given.kept:
        return {"skipped": _NOT_RUN}
    found = _measure(name, gpu, compiler, given)
    if "error" not in found:
        given.cache.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(found))
    return found


#: Parts of the simulator that no time depends on: its suite, and NVIDIA's driver as Python sees it.
_NOT_TIMED = ("suite", "bindings")


def _digest(compiler: str, what: Sequence[str]) -> str:
    """Of the row, the model, the simulator that records for it, and the compiler."""
    import tile_sim
    import tile_time

    import tile_core

    core, model, simulator = (
        Path(p.__file__ or "").parent for p in (tile_core, tile_time, tile_sim)
    )
    folders = [model, core / "machines", HERE.parent / "examples", simulator]
    if compiler == "tilec":
        folders += [core, *(p for p in model.parents[1].iterdir() if p.name != "tile-sim")]
    digest = sha256("\n".join((*what, _version(compiler))).encode())
    for name in (what[-1].partition(":")[0], "speed_rows", "speed_kernels"):
        digest.update((HERE / f"{name}.py").read_bytes())
    for folder in folders:
        for file in sorted(p for end in ("py", "toml", "pdl") for p in folder.rglob(f"*.{end}")):
            if folder is not simulator or file.relative_to(folder).parts[0] not in _NOT_TIMED:
                digest.update(file.read_bytes())
    return digest.hexdigest()[:32]


def _version(compiler: str) -> str:
    if compiler == "tilec":
        return ""
    from peer import find_tool

    tool = find_tool(compiler)
    if tool is None:
        return ""
    return subprocess.run([tool, "--version"], capture_output=True, text=True).stdout


def _measure(name: str, gpu: str, compiler: str, given: argparse.Namespace) -> Found:
    """Compile and time one row; what came out, or the error's first line."""
    from tile_time.programs import launches_timed

    from tile_core.machines import builtin_machines, find_machine

    machine = find_machine(gpu, builtin_machines())
    row = next(row for row in rows_of(given.rows) if row.name == name)
    if int(machine.target.removeprefix("sm_")) < row.capability:
        return {"skipped": f"{machine.title} has no such type"}
    launches = launches_timed(machine, registers=row.registers)
    import cuda.tile as ct
    from tile_sim.cutile import settings

    settings.compiler, settings.opt_level = compiler, given.opt_level
    launch = row.launch(int(machine.chip.sms))
    try:
        kernel = kernel_of(row, given.suite)
        ct.launch(None, launch.grid, kernel, launch.arguments)
    except Exception as error:  # whatever a compiler or the model says about a row is its result
        cause = error.__cause__ or error
        return {"error": f"{type(cause).__name__}: {cause}".splitlines()[0], **_taken()}
    result = launches[-1][1]
    seconds = result.seconds
    # cuTile's rate counts what the problem needs, whatever the code did.
    peak = machine.peak_flops_per_clk(row.bits or 16) * machine.chip.sms * machine.clock.boost * 1e6
    dram = machine.memory.dram_peak * 1e9
    of_flops = row.flops / seconds / peak if row.bits else 0.0
    of_bytes = row.bytes / seconds / dram
    return {
        "us": round(result.us, 2), "tflops": round(row.flops / seconds / 1e12, 1),
        "gbps": round(row.bytes / seconds / 1e9, 1), "by": "flops" if row.bits else "bytes",
        "peak": round(max(of_flops, of_bytes), 4),
        "binds": [[cause, round(share, 4)] for cause, share in result.binds],
        "mhz": round(result.mhz), "registers": result.launch.resources.registers,
        "spills": result.spill_bytes, "ctas_per_sm": result.launch.room.ctas,
        "l2_hit": round(result.l2_hit, 4), "remarks": list(result.remarks), **_taken(),
    }  # fmt: skip


def kernel_of(row: Row, suite: Path | None) -> Any:
    """The kernel of a row with its hints, from a checkout of cuTile where that has it."""
    where, name = row.kernel.split(":")
    if suite is not None and row.suite:
        sys.path.insert(0, str(suite / "test"))
        where, name = row.suite.split(":")
    kernel = getattr(import_module(where), name)
    return kernel.replace_hints(**row.hints) if row.hints else kernel


def _taken() -> Found:
    own, others = getrusage(RUSAGE_SELF), getrusage(RUSAGE_CHILDREN)
    seconds = own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime
    return {"seconds": round(seconds, 2), "bytes": max(own.ru_maxrss, others.ru_maxrss) << 10}


# --- all of them ----------------------------------------------------------------------------------


def run_rows(
    rows: Sequence[Row],
    gpus: Sequence[str],
    compilers: Sequence[str] = COMPILERS,
    jobs: int = 1,
    where: str = "speed_rows:ROWS",
    options: Sequence[str] = (),
) -> dict[str, dict[str, dict[str, Found]]]:
    """`[gpu][row][compiler]`; `where` says where a process of its own finds the rows."""
    work = [(row.name, gpu, c) for gpu in gpus for row in rows for c in compilers]
    more = ["--rows", where, *options]
    with ThreadPoolExecutor(jobs) as pool:
        done = list(pool.map(lambda one: _process(*one, more), work))
    found: dict[str, dict[str, dict[str, Found]]] = {gpu: {} for gpu in gpus}
    for (name, gpu, compiler), result in zip(work, done, strict=True):
        found[gpu].setdefault(name, {})[compiler] = result
    return found


def _process(name: str, gpu: str, compiler: str, options: Sequence[str]) -> Found:
    command = [sys.executable, __file__, "--one", name, gpu, compiler, *options]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_WAITED_FOR)
        last = done.stdout.strip().splitlines()[-1:] if done.returncode == 0 else []
        errors = done.stderr.strip().splitlines()[-1:] or [f"ended with {done.returncode}"]
        if done.returncode in (-SIGKILL, -SIGXCPU):
            errors = [f"more than {_KILLED_AFTER} s of processor time"]
        found = json.loads(last[0]) if last else {"error": errors[0]}
    except subprocess.TimeoutExpired:
        found = {"error": f"more than {_WAITED_FOR:g} s of waiting for a processor"}
    said = found.get("error") or found.get("skipped") or f"{found['us']:.1f} us"
    took = f" ({found['seconds']:.1f} s, {found['bytes'] >> 20} MiB)" if "seconds" in found else ""
    print(f"{gpu} {compiler} {name}: {said}{took}", file=sys.stderr, flush=True)
    return found


def _told(found: dict[str, dict[str, dict[str, Found]]]) -> int:
    """Errors, and rows that took too much, to stderr; the exit status."""
    status = 0
    for gpu, rows in found.items():
        for name, row in rows.items():
            for compiler, one in row.items():
                label = f"{gpu} {compiler} {name}"
                if "error" in one:
                    print(f"failed: {label}: {one['error']}", file=sys.stderr)
                    status |= compiler == "tilec"
                if one.get("seconds", 0) > MOST_SECONDS or one.get("bytes", 0) > MOST_BYTES:
                    size = f"{one['seconds']:.1f} s, {one['bytes'] >> 20} MiB"
                    print(f"above the limits: {label}: {size}", file=sys.stderr)
                    status = 1
    return status


# --- the table ------------------------------------------------------------------------------------


def table(gpu: str, rows: dict[str, dict[str, Found]]) -> str:
    """Markdown; what it says depends on the programs, compilers and the machine file alone."""
    lines = [
        f"**{gpu}**", "",
        "| kernel | tilec, us | rate | of peak | binds | spills | tileiras, us | rate | of peak "
        "| binds | tileiras / tilec |",
        "|---|--:|--:|--:|---|--:|--:|--:|--:|---|--:|",
    ]  # fmt: skip
    ratios: list[float] = []
    left = [n for n, row in rows.items() if _NOT_RUN in [x.get("skipped") for x in row.values()]]
    for name, row in rows.items():
        ours, theirs = row.get("tilec", {}), row.get("tileiras", {})
        if "skipped" in ours or "skipped" in theirs:
            continue
        ratio = theirs["us"] / ours["us"] if "us" in ours and "us" in theirs else 0.0
        ratios += [ratio] if ratio else []
        cells = [name, *_cells(ours), _spills(ours), *_cells(theirs)]
        lines.append(f"| {' | '.join(cells)} | {f'{ratio:.2f}' if ratio else ''} |")
    if ratios:
        mean = exp(sum(map(log, ratios)) / len(ratios))
        lines += ["", f"Geometric mean of tileiras / tilec over {len(ratios)} rows: {mean:.2f}."]
    if left:
        lines += ["", f"Not run: {'; '.join(left)}."]
    return "\n".join(lines)


def _cells(one: Found) -> list[str]:
    if "us" not in one:
        return ["failed" if "error" in one else "", "", "", ""]
    rate = f"{one['tflops']:.0f} TFLOP/s" if one["by"] == "flops" else f"{one['gbps']:.0f} GB/s"
    binds = ", ".join(f"{cause} {share:.0%}" for cause, share in one["binds"])
    return [f"{one['us']:.1f}", rate, f"{one['peak']:.0%}", binds]


def _spills(one: Found) -> str:
    return str(one["spills"]) if "spills" in one else ""


def update(text: str) -> None:
    """Put the tables between the marks of docs/benchmarks.md."""
    whole = DOCUMENT.read_text()
    before, rest = whole.split(BEGIN)
    DOCUMENT.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    sys.exit(main())
