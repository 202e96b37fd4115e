"""NVIDIA's own library of cuTile kernels in the timing model: TileGym's benchmarks, as they are.

    git clone https://github.com/NVIDIA/TileGym build/tilegym
    make .venv-suite/.done
    .venv-suite/bin/python -m pip install --group peer      # for tileiras
    .venv-suite/bin/python benchmarks/tilegym.py build/tilegym --gpu b200
    ... --only softmax grouped --most 2 --config 3 --compiler tilec --json build/tilegym.json
    ... --only mla --tries 12               # its tuner takes the fastest of so many, by the model
    ... --only mla --keep build/mla         # each launch's report by line, bytecode and PTX

Each file of its `tests/benchmark` is run in a process of its own; of each of its benchmarks some
plots, one size each. A launch is timed and not run, so that what a benchmark checks or measures
ends there, and its tensors are zeros. A kernel's tuner does not search: it takes the configuration
of that number, the same for both compilers; with `--tries` it searches so many of its
configurations, spread over all, in the model: each is a line, too, and the fastest, which may
differ between compilers, is what users would get. Triton, which the benchmarks use for plots alone,
is stood in for.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from math import exp, log
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

Found = dict[str, Any]
#: Files that need what no simulated device has, or time other compilers' code.
_LEFT_OUT = ("bench_utils.py", "bench_mix_triton_cutile.py")


def main(argv: Sequence[str] | None = None) -> int:
    """Time the benchmarks with each compiler, and print a line for each launch."""
    given = _parser().parse_args(argv)
    if given.one is not None:
        _run_file(Path(given.one[0]), given.one[1], given)
        return 0
    folder = given.checkout / "tests" / "benchmark"
    wanted = [path for path in sorted(folder.rglob("bench_*.py")) if path.name not in _LEFT_OUT]
    files = [path for path in wanted if any(part in path.name for part in given.only)]
    if not files:
        sys.exit(f"no benchmark in {folder} has {' or '.join(given.only)} in its name")
    found = {compiler: [line for path in files for line in _asked(path, compiler, given)]
             for compiler in given.compiler}  # fmt: skip
    if given.json is not None:
        given.json.write_text(json.dumps(found, indent=1))
    print(tables(found, given.compiler))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkout", type=Path, help="a clone of NVIDIA/TileGym")
    parser.add_argument("--gpu", default="b200")
    parser.add_argument("--compiler", nargs="+", default=["tilec", "tileiras"])
    parser.add_argument("--only", nargs="+", default=[""], metavar="PART", help="parts of names")
    parser.add_argument("--most", type=int, default=3, help="plots of each benchmark")
    parser.add_argument("--config", type=int, default=0, help="of a tuner's configurations")
    parser.add_argument("--tries", type=int, default=0, help="configurations a tuner searches")
    parser.add_argument("--limit", type=int, default=100, help="seconds for one plot")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="reports, bytecode and PTX")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    return parser


def _asked(path: Path, compiler: str, given: argparse.Namespace) -> list[Found]:
    """What a process says that runs one file."""
    options = [str(given.checkout), "--gpu", given.gpu, "--most", str(given.most),
               "--config", str(given.config), "--tries", str(given.tries),
               "--limit", str(given.limit)]  # fmt: skip
    if given.keep is not None:
        given.keep.mkdir(parents=True, exist_ok=True)
        options += ["--keep", str(given.keep.resolve())]
    command = [sys.executable, __file__, *options, "--one", str(path), compiler]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode:
        lines.append({"plot": path.stem, "error": (done.stderr.splitlines() or ["?"])[-1]})
    print(f"{compiler} {path.stem}: {len(lines)}", file=sys.stderr)
    return lines


# --- one file ------------------------------------------------------------------------------------


class _Done(BaseException):  # not an Exception: benchmarks catch those
    """All launches of a plot were timed."""


def _run_file(path: Path, compiler: str, given: argparse.Namespace) -> None:
    root = given.checkout.resolve()
    sys.path[:0] = [str(root / "src"), str(root), str(root / "tests" / "benchmark")]
    where = {"plot": "", "config": ""}
    _simulated(given, compiler, where)
    _tuned(given.config, given.tries, where)
    _without_triton(given, where)
    text = path.read_text()
    exec(compile(text, str(path), "exec"), {"__name__": "__main__", "__file__": str(path)})


def _simulated(given: argparse.Namespace, compiler: str, where: dict[str, str]) -> None:
    """Launches are timed on the GPU's model, and torch's device is the CPU."""
    from tile_sim import cutile
    from tile_sim.cutile import torch_cuda
    from tile_sim.machine.parameters import RawParameters
    from tile_time.model import load_kernel, time_kernel

    from tile_core.machines import builtin_machines, find_machine

    machine = find_machine(given.gpu, builtin_machines())
    known: dict[tuple[Any, ...], Any] = {}
    told: set[tuple[Any, ...]] = set()

    def measure(
        compiled: Any, name: str, grid: Any, cluster: Any, data: bytes, buffers: Any
    ) -> float:
        key = (name, tuple(grid), hash(compiled.ptx))
        if key not in known:
            kernel = load_kernel(compiled.ptx, machine, name, compiled.module.hidden)
            raw: Any = RawParameters(data, tuple(buffers))
            known[key] = time_kernel(kernel, grid, None, raw, cluster=cluster)
            if given.keep is not None:
                about = f"{where['plot']} {where['config']}"
                _keep(given.keep, f"{len(known)}-{compiler}", about, compiled, known[key])
        result, config = known[key], where["config"]
        if (*key, config) not in told:
            told.add((*key, config))
            print(json.dumps({
                "plot": where["plot"], "kernel": name.partition("_K")[0], "config": config,
                "grid": list(grid), "us": round(result.us, 2), "spills": result.spill_bytes,
                "binds": result.binds[0][0] if result.binds else "",
            }), flush=True)  # fmt: skip
        return result.us

    def instead(*launch: Any) -> None:
        where["config"] = ""
        measure(*launch)

    settings = cutile.settings
    settings.arch, settings.compiler = machine.target, compiler
    settings.instead, settings.measure = instead, measure
    torch_cuda.install(settings.capability)


def _keep(folder: Path, end: str, about: str, compiled: Any, result: Any) -> None:
    """What of one launch tells why it takes its time."""
    stem = f"{compiled.symbol.partition('_K')[0].strip('_')}-{end}"
    folder.joinpath(f"{stem}.txt").write_text(f"{about}\n{result.text}")
    folder.joinpath(f"{stem}.tileirbc").write_bytes(compiled.bytecode)
    folder.joinpath(f"{stem}.ptx").write_text(compiled.ptx)


def _tuned(config: int, tries: int, where: dict[str, str]) -> None:
    """Tuners take one configuration, or search some."""
    import cuda.tile.tune as tune

    whole = tune.exhaustive_search

    def search(configs: Any, stream: Any, grid_of: Any, *args: Any, **kwargs: Any) -> Any:
        every = list(configs)

        def noted(config: Any) -> Any:  # the first that is asked of each configuration
            named = config if isinstance(config, dict) else vars(config)
            where["config"] = " ".join(f"{name}={value}" for name, value in named.items())
            return grid_of(config)

        if tries:
            return whole(_some(every, tries), stream, noted, *args, **{**kwargs, "quiet": True})
        return SimpleNamespace(best=SimpleNamespace(config=every[config % len(every)], mean_us=1.0))

    tune.exhaustive_search = search
    sys.modules["cuda.tile.tune._tune"].__dict__["exhaustive_search"] = search


def _without_triton(given: argparse.Namespace, where: dict[str, str]) -> None:
    """What benchmarks ask of Triton and torch for plots, references and random numbers."""
    import torch  # pyright: ignore[reportMissingImports]

    class Report:
        def __init__(self, function: Callable[..., Any], plots: Sequence[Any]) -> None:
            self.function, self.plots = function, [one for one in plots if one is not None]

        def run(self, **_: Any) -> None:
            for name in list(self.function.__globals__):
                if name.startswith(("reference", "torch_ref", "ref_")):
                    self.function.__globals__[name] = _ends
            for one in _some(self.plots, given.most):
                where["plot"] = f"{self.function.__name__}: {one.plot_name}"
                _timed(self.function, _arguments(one), where["plot"], given.limit)

    def measure(function: Callable[[], Any], *args: Any, **kwargs: Any) -> None:
        function()
        raise _Done

    def zeros(*shape: Any, **options: Any) -> Any:
        whole = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        made = torch.zeros(tuple(whole), dtype=options.get("dtype"))
        return made.requires_grad_(options.get("requires_grad", False))

    import tilegym  # noqa: F401  # pyright: ignore[reportMissingImports]

    testing: Any = ModuleType("triton.testing")
    testing.Benchmark = SimpleNamespace
    testing.perf_report = lambda plots: (
        lambda function: Report(function, plots if isinstance(plots, list | tuple) else [plots])
    )
    testing.do_bench = testing.do_bench_cudagraph = measure
    triton: Any = ModuleType("triton")
    triton.testing, triton.cdiv = testing, lambda a, b: -(-a // b)
    triton.next_power_of_2 = lambda n: 1 << (n - 1).bit_length()
    active = SimpleNamespace(get_active_torch_device=lambda: torch.device("cuda"))
    triton.runtime = SimpleNamespace(driver=SimpleNamespace(active=active))
    utilities: Any = ModuleType("bench_utils")
    utilities.profile_with_l2flush = measure
    sys.modules.update({"triton": triton, "triton.testing": testing, "bench_utils": utilities})
    torch.randn = torch.rand = zeros
    torch.testing.assert_close = _ends


def _ends(*args: Any, **kwargs: Any) -> None:
    raise _Done


def _some(plots: Sequence[Any], most: int) -> list[Any]:
    """So many of them, spread over all."""
    if len(plots) <= most:
        return list(plots)
    return [plots[at * (len(plots) - 1) // max(most - 1, 1)] for at in range(most)]


def _arguments(plot: Any) -> dict[str, Any]:
    """Of the size at two thirds of a plot's sizes."""
    sizes = list(plot.x_vals)
    size = sizes[min(len(sizes) * 2 // 3, len(sizes) - 1)]
    several = isinstance(size, list | tuple) and len(plot.x_names) > 1
    values = size if several else [size] * len(plot.x_names)
    named = dict(zip(plot.x_names, values, strict=True))
    line = "cutile" if "cutile" in plot.line_vals else plot.line_vals[0]
    return {**plot.args, **named, plot.line_arg: line}


def _timed(function: Callable[..., Any], arguments: Found, plot: str, limit: int) -> None:
    def too_long(*_: Any) -> None:
        raise TimeoutError(f"more than {limit} s")

    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(limit)
    try:
        function(**arguments)
    except _Done:
        pass
    except Exception as error:  # whatever a benchmark says is its result
        text = f"{type(error).__name__}: {error}".partition("\n")[0]
        print(json.dumps({"plot": plot, "error": text}), flush=True)
    finally:
        signal.alarm(0)


# --- what is told ---------------------------------------------------------------------------------


def _numbered(lines: Sequence[Found]) -> Iterator[tuple[tuple[Any, ...], Found]]:
    """By plot, kernel, configuration, and which of the same it is."""
    seen: dict[tuple[Any, ...], int] = {}
    for line in lines:
        key = (line["plot"], line.get("kernel", ""), line.get("config", ""))
        seen[key] = seen.get(key, -1) + 1
        yield (*key, seen[key]), line


def tables(found: dict[str, list[Found]], compilers: Sequence[str]) -> str:
    """Markdown: a line for each launch that the first compiler has, the slowest ratio first, and
    another table of what tuners tried."""
    parts = [_table(found, compilers, tried=False)]
    if any(line.get("config") for line in found[compilers[0]]):
        parts.append(f"What tuners tried:\n\n{_table(found, compilers, tried=True)}")
    return "\n\n".join(parts)


def _table(found: dict[str, list[Found]], compilers: Sequence[str], tried: bool) -> str:
    first, *rest = (dict(_numbered(found[compiler])) for compiler in compilers[:2])
    second = rest[0] if rest else {}
    rows: list[tuple[float, str]] = []
    for key, one in first.items():
        if bool(one.get("config")) != tried:
            continue
        if "us" not in one:
            rows.append((0.0, f"| {key[0]} | | failed: {one['error']} | | | |"))
            continue
        other = second.get(key, {})
        ratio = other["us"] / one["us"] if "us" in other else 0.0
        theirs = f"{other['us']} | {ratio:.2f}" if ratio else " | "
        rows.append((ratio or 99.0, f"| {key[0]} | {' '.join(key[1:3]).strip()} | {one['us']} | "
                     f"{one['spills']} | {theirs} |"))  # fmt: skip
    ratios = [ratio for ratio, _ in rows if 0 < ratio < 99]
    mean = exp(sum(map(log, ratios)) / len(ratios)) if ratios else 0.0
    other_name = compilers[1] if rest else ""
    head = f"| benchmark | kernel | {compilers[0]}, us | spills | {other_name}, us | ratio |"
    head += "\n|---|---|--:|--:|--:|--:|"
    end = f"\n\nGeometric mean over {len(ratios)} launches: {mean:.2f}." if ratios else ""
    return "\n".join([head, *(text for _, text in sorted(rows))]) + end


if __name__ == "__main__":
    raise SystemExit(main())
