"""Whose mistake an internal error is, and where a traceback shows it."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest
from support.programs import Program
from support.tiles import registry as full_registry
from tile_cudatile import to_mlir
from tile_cudatile import types as t

import tile_core
from tile_core.cli import main as cli
from tile_core.diagnostics import CompileError, ExitCode
from tile_core.hookspecs import Lazy, hookimpl
from tile_core.pipeline.instrument import Instrumentation
from tile_core.registry import Registry


class ForgetfulStrategy:
    """A layout strategy that looks up what it never stored."""

    name = "forgetful"

    def assign(self, graph):
        return {}["a tile"]


def _plugin() -> ModuleType:
    """A plugin of its own, whose strategy lives in this file's package."""
    module = ModuleType(f"{__name__.partition('.')[0]}.plugin")
    module.TILE_SPEC_VERSION = 1  # type: ignore[attr-defined]

    @hookimpl
    def tile_layout_strategies():
        return (Lazy("forgetful", f"{__name__}:ForgetfulStrategy", "wrong on purpose"),)

    module.tile_layout_strategies = tile_layout_strategies  # type: ignore[attr-defined]
    return module


@pytest.fixture
def registry() -> Registry:
    sys.modules.setdefault(__name__, sys.modules[ForgetfulStrategy.__module__])
    return full_registry(forgetful=_plugin())


def program() -> str:
    p = Program()
    p.store(p.load((64,), t.F32), (64,), t.F32)
    return str(to_mlir(p.module()))


FORGETFUL = {"options": {"layout-strategy": "forgetful"}, "start_at": "convert-cudatile-to-tileaa"}


def test_the_plugin_that_raised_is_to_blame_and_not_its_caller(registry: Registry) -> None:
    with pytest.raises(CompileError) as caught:
        tile_core.compile(program(), "sm_90", registry=registry, **FORGETFUL)
    error = caught.value
    assert "internal error in pass 'tileas-assign-layouts': KeyError: 'a tile'" in error.message
    assert "this is a mistake in forgetful 0" in str(error.hint)
    assert "tileas" not in str(error.hint)
    assert "--traceback" in str(error.hint)
    assert any("ForgetfulStrategy.assign, line" in note for note in error.notes)


def test_an_instrumentation_is_to_blame_for_its_own(registry: Registry) -> None:
    class Clumsy(Instrumentation):
        name = "clumsy"

        def after_pipeline(self, run) -> None:
            raise ZeroDivisionError("counted nothing")

    with pytest.raises(CompileError, match="internal error in instrumentation 'clumsy': ZeroDiv"):
        tile_core.compile(
            program(), "sm_90", registry=registry, start_at="convert-cudatile-to-tileaa",
            emit="mlir:to-tileaa", instrumentations=[Clumsy()],
        )  # fmt: skip


@pytest.mark.parametrize("asked", [False, True])
def test_the_traceback_is_shown_where_it_is_asked_for(
    registry: Registry, tmp_path: Path, monkeypatch, capfd, asked: bool
) -> None:
    monkeypatch.setattr(cli.Application, "registry", registry)
    monkeypatch.setattr(cli.Application, "lenient_registry", registry)
    monkeypatch.setenv("TILEC_TRACEBACK", "1" if asked else "")
    monkeypatch.setenv("TILEC_REPRODUCERS", str(tmp_path / "saved"))
    source = tmp_path / "in.mlir"
    source.write_text(program())
    code = cli.run(
        ["compile", str(source), "--gpu-name", "sm_90", "--layout-strategy", "forgetful",
         "--start-at", "convert-cudatile-to-tileaa", "--emit", "ptx", "-o", str(tmp_path / "o")]
    )  # fmt: skip
    said = capfd.readouterr().err
    assert code == ExitCode.COMPILE
    assert ("Traceback (most recent call last)" in said) == asked
    assert ("in assign" in said) == asked
    assert "error: internal error in pass 'tileas-assign-layouts'" in said
    # The input of the pass that failed was kept without being asked for, and fails again.
    (kept,) = (tmp_path / "saved").iterdir()
    assert f"reproducer: tilec opt --run-reproducer {kept}" in said
    assert cli.run(["opt", "--run-reproducer", str(kept)]) == ExitCode.COMPILE
    assert "internal error in pass 'tileas-assign-layouts'" in capfd.readouterr().err


def test_mistakes_of_programs_have_no_reproducer(tmp_path: Path, monkeypatch, capfd) -> None:
    monkeypatch.setenv("TILEC_REPRODUCERS", str(tmp_path / "saved"))
    source = tmp_path / "in.tileirbc"
    source.write_bytes(b"\x7fTileIR\0nothing")
    assert cli.run(["compile", str(source), "--gpu-name", "sm_90"]) == ExitCode.INPUT
    assert not (tmp_path / "saved").exists()


@pytest.mark.parametrize("asked", [False, True])
def test_what_nobody_expected_has_the_same_exit_code_with_a_traceback(
    monkeypatch, capfd, asked: bool
) -> None:
    def broken(*_, **__):
        raise LookupError("nobody expected this")

    monkeypatch.setenv("TILEC_TRACEBACK", "1" if asked else "")
    monkeypatch.setattr(cli.cli, "main", broken)
    assert cli.run([]) == ExitCode.COMPILE
    said = capfd.readouterr().err
    assert ("Traceback" in said) == asked
    assert "error: internal error: LookupError: nobody expected this" in said
