"""`tileir{...}`: the pipeline text of the original compiler stands for a level and its options."""

from __future__ import annotations

from pathlib import Path

import pytest

from tile_core.cli.main import run
from tile_core.diagnostics import ConfigurationError, ExitCode
from tile_core.opt import OptJob, Selection, plan_of
from tile_core.pipeline.build import Plan
from tile_core.pipeline.tileir_text import KNOWN, parse_tileir
from tile_core.registry import default_registry

PROGRAM = "module {}"


def plan(text: str, **values: object) -> Plan:
    chosen = Selection(pass_pipeline=text, **values)  # type: ignore[arg-type]
    return plan_of(PROGRAM, OptJob(default_registry(), chosen))


@pytest.mark.parametrize(
    ("text", "given", "level"),
    [("tileir", None, 2), ("tileir{}", None, 2), ("tileir{opt-level=1}", None, 1),
     ("tileir{opt-level=1}", 2, 2), ("builtin.module(tileir{opt-level=3})", None, 3)],
)  # fmt: skip
def test_levels(text: str, given: int | None, level: int) -> None:
    """The text alone means 2, and what the command line says comes last."""
    assert plan(text, opt_level=given).options["opt-level"] == level


@pytest.mark.parametrize(
    ("text", "option", "value"),
    [
        ("num-warps=8", "num-warps", 8),
        ("unspecialized-pipeline-num-stages=3", "unspecialized-pipeline-num-stages", 3),
        ("ftz=true", "ftz", True),
        ("approx=true", "approx", True),
        ("dynamic-persistent=true", "dynamic-persistent", True),
        ("rrt-size-threshold=0", "rrt-size-threshold", 0),
        ("max-constraint-iterations=16", "max-constraint-iterations", 16),
        ("pipeline-strategy=none", "pipeline-strategy", "none"),
        ("pipeline-strategy=unspecialized", "pipeline-strategy", "unspecialize"),
        ("pipeline-strategy=warp-specialize", "pipeline-strategy", "warp-specialize"),
        ("emit-line-info=inputIR", "lineinfo", True),
    ],
)
def test_options_reach_the_pipeline(text: str, option: str, value: object) -> None:
    assert plan(f"tileir{{{text}}}").options[option] == value
    assert plan(f"tileir{{opt-level=2 {text}}}").options[option] == value


def test_an_option_of_a_pass() -> None:
    def delays(text: str) -> bool:
        steps = [s for s in plan(text).steps() if s.name == "tileas-generate-schedule-constraints"]
        return steps[0].work.enable_random_delay  # type: ignore[union-attr]

    assert delays("tileir{enable-random-delay=true}")
    assert not delays("tileir")


def test_the_target() -> None:
    """The command line always overrides."""
    assert plan("tileir{compute-capability=sm_90}", target_given=False).target.name == "sm_90"
    named = plan("tileir{compute-capability=sm_90}", target="sm_80", target_given=True)
    assert named.target.name == "sm_80"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("opt-level=4", "invalid optimization level: 4"),
        ("num-warp=4", "has no option 'num-warp'"),
        ("v2-opt-level=1", "'v2-opt-level=1'"),
        ("dump-host=h.o", "dump-host"),
        ("host-triple=aarch64", "host-triple"),
        ("enable-debug-logging", "enable-debug-logging"),
        ("use-nvgpucomp-libnvvm=true", "use-nvgpucomp-libnvvm"),
        ("emit-line-info=tileas", "lines are those of the input"),
        ("emit-line-info=all", "cannot be 'all'"),
        ("pipeline-strategy=magic", "cannot be 'magic'"),
        ("compute-capability=sm_1", "sm_1"),
        ("index-bitwidth=64", "index-bitwidth"),
    ],
)
def test_what_cannot_be_done_is_refused_by_name(text: str, words: str) -> None:
    with pytest.raises(ConfigurationError, match=words.replace("(", r"\(")):
        plan(f"tileir{{{text}}}", target_given=False)


def test_defaults_of_what_is_refused_are_taken() -> None:
    text = "v2-opt-level=0 host-triple=native enable-debug-logging=false emit-line-info=none"
    assert not parse_tileir(f"tileir{{{text}}}").pass_options
    assert len(KNOWN) == len(set(KNOWN)) == 20


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "k.mlir"
    path.write_text("entry @k(%p: tile<ptr<f32>>) { return }")
    text = "tileir{num-warps=8 compute-capability=sm_80}"
    assert run(["opt", str(path), "--pass-pipeline", text]) == ExitCode.OK
    printed = capsys.readouterr().out
    assert "nvvm.reqntid = array<i32: 256>" in printed
