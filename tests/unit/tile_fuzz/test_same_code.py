"""A test runs again under another pipeline exactly where one of its programs has other code."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.planted import registry
from tile_cudatile import write_bytecode
from tile_fuzz.generator import Settings, generate
from tile_fuzz.generator.gaps import GAPS
from tile_fuzz.oracle import Setting, compile_ptx
from tile_fuzz.same_code import SameCode

LOOPS = Settings(8, 256, avoid=frozenset(GAPS), favour=frozenset({"loops"}))
PLAIN = replace(LOOPS, favour=frozenset())
PROGRAMS = {"plain": (1, PLAIN), "loops": (0, LOOPS), "other": (2, LOOPS)}


def _pipeline(folder: Path, scheduler: str) -> str:
    file = folder / f"{scheduler}.toml"
    text = f'[pipeline]\nname = "{scheduler}"\nextends = "O3"\n'
    options = 'max-stages = 0\npipeline-strategy = "none"\n'
    file.write_text(f'{text}[set]\nscheduler = "{scheduler}"\n{options}')
    return str(file)


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """A folder of programs by name, and one that is none."""
    for name, (seed, limits) in PROGRAMS.items():
        (tmp_path / f"{name}.tileirbc").write_bytes(write_bytecode(generate(seed, limits).module))
    (tmp_path / "broken.tileirbc").write_bytes(b"\x7fTileIR\x00")
    return tmp_path


def _record(name: str, compiled: list[str], ran: list[str], **more: Any) -> dict[str, Any]:
    kernels = [[program, "sm_90", None, True, []] for program in compiled]
    launched = [[program, "sm_90", None] for program in ran]
    return {"id": name, "outcome": "passed", "kernels": kernels, "ran": launched, **more}


def test_what_has_other_code_runs_again(suite: Path) -> None:
    pipelines = [_pipeline(suite, name) for name in ("list", "ims")]
    codes = {
        name: [
            compile_ptx(generate(*given), Setting("sm_90", None, p), registry()) for p in pipelines
        ]
        for name, given in PROGRAMS.items()
    }
    same = {name for name, (lists, ims) in codes.items() if lists == ims}
    assert same, "the programs are to show both"
    assert same != set(codes), "the programs are to show both"
    records = [_record(name, [name], []) for name in codes]
    records += [_record(f"launches {name}", [], [name]) for name in codes]
    records += [_record("all", list(codes), []), _record("nothing", [], [])]
    known, again = (
        SameCode(suite, pipelines, registry, jobs).known({pipelines[0]: records}, pipelines[1])
        for jobs in (1, 3)
    )
    assert list(known.items()) == list(again.items())
    assert set(known) == same | {f"launches {name}" for name in same} | {"nothing"}
    assert all(record["as"] == pipelines[0] for record in known.values())


def _copy(pipeline: str) -> str:
    """The same passes by another name."""
    file = Path(pipeline).with_stem("again")
    file.write_text(Path(pipeline).read_text().replace('name = "', 'name = "again-'))
    return str(file)


def test_an_outcome_comes_from_the_pipeline_that_ran(suite: Path) -> None:
    """The third has the code of the second, which has that of the first for one program."""
    first, second = _pipeline(suite, "list"), _pipeline(suite, "ims")
    third = _copy(second)
    tests = SameCode(suite, [first, second, third], registry)
    ran = {first: [_record(name, [name], []) for name in PROGRAMS]}
    ran[second] = [
        tests.known(ran, second).get(name, _record(name, [name], [])) for name in PROGRAMS
    ]
    by = {name: record["as"] for name, record in tests.known(ran, third).items()}
    assert set(by) == set(PROGRAMS)
    assert set(by.values()) == {first, second}


def test_failures_run_again(suite: Path) -> None:
    first = _pipeline(suite, "list")
    second = _copy(first)
    records = [
        _record("failed", ["plain"], [], outcome="failed"),
        _record("refused", ["broken"], []),
        _record("passed", ["plain"], []),
    ]
    found = SameCode(suite, [first, second], registry).known({first: records}, second)
    assert set(found) == {"passed"}
