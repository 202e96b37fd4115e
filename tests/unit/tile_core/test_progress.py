"""Signs of life on a terminal, completion with values, and JSON of verbs."""

from __future__ import annotations

import io
import json
import sys
import time
from pathlib import Path

import click
import pytest

from tile_core.cli.compile import compile_
from tile_core.cli.main import run
from tile_core.cli.progress import Progress

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "bytecode"
LAUNCH = [
    str(EXAMPLES / "vector_add_f32.tileirbc"), "--gpu-name", "sm_90", "--grid", "1", "--with-shape",
    *(x for _ in range(3) for x in ("--arg", "f32[128]=random")),
]  # fmt: skip


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("stream", "shown"), [(Terminal(), True), (io.StringIO(), False)])
def test_a_bar_is_for_terminals(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, shown: bool
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    with Progress("counting", 3, patience=0.0) as bar:
        for _ in range(3):
            bar.advance()
            time.sleep(0.05)
    assert ("counting" in stream.getvalue()) == shown


def test_what_is_quick_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with Progress("quick"):
        pass
    assert stream.getvalue() == ""


@pytest.mark.parametrize(
    ("option", "typed", "expected"),
    [
        ("gpu_name", "sm_9", "sm_90"),
        ("scheduler", "se", "serial"),
        ("layout_strategy", "bl", "blocked"),
        ("pipeline", "O", "O2"),
        ("settings", "num-w", "num-warps="),
        ("settings", "num-warps=", "num-warps=8"),
        ("settings", "ftz=", "ftz=true"),
        ("settings", "scheduler=l", "scheduler=list"),
        ("pass_settings", "tileas-plan-ac", "tileas-plan-accesses."),
        ("pass_settings", "tileas-plan-accesses.", "tileas-plan-accesses.max-vector-bits="),
    ],
)
def test_values_are_completed(option: str, typed: str, expected: str) -> None:
    (parameter,) = [p for p in compile_.params if p.name == option]
    found = parameter.shell_complete(click.Context(compile_), typed)
    assert expected in [item.value for item in found]
    assert all(item.value.startswith(typed) for item in found)


@pytest.mark.parametrize(
    "words",
    [
        ["run", *LAUNCH, "--reference"],
        ["check", *LAUNCH],
        ["bisect", *LAUNCH, "-O1"],
        ["pipeline", "validate", "O2", "--gpu-name", "sm_90"],
        ["pipeline", "diff", "O2", "O2"],
        ["plugins", "show", "serial"],
        ["plugins", "check", "sched"],
        ["explain", "ftz"],
    ],
    ids=lambda words: words[0],
)
def test_verbs_print_json(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """And nothing else on standard output."""
    code = run([*words, "--json"])
    assert code == 0, capsys.readouterr().err
    assert json.loads(capsys.readouterr().out) is not None
