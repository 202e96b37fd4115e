"""Limits, counters and logs of passes and rewrites, and which functions are printed."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from tile_core.cli.main import run as tilec
from tile_core.diagnostics import ConfigurationError, ExitCode, UsageError
from tile_core.pipeline.actions import BisectLimit, DebugCounter, LogActions
from tile_core.pipeline.dump import PrintIR
from tile_core.pipeline.run import Run
from tile_core.session import Session

EXAMPLES = Path(__file__).parents[3] / "examples" / "bytecode"
HEAD = '[pipeline]\nname = "t"\n[[segment]]\nname = "s"\nnest = ["gpu.module", "func.func"]\n'
PASSES = '"toy-mark", { pass = "toy-mark", key = "sign", id = "again" }, "mlir:canonicalize"'


@pytest.fixture
def execute(registry, planned, module_text):
    def go(passes: str, *watchers) -> Run:
        session = Session(registry)
        plan = planned(f"{HEAD}passes = [{passes}]\n")
        run = Run(plan, session, session.parse(module_text), instrumentations=watchers)
        run.execute()
        return run

    return go


@pytest.mark.parametrize("limit", range(8))
def test_exactly_so_many_passes_run(execute, limit: int) -> None:
    """Three passes on two functions each."""
    stream = io.StringIO()
    text = str(execute(PASSES, BisectLimit(limit, stream=stream)).module)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 6
    assert [line.startswith("BISECT: running pass") for line in lines] == [
        at < limit for at in range(6)
    ]
    assert lines[0].endswith("running pass (1) toy-mark on 'func.func' @a")
    assert text.count("mark = 1") == min(limit, 2)
    assert text.count("sign = 1") == min(max(limit - 2, 0), 2)
    assert ("arith.addi" in text) == (limit < 5)


def test_only_some_functions_are_limited(execute) -> None:
    stream = io.StringIO()
    text = str(execute('"toy-mark"', BisectLimit(0, ["b"], stream)).module)
    assert text.count("mark = 1") == 1
    assert stream.getvalue() == "BISECT: NOT running pass (1) toy-mark on 'func.func' @b\n"


@pytest.mark.parametrize(
    ("counter", "marked"), [("toy-mark=1", 1), ("toy-mark=2-9", 1), ("toy-mark=1,2", 2),
                            ("toy-mark=3", 0)]
)  # fmt: skip
def test_counters_of_passes(execute, counter: str, marked: int) -> None:
    text = str(execute('"toy-mark"', DebugCounter([counter])).module)
    assert text.count("mark = 1") == marked


def test_wrong_counters_are_refused(execute) -> None:
    for wrong in ("toy-mark", "toy-mark=", "=1", "toy-mark=x", "toy-mark=1-"):
        with pytest.raises(UsageError, match="is not TAG=FIRST-LAST"):
            DebugCounter([wrong])
    with pytest.raises(ConfigurationError, match="no pass 'toy-mrk' to count") as caught:
        execute('"toy-mark"', DebugCounter(["toy-mrk=1"]))
    assert caught.value.hint == "did you mean 'toy-mark'?"


def test_the_log(execute, tmp_path: Path) -> None:
    path = tmp_path / "log"
    execute('"toy-mark", "mlir:cse"', LogActions(str(path)))
    assert path.read_text().splitlines() == [
        "pass-execution toy-mark func.func @a", "pass-execution toy-mark func.func @b",
        "pass-execution mlir:cse func.func @a", "pass-execution mlir:cse func.func @b",
    ]  # fmt: skip
    with pytest.raises(ConfigurationError, match="cannot write"):
        execute('"toy-mark"', LogActions(str(tmp_path)))


def test_only_some_functions_are_printed(execute) -> None:
    stream = io.StringIO()
    execute('"toy-mark"', PrintIR(after=["all"], stream=stream, functions=["b"]))
    assert stream.getvalue().count("IR Dump After toy-mark") == 1
    assert "@b" in stream.getvalue()


VIEWS = """
func.func @f(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %0 = "nv_tileaa.view"(%x) : (tensor<64xf32>) -> tensor<8x8xf32>
  %1 = "nv_tileaa.view"(%0) : (tensor<8x8xf32>) -> tensor<64xf32>
  %2 = "nv_tileaa.view"(%x) : (tensor<64xf32>) -> tensor<4x16xf32>
  %3 = "nv_tileaa.view"(%2) : (tensor<4x16xf32>) -> tensor<64xf32>
  return %1, %3 : tensor<64xf32>, tensor<64xf32>
}
"""


def _opt(tmp_path: Path, capsys, *arguments: str) -> tuple[int, str, str]:
    path = tmp_path / "views.mlir"
    path.write_text(VIEWS)
    code = tilec(["opt", "-p", "tileaa-canonicalize", str(path), *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_rewrites_are_actions(tmp_path: Path, capsys) -> None:
    """Held back by a counter, a rewrite does not happen; the log has each attempt."""
    code, text, log = _opt(tmp_path, capsys, "--log-actions-to", "-")
    assert code == ExitCode.OK
    assert 'nv_tileaa.view"(%arg0)' not in text.partition("return")[2]
    assert "apply-pattern tileaa-canonicalize.view-of-view nv_tileaa.view" in log
    _, _, printed = _opt(tmp_path, capsys, "--print-ir-after", "all", "--filter-print-funcs", "g,h")
    assert "IR Dump" not in printed
    _, held, _ = _opt(
        tmp_path, capsys, "--debug-counter", "tileaa-canonicalize.view-of-view=1000",
        "--debug-counter", "tileaa-canonicalize.reshape-to-itself=1000",
    )  # fmt: skip
    assert held.count("nv_tileaa.view") == 4
    assert "return %1, %3" in held
    assert "return %arg0, %arg0" in text


def test_passes_of_a_level_can_be_left_out(tmp_path: Path, capsys) -> None:
    """With none of the optional passes the program still compiles; -O0's always run."""
    program = str(EXAMPLES / "vector_add_f32.tileirbc")
    out = str(tmp_path / "o.ptx")
    arguments = ["compile", program, "--gpu-name", "sm_90", "--emit", "ptx", "-o", out]
    assert tilec([*arguments, "--opt-bisect-limit", "0"]) == ExitCode.OK
    said = capsys.readouterr().err
    assert "NOT running pass (1)" in said
    assert "convert-tileas-to-llvm" not in said
    assert ".entry" in Path(out).read_text()
    assert tilec([*arguments, "--opt-bisect-funcs", "k"]) == ExitCode.CONFIGURATION
