"""`tilec compare`: the code of two compilers on the same inputs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tile_sim import Module
from tile_sim.peer import tileiras
from tile_sim.peer.comparison import compare

from tile_core.cli.main import run
from tile_core.diagnostics import ConfigurationError, ExitCode

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "bytecode"
Kernel = Callable[..., Module]
ADD = """
mov.u32 %r1, %tid.x; cvt.u64.u32 %rd1, %r1; shl.b64 %rd1, %rd1, 2; add.u64 %rd2, x, %rd1;
ld.global.f32 %f1, [%rd2]; add.f32 %f1, %f1, BY; st.global.f32 [%rd2], %f1;
"""


def one(kernel: Kernel, by: str, extra: str = "") -> Module:
    return kernel(ADD.replace("BY", by) + extra, "u64 x")


def launch(a: Module, b: Module, **options: object):
    x = np.arange(32, dtype=np.float32)
    found = compare({"ours": a, "theirs": b}, "k", (1, 1, 1), [x], **options)  # type: ignore
    assert x[1] == 1.0  # the arguments stay as they are
    return found


def with_block(kernel: Kernel, by: str, extra: str = "") -> Module:
    module = one(kernel, by, extra)
    module.program("k").entry.directives["reqntid"] = (32,)
    return module


def test_the_first_difference_is_reported(kernel: Kernel) -> None:
    found = launch(with_block(kernel, "0f3F800000"), with_block(kernel, "0f40000000"))
    assert not found.agree
    assert found.notes == [
        "argument 0: 32 elements differ, first at (0,): 1.0 instead of 2.0 of theirs"
    ]


def test_small_differences_are_counted(kernel: Kernel) -> None:
    found = launch(with_block(kernel, "0f3F800000"), with_block(kernel, "0f3F800001"))
    assert found.agree
    assert "elements differ, all within 0.001" in found.notes[0]


def test_counts_stand_side_by_side(kernel: Kernel) -> None:
    module = with_block(kernel, "0f3F800000")
    found = launch(module, with_block(kernel, "0f3F800000", "bar.sync 0;"), labels={0: 7})
    assert found.agree
    assert found.notes == ["argument 7: the same bits"]
    counts = {name: (a, b) for name, a, b in found.counts}
    assert counts["warp instructions"][1] == counts["warp instructions"][0] + 1
    assert counts["barrier waits"] == (0, 1)
    assert "ours" in found.text
    assert "theirs" in found.text


def test_faults_of_one_side_are_no_agreement(kernel: Kernel) -> None:
    wrong = with_block(kernel, "0f3F800000", "st.global.f32 [%rd2+4096], %f1;")
    found = launch(with_block(kernel, "0f3F800000"), wrong)
    assert not found.agree
    assert "theirs: ptx:" in found.text
    assert not found.counts


def test_what_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = tmp_path / "program.mlir"
    text.write_text("module {}")
    assert run(["compare", str(text), "--with", "tileiras", "--grid", "1"]) == ExitCode.INPUT
    assert "is no TileIR bytecode" in capsys.readouterr().err
    source = str(EXAMPLES / "vector_add_f32.tileirbc")
    missing = ["--tileiras", str(text)]
    code = run(["compare", source, "--with", "tileiras", "--grid", "1", *missing])
    assert code == ExitCode.CONFIGURATION
    assert "no tileiras that can be run" in capsys.readouterr().err


def test_scripts_that_stand_for_tileiras_are_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "tileiras"
    script.write_text("#!/bin/sh\nexit 0\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(tileiras, "_wheel_folders", list)
    with pytest.raises(ConfigurationError, match="tileiras is not installed"):
        tileiras.find()


def _installed() -> bool:
    try:
        tileiras.find()
    except ConfigurationError:
        return False
    return True


@pytest.mark.skipif(not _installed(), reason="needs tileiras")
@pytest.mark.parametrize(
    "arch", [pytest.param("sm_80", marks=pytest.mark.slow), "sm_90", "sm_100", "sm_120"]
)
def test_a_matrix_product(arch: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ours and theirs, with tensor maps, wgmma or tcgen05 on their side."""
    stats = tmp_path / "stats.json"
    arrays = ("f16[256,128]=normal", "f16[128,256]=normal", "f16[256,256]")
    code = run(
        [
            "compare", str(EXAMPLES / "matmul_large_f16.tileirbc"), "--with", "tileiras",
            "--gpu-name", arch, "--grid", "2,2", "--with-shape", "--check",
            "--stats-json", str(stats), *(word for a in arrays for word in ("--arg", a)),
        ]
    )  # fmt: skip
    text = capsys.readouterr().out
    assert code == ExitCode.OK, text
    assert "argument 2: " in text
    both = json.loads(stats.read_text())
    assert both["tilec"]["total"]["macs"] == both["tileiras"]["total"]["macs"] == 256 * 256 * 128
    assert ("tma_bytes" in both["tileiras"]["total"]) == (arch != "sm_80")
