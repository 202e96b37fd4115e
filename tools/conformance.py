"""Runs cuTile's own test suite, which is written for a GPU, through this compiler and simulator.

    python tools/conformance.py --suite cutile-python/test --cc 8.0 9.0 10.0 12.0

The suite is that of https://github.com/NVIDIA/cutile-python: a path of its `test` folder, or its
address, which is then cloned. It needs cuda-tile, torch (for CPUs) and what the suite's own
requirements name of pytest's plugins. Writes a JSON file and a Markdown table.

With several pipelines, a test whose kernels become the same code under one of those before it has
that one's outcome and does not run again. Nor does it under a second schedule where none of its
kernels has asynchronous work.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tile_sim.cutile.compiler import COMPILERS
from tile_sim.machine.launch import SCHEDULES
from tile_sim.suite.causes import COLLECTION
from tile_sim.suite.report import Summary, markdown, summarise, synchronous
from tile_sim.suite.runner import Plan, Run

from tile_core.registry import default_registry

if TYPE_CHECKING:
    from tile_fuzz.same_code import SameCode

SOURCE = "https://github.com/NVIDIA/cutile-python"


def main(argv: Sequence[str] | None = None) -> int:
    parser = _parser()
    given = parser.parse_args(argv)
    if not 0 <= given.first < given.every:
        parser.error("--first is a number below that of --every")
    if given.compiler != "tilec" and len(given.pipeline) > 1:
        parser.error("pipelines are of the compiler tilec")
    if given.compiler == "none" and given.bytecode is None:
        parser.error("--compiler none runs nothing: it needs --bytecode, a folder for the programs")
    summaries: list[Summary] = []
    results: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        suite = _suite(given.suite, given.revision, Path(folder))
        if len(given.pipeline) > 1 and given.bytecode is None:
            given.bytecode = Path(folder) / "programs"
        for capability in given.cc:
            for name, found in _each(given, suite, "sm_" + capability.replace(".", "")):
                results[name] = found
                summaries.append(summarise(name, found))
                _write(given, summaries, results)
    print(markdown(summaries))
    return 0 if all(s.share >= given.at_least for s in summaries) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("--suite", default=SOURCE, help="folder of tests, or a git address")
    parser.add_argument("--revision", default="v1.6.0", help="tag or commit of what is cloned")
    parser.add_argument("--cc", nargs="+", default=["10.0"], help="compute capabilities")
    parser.add_argument("-k", dest="select", help="only tests that match, as in pytest")
    parser.add_argument("--every", type=int, default=1, help="only each n-th test")
    parser.add_argument(
        "--first", type=int, default=0, help="with --every: the number of the first one, from 0"
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for one test")
    parser.add_argument("--memory", type=float, default=6.0, help="GiB for one process")
    parser.add_argument("--cache", type=Path, help="folder that keeps what was compiled")
    parser.add_argument("--bytecode", type=Path, help="folder for each program that is compiled")
    parser.add_argument(
        "--again", type=Path, help="a file that --json wrote: run only what failed there"
    )
    parser.add_argument("--check", action="store_true", help="races and the like are failures")
    parser.add_argument(
        "--compiler", choices=COMPILERS, default="tilec",
        help="whose code runs (default: tilec); none keeps programs for --bytecode, and runs none",
    )  # fmt: skip
    parser.add_argument(
        "--schedule", nargs="+", choices=SCHEDULES, default=["late"],
        help="when asynchronous work completes; each of several in turn",
    )  # fmt: skip
    parser.add_argument(
        "--pipeline", nargs="+", default=[], type=_pipeline,
        help="name or TOML file of a pipeline, for every kernel; each of several in turn",
    )  # fmt: skip
    parser.add_argument("--json", type=Path, help="write all results there")
    parser.add_argument("--markdown", type=Path, help="write the tables there")
    parser.add_argument("--at-least", type=float, default=0.0, help="percent that have to pass")
    return parser


def _suite(where: str, revision: str, folder: Path) -> Path:
    if Path(where).is_dir():
        return Path(where).resolve()
    clone = ["git", "clone", "--quiet", "--depth", "1", "--branch", revision, where, "suite"]
    subprocess.run(clone, cwd=folder, check=True)
    return folder / "suite" / "test"


def _pipeline(given: str) -> str:
    """Processes of tests run in other folders than this one."""
    if Path(given).is_file():
        return str(Path(given).resolve())
    if given.endswith(".toml"):
        raise argparse.ArgumentTypeError(f"no such file: {given}")
    return given


def _each(
    given: argparse.Namespace, suite: Path, arch: str
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Under what name, and what a run of the suite gave, for each schedule and pipeline."""
    pipelines = given.pipeline or [None]
    same = _same_code(given) if len(pipelines) > 1 else None
    first: dict[str | None, list[dict[str, Any]]] = {}
    collected = None
    for schedule in given.schedule:
        results: dict[str, list[dict[str, Any]]] = {}
        for pipeline in pipelines:
            name = _name(given, arch, pipeline, schedule)
            known = same.known(results, pipeline) if same and pipeline else {}
            known = synchronous(first.get(pipeline, ()), given.schedule[0]) | known
            run = Run(_plan(given, suite, arch, name, schedule, pipeline, known), collected)
            found = _run(given, run, name)
            collected = run.collected
            first.setdefault(pipeline, found)
            if pipeline is not None:
                results[pipeline] = found
            yield name, found


def _same_code(given: argparse.Namespace) -> SameCode:
    from tile_fuzz.same_code import SameCode

    return SameCode(given.bytecode, given.pipeline, default_registry, given.jobs)


def _name(given: argparse.Namespace, arch: str, pipeline: str | None, schedule: str) -> str:
    """The target, and what of the rest others differ in."""
    words = [arch]
    words += [Path(pipeline).stem] if pipeline and len(given.pipeline) > 1 else []
    words += [schedule] if len(given.schedule) > 1 else []
    return " ".join(words)


def _plan(
    given: argparse.Namespace,
    suite: Path,
    arch: str,
    name: str,
    schedule: str,
    pipeline: str | None = None,
    known: Mapping[str, dict[str, Any]] = MappingProxyType({}),
) -> Plan:
    only = None
    if given.again is not None:
        only = frozenset(r["id"] for r in _before(given, name) if r["outcome"] == "failed")
    return Plan(
        suite, arch, given.jobs, given.timeout, given.memory, given.select, given.every, only,
        given.cache and given.cache.resolve(), given.bytecode and given.bytecode.resolve(),
        given.check, given.compiler, schedule, given.first, pipeline, known,
    )  # fmt: skip


def _before(given: argparse.Namespace, name: str) -> list[dict[str, Any]]:
    """The results of the run that `--again` names."""
    if given.again is None:
        return []
    return json.loads(given.again.read_text())["results"].get(name, [])


def _run(given: argparse.Namespace, run: Run, name: str) -> list[dict[str, Any]]:
    start = time.monotonic()
    again = {record["id"]: record for record in run.run()}
    for record in again.values():
        if record["cause"] is not None and record["cause"]["kind"] == COLLECTION:
            print(f"{record['id']} cannot be collected: {record['cause']['text']}", file=sys.stderr)
    results = [again.get(r["id"], r) for r in _before(given, name)] or list(again.values())
    summary = summarise(name, results)
    same = f", {summary.same} of them with code that had run" if summary.same else ""
    print(
        f"{name}: {summary.passed} of {summary.launching} tests that launch kernels passed "
        f"({summary.share:.2f} %) in {time.monotonic() - start:.0f} s{same}",
        file=sys.stderr, flush=True,
    )  # fmt: skip
    return results


def _write(
    given: argparse.Namespace, summaries: list[Summary], results: dict[str, list[dict[str, Any]]]
) -> None:
    if given.json is not None:
        content = {"summaries": [s.as_json() for s in summaries], "results": results}
        given.json.write_text(json.dumps(content, indent=1) + "\n")
    if given.markdown is not None:
        given.markdown.write_text(markdown(summaries))


if __name__ == "__main__":
    sys.exit(main())
