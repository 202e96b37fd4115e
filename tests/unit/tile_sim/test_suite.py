"""Running suites of cuTile tests: causes, reports, and processes that die. Needs no cuTile."""

from __future__ import annotations

import json
import sys
import textwrap
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tile_cudatile import write_bytecode
from tile_cudatile.tree import Module
from tile_sim.cutile.compiler import Compilation
from tile_sim.errors import SimError
from tile_sim.suite import causes, features, notes, report, runner

from tile_core.diagnostics import CompileError, SourceLocation

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "bytecode"


def test_causes_go_without_numbers_and_places() -> None:
    texts = {
        causes.cause_of(
            CompileError(
                f"'cuda_tile.pack' op of tile<{n}x8xf32> is not supported",
                where=SourceLocation(f"/some/where{n}.py", n, 2),
            )
        )
        for n in (4, 16)
    }
    assert {(c.kind, c.text) for c in texts} == {
        (causes.COMPILE, "'cuda_tile.pack' op of tile<N..xf32> is not supported")
    }


def test_causes_of_exceptions() -> None:
    chained = RuntimeError("outer")
    chained.__cause__ = SimError("trap", "at 0x12f")
    assert causes.cause_of(chained).kind == causes.SIMULATOR
    assert causes.cause_of(chained).text == "trap: at N"
    close = AssertionError("Tensor-likes are not close!\n\nMismatched elements: 3 / 4")
    assert causes.cause_of(close).kind == causes.NUMBERS
    assert causes.cause_of(AssertionError("assert 2 == 3")).kind == causes.OTHER
    assert causes.cause_of(causes.TestTimeout("more than 3 s")).kind == causes.TIMEOUT
    assert causes.cause_of(MemoryError()).kind == causes.MEMORY

    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError

    assert causes.cause_of(Mute()).text == "Mute: its text raises ValueError"


def _record(name: str, outcome: str = "passed", **given: Any) -> dict[str, Any]:
    record = {
        "id": f"t.py::{name}", "outcome": outcome, "compiled": 1, "launched": 1, "seconds": 0.5,
        "kernels": [["ab", "sm_90", 3, outcome == "passed"]], "cause": None,
    }  # fmt: skip
    if outcome == "failed":
        record["cause"] = {"kind": "compile error", "text": "a | b", "detail": "x" * 900}
    return {**record, **given}


def test_only_tests_that_launch_count() -> None:
    results = [
        _record("a"), _record("b"), _record("c", "failed", kernels=[["cd", "sm_90", 3, False]]),
        _record("d", compiled=0, launched=0, kernels=[]),
        _record("e", "failed", compiled=0, launched=0, kernels=[]),
        _record("f", "skipped", compiled=0, launched=0, kernels=[]),
    ]  # fmt: skip
    found = report.summarise("sm_90", results)
    assert (found.launching, found.passed, found.failed) == (3, 2, 1)
    assert (found.other_passed, found.other_failed, found.skipped) == (1, 1, 1)
    assert (found.kernels, found.kernels_refused) == (2, 1)
    assert round(found.share, 2) == 66.67
    assert [len(cause.tests) for cause in found.causes] == [2]
    table = report.markdown([found])
    assert "| sm_90 | 3 | 0 | 2 | 66.67 % |" in table
    assert "| 2 | compile error | a \\| b | `t.py::c` |" in table


def test_a_probe_for_versions_is_no_kernel_of_the_test_that_comes_first() -> None:
    """Which test of a process that is depends on which ones run there."""
    session = SimpleNamespace(compiler=SimpleNamespace(watch=None), watch=None)
    found: list[Any] = []
    notes.follow(session, found.append)
    probe, kernel = write_bytecode(Module()), (EXAMPLES / "vector_add_f32.tileirbc").read_bytes()
    for bytecode in (probe, kernel):
        session.compiler.watch(Compilation(bytecode, "sm_120", 3, "// its code"))
    assert [note[3] for note in found] == [True]
    session.watch("// its code")
    assert found[1] == [notes.LAUNCH, found[0][:3]]


# A process that runs tests as the plugin does, without what the plugin needs.
FAKE = """
    import json, os, pathlib, sys
    arguments = dict(argument.split("=", 1) for argument in sys.argv[1:])
    tests = ["t.py::a", "t.py::dies", "t.py::b"]
    if "--tile-list" in arguments:
        pathlib.Path(arguments["--tile-list"]).write_text("\\n".join(tests))
        sys.exit()
    for test in pathlib.Path(arguments["--tile-only"]).read_text().splitlines():
        with open(arguments["--tile-report"], "a") as report:
            report.write(json.dumps({"id": test, "outcome": "started"}) + "\\n")
            report.flush()
            if test.endswith("dies"):
                print("its last words", flush=True)
                os.kill(os.getpid(), 9)
            record = {"id": test, "outcome": "passed", "arch": os.environ["TILE_SIM_ARCH"],
                      "pipeline": os.environ["TILE_SIM_PIPELINE"]}
            report.write(json.dumps(record) + "\\n")
"""


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_dying_process_costs_one_test(
    jobs: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = tmp_path / "fake.py"
    fake.write_text(textwrap.dedent(FAKE))
    monkeypatch.setattr(
        runner.Run, "_command", lambda self, *options: [sys.executable, str(fake), *options]
    )
    results = runner.Run(runner.Plan(tmp_path, "sm_80", jobs, pipeline="mine.toml")).run()
    assert [(r["id"], r["outcome"]) for r in results] == [
        ("t.py::a", "passed"), ("t.py::dies", "failed"), ("t.py::b", "passed"),
    ]  # fmt: skip
    assert results[0]["arch"] == "sm_80"
    assert results[0]["pipeline"] == "mine.toml"
    assert results[1]["cause"]["kind"] == causes.CRASH
    assert results[1]["cause"]["text"] == "the process ended with status -9"
    assert "its last words" in results[1]["cause"]["detail"]
    json.dumps(results)


@pytest.mark.parametrize(("often", "outcome"), [(1, "passed"), (2, "failed")])
def test_a_test_in_which_pytest_fails_runs_again(
    often: int, outcome: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd
) -> None:
    """Once, and the tests behind it as ever."""
    dies = f"open('died', 'a').write('x'); os.path.getsize('died') > {often} or sys.exit(3)"
    fake = tmp_path / "fake.py"
    fake.write_text(textwrap.dedent(FAKE).replace("os.kill(os.getpid(), 9)", dies))
    monkeypatch.setattr(
        runner.Run, "_command", lambda self, *options: [sys.executable, str(fake), *options]
    )
    results = runner.Run(runner.Plan(tmp_path, "sm_80", 1, pipeline="mine.toml")).run()
    assert [r["outcome"] for r in results] == ["passed", outcome, "passed"]
    assert "t.py::dies runs again: pytest failed.\nits last words" in capfd.readouterr().err
    if outcome == "failed":
        assert results[1]["cause"]["text"] == "the process ended with status 3"


def test_what_is_known_does_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In its place among the others; with everything known, no process starts for tests."""
    fake = tmp_path / "fake.py"
    fake.write_text(textwrap.dedent(FAKE))
    monkeypatch.setattr(
        runner.Run, "_command", lambda self, *options: [sys.executable, str(fake), *options]
    )
    known = {
        name: _record(name) | {"id": name, "as": "first"} for name in ("t.py::dies", "t.py::x")
    }
    plan = runner.Plan(tmp_path, "sm_80", pipeline="second", known=known)
    results = runner.Run(plan).run()
    assert [(r["id"], r["outcome"], r.get("as")) for r in results] == [
        ("t.py::a", "passed", None), ("t.py::dies", "passed", "first"), ("t.py::b", "passed", None),
    ]  # fmt: skip
    known |= {name: _record(name) | {"id": name, "as": "first"} for name in ("t.py::a", "t.py::b")}
    results = runner.Run(replace(plan, known=known)).run()
    assert [r.get("as") for r in results] == ["first"] * 3
    assert report.summarise("sm_80", results).same == 3
    run = runner.Run(plan, (["t.py::b"], []))
    assert [r["id"] for r in run.run()] == ["t.py::b"]


def test_a_file_that_cannot_be_imported_costs_its_own_tests(tmp_path: Path) -> None:
    pytest.importorskip("cuda.tile")
    suite = tmp_path / "suite"
    suite.mkdir()
    (suite / "test_broken.py").write_text("import nothing_of_this_name\n")
    (suite / "test_good.py").write_text("def test_it():\n    assert 1 + 1 == 2\n")
    results = runner.Run(runner.Plan(suite, "sm_80", every=2)).run()
    assert [(r["id"], r["outcome"]) for r in results] == [
        ("test_good.py::test_it", "passed"), ("test_broken.py", "failed"),
    ]  # fmt: skip
    assert results[1]["cause"]["kind"] == causes.COLLECTION
    assert "nothing_of_this_name" in results[1]["cause"]["text"]
    summary = report.summarise("sm_80", results)
    assert summary.other_failed == 1
    assert "| 1 | not collected | ModuleNotFoundError" in report.markdown([summary])


def test_the_parts_of_a_suite_are_the_whole(tmp_path: Path) -> None:
    pytest.importorskip("cuda.tile")
    (tmp_path / "test_it.py").write_text("".join(f"def test_{i}(): pass\n" for i in range(5)))
    parts = [
        [
            record["id"]
            for record in runner.Run(runner.Plan(tmp_path, "sm_80", every=2, first=i)).run()
        ]
        for i in range(2)
    ]
    assert parts == [[f"test_it.py::test_{i}" for i in part] for part in ((0, 2, 4), (1, 3))]


def test_a_suite_that_cannot_be_collected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = [sys.executable, "-c", "print('no such plugin')"]
    monkeypatch.setattr(runner.Run, "_command", lambda self, *options: command)
    with pytest.raises(RuntimeError, match="no such plugin"):
        runner.Run(runner.Plan(tmp_path, "sm_80")).run()


SUITE = """
import cuda.tile as ct
import pytest
import torch

@ct.kernel
def double(x, y, n: ct.Constant[int]):
    ct.store(y, (0,), ct.load(x, (0,), (n,)) * 2)

@pytest.mark.parametrize("n", [64, 128])
def test_it(n):
    x = torch.ones(n, device="cuda")
    y = torch.zeros_like(x)
    ct.launch(torch.cuda.current_stream(), (1,), double, (x, y, n))
    assert (y == 2).all()
"""


@pytest.mark.torch
def test_programs_of_a_suite_without_running_them(tmp_path: Path) -> None:
    """Compiler "none": every program is kept once, nothing is computed, and no test passes."""
    (tmp_path / "test_it.py").write_text(SUITE)
    kept = tmp_path / "kept"
    plan = runner.Plan(tmp_path, "sm_90", bytecode=kept, compiler="none")
    results = runner.Run(plan).run()
    assert [r["outcome"] for r in results] == ["failed"] * 2
    assert [r["launched"] for r in results] == [1] * 2
    names = {kernel[0] for record in results for kernel in record["kernels"]}
    assert len(names) >= 2
    assert {file.stem for file in kept.glob("*.tileirbc")} == names


@pytest.mark.torch
def test_what_a_test_runs_is_noted(tmp_path: Path) -> None:
    """Also where an earlier test compiled it."""
    (tmp_path / "test_it.py").write_text(SUITE.replace("[64, 128]", "[64, 64]"))
    first, second = runner.Run(runner.Plan(tmp_path, "sm_90")).run()
    assert [r["outcome"] for r in (first, second)] == ["passed"] * 2
    assert second["kernels"] == []
    assert first["ran"] == second["ran"] == [kernel[:3] for kernel in first["kernels"]]


def test_a_schedule_is_nothing_to_tests_without_asynchronous_work() -> None:
    """What it ran may be another test's; one that failed is not known."""

    def record(name: str, used: list[str], outcome: str = "passed") -> dict[str, Any]:
        kernel = [" ".join(used), "sm_90", 3, True, used]
        return _record(name, outcome, id=name, kernels=[kernel], ran=[kernel[:3]])

    plain, copies = record("plain", ["clusters"]), record("copies", [features.ASYNCHRONOUS])
    failed = record("failed", [], "failed")
    borrowed = {**record("borrowed", [features.ASYNCHRONOUS]), "kernels": []}
    lent = {**record("lent", ["clusters"]), "kernels": []}
    known = report.synchronous([plain, copies, failed, borrowed, lent], "late")
    assert known == {r["id"]: {**r, "as": "late", "seconds": 0.0} for r in (plain, lent)}
    unknown = {**lent, "ran": [["elsewhere", "sm_90", 3]]}
    assert report.synchronous([unknown], "late") == {}
    for text in ("cp.async.ca.shared.global [%r1], [%rd1], 16;", "wgmma.mma_async.sync.aligned",
                 "red.async.relaxed.cluster", "tcgen05.ld.sync.aligned"):  # fmt: skip
        assert features.ASYNCHRONOUS in features.features_of(text)
    assert features.features_of("ld.global.b32 %r1, [%rd1]; // asynchronous") == []
