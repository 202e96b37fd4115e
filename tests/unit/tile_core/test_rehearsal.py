"""No text and no list of passes ends the process of who asks: MLIR's own faults become errors.

The fault is MLIR's: `affine-loop-tile` divides by a tile size of zero, which is SIGFPE. Where the
rehearsal were missing, the tests that run here would end the process of the tests.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import support.deadly

import tile_core
from tile_core import rehearsal
from tile_core.diagnostics import CompileError, ExitCode, InputError
from tile_core.opt import OptJob, Selection, optimize
from tile_core.registry import Registry

EXAMPLE = Path(__file__).parents[3] / "examples" / "bytecode" / "vector_add_f32.tileirbc"
TEXT = """module {
  func.func @f(%m: memref<4xf32>) {
    %c = arith.constant 1.0 : f32
    affine.for %i = 0 to 16 { affine.store %c, %m[%i mod 4] : memref<4xf32> }
    return
  }
}
"""
TILE = "mlir:affine-loop-tile"
FATAL = f"builtin.module(func.func({TILE}{{tile-sizes=0,0}}))"
FINE = f"builtin.module(func.func({TILE}{{tile-size=4}}))"
MESSAGE = f"MLIR ends its process in pass '{TILE}{{tile-sizes=0,0}}' on 'func.func' @f (SIGFPE)"


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    """The framework alone; rehearsals happen."""
    monkeypatch.setenv(rehearsal.VARIABLE, "on")
    return Registry.of()


def job(registry: Registry, pipeline: str, **more: object) -> OptJob:
    return OptJob(registry, Selection(pass_pipeline=pipeline), **more)  # type: ignore[arg-type]


def test_a_pass_that_ends_its_process(registry: Registry) -> None:
    for _ in range(2):  # what ended is started again
        with pytest.raises(CompileError) as caught:
            optimize(TEXT, 0, job(registry, FATAL))
        assert caught.value.message == MESSAGE
        assert caught.value.exit_code == ExitCode.COMPILE
        assert "affine.for" in optimize(TEXT, 0, job(registry, FINE)).text


def test_the_errors_of_a_text_are_those_without(registry: Registry) -> None:
    with pytest.raises(InputError, match="custom op 'foo' is unknown"):
        optimize("module { foo }", 0, job(registry, FINE))


def test_a_pipeline_file(registry: Registry, tmp_path: Path) -> None:
    """The same through `tile_core.compile`, which a program imports."""
    file = tmp_path / "own.toml"
    passes = f'passes = [{{ pass = "{TILE}", tile-sizes = "0,0" }}]\n'
    head = '[pipeline]\nname = "own"\n[[segment]]\nname = "s"\nnest = ["func.func"]\n'
    file.write_text(head + passes)
    with pytest.raises(CompileError, match="MLIR ends its process in pass"):
        tile_core.compile(TEXT, "sm_90", pipeline=str(file), emit="mlir", registry=registry)


def test_a_text_that_ends_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(rehearsal.VARIABLE, "on")
    registry = Registry.of(deadly=support.deadly)
    text = f'module {{ func.func private @f() attributes {{a.b = "{support.deadly.WORD}"}} }}'
    with pytest.raises(InputError) as caught:
        optimize(text, 0, job(registry, "builtin.module(mlir:cse)"))
    assert caught.value.message == "MLIR ends its process while it reads the text (SIGABRT)"
    assert caught.value.notes == ("it was deadly",)
    assert caught.value.exit_code == ExitCode.INPUT


def test_passes_that_a_watcher_holds_back(registry: Registry) -> None:
    """A search for the culprit by counters goes on past it."""
    held = job(registry, FATAL, instrumentations=(support.deadly.Nothing(),))
    assert "affine.for" in optimize(TEXT, 0, held).text


def test_shipped_pipelines_on_bytecode_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """IR of this project's own making is not tried first."""
    from support.tiles import registry

    monkeypatch.setenv(rehearsal.VARIABLE, "on")
    asked: list[object] = []
    monkeypatch.setattr(rehearsal._HELPER, "ask", asked.append)
    data = EXAMPLE.read_bytes()
    made = tile_core.compile(data, "sm_80", opt_level=0, emit="mlir", registry=registry())
    assert not asked
    text = str(made.stage("tileir"))
    tile_core.compile(text, "sm_80", opt_level=0, emit="mlir", registry=registry())
    assert len(asked) == 1


def tilec(folder: Path, pipeline: str, rehearse: str = "on") -> subprocess.CompletedProcess[str]:
    (folder / "t.mlir").write_text(TEXT)
    command = "import sys; from tile_core.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", command, "opt", "t.mlir", "--pass-pipeline", pipeline],
        cwd=folder, capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, rehearsal.VARIABLE: rehearse},
    )  # fmt: skip


def test_the_command_line(tmp_path: Path) -> None:
    done = tilec(tmp_path, FATAL)
    assert done.returncode == ExitCode.COMPILE
    assert done.stderr.splitlines()[0] == f"error: {MESSAGE}"
    assert "affine.for" in tilec(tmp_path, FINE).stdout
    # What happens without: should MLIR have mended it, the tests here need another fault.
    assert tilec(tmp_path, FATAL, rehearse="off").returncode == -signal.SIGFPE
