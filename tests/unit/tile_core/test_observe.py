"""Printing the IR, reports of time and statistics, remarks, reproducers."""

from __future__ import annotations

import contextlib
import io
import json

import pytest

from tile_core.diagnostics import CompileError, ConfigurationError, InputError, SourceLocation
from tile_core.opt import OptJob, Selection, optimize
from tile_core.pipeline import timing
from tile_core.pipeline.dump import DumpDirectory, PrintIR
from tile_core.pipeline.report import statistics_json, statistics_text
from tile_core.pipeline.reproducer import Reproducer, read_reproducer
from tile_core.pipeline.run import Run
from tile_core.remarks import Remark, as_listing, as_yaml, chosen
from tile_core.session import Session

NEST = 'nest = ["gpu.module", "func.func"]'


def text(passes: str) -> str:
    return f'[pipeline]\nname = "t"\n[[segment]]\nname = "s"\n{NEST}\npasses = [{passes}]\n'


@pytest.fixture
def execute(registry, planned, module_text):
    def go(pipeline: str, *watchers, **values) -> Run:
        session = Session(registry)
        run = Run(planned(pipeline), session, session.parse(module_text),
                  instrumentations=watchers, **values)  # fmt: skip
        run.execute()
        return run

    return go


def printed(execute, passes: str, **how) -> list[str]:
    stream = io.StringIO()
    with contextlib.suppress(CompileError):
        execute(text(passes), PrintIR(stream=stream, **how))
    return [line[7:-4] for line in stream.getvalue().splitlines() if line.startswith("// ***")]


def test_before_and_after(execute) -> None:
    both = printed(execute, '"toy-mark", "mlir:cse"', before=["mlir:cse"], after=["all"])
    assert both == [
        "IR Dump After toy-mark", "IR Dump After toy-mark",
        "IR Dump Before mlir:cse", "IR Dump After mlir:cse",
        "IR Dump Before mlir:cse", "IR Dump After mlir:cse",
    ]  # fmt: skip


def test_after_change_is_silent_where_nothing_changed(execute) -> None:
    found = printed(execute, '"mlir:cse", "toy-look", "mlir:canonicalize"', after_change=True)
    assert found == ["IR Dump After mlir:canonicalize"]


def test_after_failure(execute) -> None:
    assert (
        printed(execute, '"toy-mark", "toy-fail"', after_failure=True)
        == ["IR Dump After toy-fail Failed"] * 2
    )  # functions


def test_module_scope(execute) -> None:
    stream = io.StringIO()
    execute(text('"toy-mark"'), PrintIR(after=["toy-mark"], module_scope=True, stream=stream))
    assert stream.getvalue().count("gpu.module @k") == 2


def test_unknown_names_are_refused(execute) -> None:
    with pytest.raises(ConfigurationError, match="no pass 'toy-mrk' to print at") as caught:
        execute(text('"toy-mark"'), PrintIR(after=["toy-mrk"]))
    assert caught.value.hint == "did you mean 'toy-mark'?"


def test_a_file_per_pass(execute, tmp_path) -> None:
    where = tmp_path / "dump"
    execute(text('"toy-mark", "mlir:canonicalize", "mlir:cse"'), DumpDirectory(where))
    names = ["000-input", "001-toy-mark", "002-mlir-canonicalize", "003-mlir-cse"]
    assert sorted(p.stem for p in where.iterdir()) == names
    assert "mark = 1" not in (where / "000-input.mlir").read_text()
    assert (where / "001-toy-mark.mlir").read_text().count("mark = 1") == 2
    assert "arith.addi" not in (where / "002-mlir-canonicalize.mlir").read_text()


def test_only_changed_files_and_failures(execute, tmp_path) -> None:
    with pytest.raises(CompileError):
        execute(
            text('"mlir:cse", "toy-mark", "toy-fail"'), DumpDirectory(tmp_path, only_changed=True)
        )
    assert sorted(p.stem for p in tmp_path.iterdir()) == [
        "000-input", "002-toy-mark", "003-toy-fail-failed", "004-toy-fail-failed",
    ]  # fmt: skip


def test_a_directory_that_cannot_be_written(execute, tmp_path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigurationError, match="cannot write"):
        execute(text('"toy-mark"'), DumpDirectory(tmp_path / "file"))


def tree() -> timing.Span:
    root = timing.Span("total", "compile", 0.0, 4.0, 3.0)
    segment = timing.Span("s", "segment", 0.0, 3.0, 2.0)
    segment.children = [
        timing.Span("a", "pass", 0.0, 1.0, 1.0),
        timing.Span("b", "pass", 1.0, 1.5, 0.5),
        timing.Span("a", "pass", 2.5, 0.5, 0.5),
    ]
    root.children = [segment, timing.Span("e", "emitter", 3.0, 1.0, 1.0, {"x": "y"})]
    return root


def test_time_as_a_list() -> None:
    lines = timing.as_list(tree()).splitlines()
    assert lines[3] == "  Total Execution Time: 4.000 seconds"
    rows = [line.split() for line in lines[6:]]
    assert [(r[0], r[-1]) for r in rows] == [
        ("1.5000", "a"), ("1.5000", "b"), ("1.0000", "e"), ("4.0000", "Total"),
    ]  # fmt: skip
    assert "( 37.5%)" in lines[6]


def test_time_as_a_tree() -> None:
    lines = timing.as_tree(tree()).splitlines()[6:]
    assert [line.split(")  ")[-1] for line in lines] == ["s", "  a", "  b", "  a", "e", "Total"]
    assert "( 50.0%)" in lines[2]  # of its parent


def test_time_as_json_and_trace() -> None:
    data = json.loads(timing.as_json(tree()))
    assert data["wall"] == 4.0
    assert [c["name"] for c in data["children"][0]["children"]] == ["a", "b", "a"]
    events = json.loads(timing.as_chrome_trace(tree()))["traceEvents"]
    assert [e["name"] for e in events] == ["total", "s", "a", "b", "a", "e"]
    assert events[-1] | {} == {
        "name": "e", "cat": "emitter", "ph": "X", "ts": 3e6, "dur": 1e6, "pid": 1, "tid": 1,
        "args": {"x": "y"},
    }  # fmt: skip


def test_spans_close_when_the_work_fails() -> None:
    clock = timing.Clock()
    with pytest.raises(KeyError), clock.span("outer", "pass"), clock.span("inner", "scope"):
        raise KeyError
    with clock.span("next", "pass"):
        pass
    assert [c.name for c in clock.stop().children] == ["outer", "next"]


def test_statistics() -> None:
    counts = {("p", "x"): 3, ("p", "y"): 40, ("q", "x"): 1}
    assert json.loads(statistics_json(counts)) == {"p": {"x": 3, "y": 40}, "q": {"x": 1}}
    assert statistics_text(counts).splitlines()[3:] == [
        "'p'", "         3 x", "        40 y", "'q'", "         1 x",
    ]  # fmt: skip


WHERE = SourceLocation("it's.py", 3, 5)
PLAIN = Remark("passed", "plan-accesses", "x.load", "f", "Load instruction selected", WHERE)
LOAD = PLAIN.described({
    "category": "memory",
    "name": "LoadInstructionSelected",
    "facts": {"Instruction": "cp.async", "Shape": [64, 32]},
    "reasons": ["TMA: stride is unknown", "TMA: stride is unknown"],
    "hint": "state the divisibility: of the stride",
})  # fmt: skip


def test_remarks_as_yaml() -> None:
    """The shape is that of NVIDIA's tool, with reasons said once."""
    text = as_yaml([LOAD, Remark("failed", "q:r", "", "", "no")])
    assert (
        text
        == """\
--- !Passed
Pass:            Memory
Name:            RemarkMemoryLoadInstructionSelected
DebugLoc:        { File: 'it''s.py', Line: 3, Column: 5 }
Function:        f
Args:
  - RemarkId:    1
  - Remark:      'Load instruction selected'
  - Instruction: 'cp.async'
  - Shape:       '[64, 32]'
  - Reason:      'TMA: stride is unknown'
  - Hint:        'state the divisibility: of the stride'
  - By:          'plan-accesses'
...
--- !Failure
Pass:            General
Name:            RemarkQR
Function:        ''
Args:
  - RemarkId:    2
  - Remark:      'no'
  - By:          'q:r'
...
"""
    )


def test_remarks_on_the_screen() -> None:
    assert as_listing([LOAD]).splitlines() == [
        "in function: f:",
        "",
        "  category: Memory",
        "    remark[passed]: Load instruction selected",
        '      --> "it\'s.py":3:5',
        "       |",
        "       = name: RemarkMemoryLoadInstructionSelected",
        "       = note: Instruction = cp.async",
        "       = note: Shape = [64, 32]",
        "       = reason: TMA: stride is unknown",
        "       = hint: state the divisibility: of the stride",
        "",
        "",
    ]


@pytest.mark.parametrize("name", ["TensorCoreMMA", "MMA"])
def test_a_name_has_its_category_once(name: str) -> None:
    made = Remark("missed", "p", "", "", "m", category="tensorcore", name=name)
    assert made.full_name == "RemarkTensorCoreMMA"


def test_remarks_are_chosen_by_kind_and_category() -> None:
    other = Remark("missed", "p", "", "", "m", category="layout")
    assert chosen([LOAD, other], []) == [LOAD, other]
    assert chosen([LOAD, other], ["missed"]) == [other]
    assert chosen([LOAD, other], ["missed", "memory"]) == []
    assert chosen([LOAD, other], ["layout", "memory"]) == [LOAD, other]


def test_a_category_that_does_not_exist_is_a_mistake_of_the_pass() -> None:
    with pytest.raises(TypeError, match="there is no category 'speed'"):
        Remark("missed", "p", "", "", "m").described({"category": "speed"})


def test_a_reproducer_replays_the_failure(execute, tmp_path, registry) -> None:
    path = tmp_path / "r.mlir"
    passes = '{ pass = "toy-mark", value = 9 }, { pass = "toy-fail", how = "error" }, "toy-look"'
    with pytest.raises(CompileError) as first:
        execute(text(passes), Reproducer(path))
    assert first.value.notes[-1] == f"reproducer generated at `{path}`"
    written = path.read_text()
    about = read_reproducer(written)
    assert about.target == "sm_90"
    assert about.pipeline == "builtin.module(gpu.module(func.func(toy-fail{how=error})))"
    assert "toys 0" in about.plugins
    assert "mark = 9" in written  # the input of the failing pass, not of the run
    assert "touched" not in written
    with pytest.raises(CompileError) as second:
        optimize(written, 0, OptJob(registry, Selection(reproducer=True)))
    assert second.value.message == first.value.message
    assert second.value.where == first.value.where


def test_success_leaves_no_reproducer(execute, tmp_path) -> None:
    path = tmp_path / "r.mlir"
    seen = []

    class Peek(Reproducer):
        def before_step(self, step, run) -> None:
            super().before_step(step, run)
            seen.append(path.read_text())

    execute(text('"toy-mark"'), Peek(path))
    assert not path.exists()
    # While it runs, the file is there: that is what is left when the process dies.
    assert "// pipeline: builtin.module(gpu.module(func.func(toy-mark)))" in seen[0]


def test_a_reproducer_of_a_run_that_does_not_verify(execute, tmp_path, registry) -> None:
    path = tmp_path / "r.mlir"
    with pytest.raises(CompileError, match="rejected IR after segment"):
        execute(text('{ pass = "toy-fail", how = "invalid" }'), Reproducer(path))
    with pytest.raises(CompileError, match="verifier rejected IR"):
        optimize(path.read_text(), 0, OptJob(registry, Selection(reproducer=True)))


@pytest.mark.parametrize("line", ["// target:", "// options:", "// plugins:", "// pipeline:"])
def test_broken_reproducers(execute, tmp_path, line: str) -> None:
    path = tmp_path / "r.mlir"
    with pytest.raises(CompileError):
        execute(text('"toy-fail"'), Reproducer(path))
    lines = [text for text in path.read_text().splitlines() if not text.startswith(line)]
    with pytest.raises(InputError, match="not a whole reproducer"):
        read_reproducer("\n".join(lines))
