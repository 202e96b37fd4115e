"""Many compilations at once: the same bytes as one by one, and what becomes of those that fail."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tile_core import compile as compile_program
from tile_core.batch import Job, compile_batch
from tile_core.cli.main import run

FOLDER = Path(__file__).parents[3] / "examples" / "bytecode"
ADD, LOOP = FOLDER / "vector_add_f32.tileirbc", FOLDER / "saxpy_loop_f32.tileirbc"


def test_as_one_by_one() -> None:
    arguments = {"opt_level": 0, "emit": "ptx"}
    jobs = [Job(p.name, p.read_bytes(), gpu, arguments) for p in (ADD, LOOP) for gpu in
            ("sm_80", "sm_90")]  # fmt: skip
    with ThreadPoolExecutor(2) as executor:
        outcomes = {(o.name, o.target): o for o in compile_batch(jobs, executor)}
    for job in jobs:
        alone = compile_program(job.program, job.target, opt_level=0, emit="ptx")
        assert outcomes[job.name, job.target].output == alone.output


def test_a_failure_is_an_outcome() -> None:
    with ThreadPoolExecutor(1) as executor:
        (outcome,) = compile_batch([Job("x", b"\x7fTileIR\x00", "sm_80")], executor)
    assert outcome.output is None
    assert outcome.error is not None
    assert outcome.error.exit_code == 3


class _Losing(Executor):
    """Loses what it is given."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_exception(ConnectionError("worker gone"))
        return future


def test_a_job_that_is_lost_fails() -> None:
    (outcome,) = compile_batch([Job("x", b"", "sm_80")], _Losing())
    assert "lost: ConnectionError: worker gone" in str(outcome.error)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "broken.bc"
    broken.write_bytes(b"\x7fTileIR\x00")
    command = ["compile", str(ADD), str(broken), "--gpu-name", "sm_80,sm_90", "-O0", "--emit=ptx",
               "-j", "2", "-o", str(tmp_path), "--json"]  # fmt: skip
    assert run(command) == 3
    records = json.loads(capsys.readouterr().out)
    assert [(Path(r["input"]).name, r["target"], r["code"]) for r in records] == [
        (ADD.name, "sm_80", 0), (ADD.name, "sm_90", 0), ("broken.bc", "sm_80", 3),
        ("broken.bc", "sm_90", 3),
    ]  # fmt: skip
    for target in ("sm_80", "sm_90"):
        alone = compile_program(ADD.read_bytes(), target, opt_level=0, emit="ptx", name=str(ADD))
        assert (tmp_path / f"{ADD.stem}.{target}.ptx").read_text() == alone.output
    assert len(list(tmp_path.glob("*.ptx"))) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([str(ADD), str(ADD)], "two outputs would be called"),
        ([str(ADD), "-"], "standard input cannot be one of several inputs"),
        ([str(ADD), str(LOOP), "--time-passes"], "cannot be watched at once"),
        ([str(ADD), "missing.bc"], "cannot read 'missing.bc'"),
    ],
)
def test_what_makes_no_sense_is_refused(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["compile", *arguments]) == 1
    assert message in capsys.readouterr().err


def test_threads_that_begin_together() -> None:
    """The first compilations of a process declare the dialects, whose classes threads share."""
    code = (
        "import sys; from concurrent.futures import ThreadPoolExecutor as Pool\n"
        "from pathlib import Path; from tile_core import compile\n"
        "data = Path(sys.argv[1]).read_bytes()\n"
        "one = lambda _: compile(data, 'sm_80', opt_level=0, emit='mlir').output\n"
        "with Pool(4) as pool: print(len(set(pool.map(one, range(8)))))\n"
    )
    command = [sys.executable, "-c", code, str(ADD)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "1\n")
