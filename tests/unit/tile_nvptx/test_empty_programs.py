"""Programs without kernels and globals: the short way makes what the long way does."""

from __future__ import annotations

import pytest
from support.command_lines import EXAMPLES
from tile_cudatile.bytecode.empty import is_empty
from tile_cudatile.bytecode.writer import write_bytecode
from tile_cudatile.tree import Module
from tile_nvptx.emit import empty

import tile_core
from tile_core.diagnostics import TileError
from tile_core.registry import Registry
from tile_core.target import builtin_targets

VERSIONS = [(13, minor) for minor in range(1, 6)]
EMPTY = write_bytecode(Module(), version=(13, 4))


@pytest.mark.parametrize("target", sorted(builtin_targets()))
@pytest.mark.parametrize("options", [{}, {"lineinfo": True}], ids=["plain", "lineinfo"])
def test_the_short_way_makes_the_same(
    target: str, options: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    # A registry of its own: where one has compiled before, all is loaded and the long way is taken.
    fresh = Registry.discover()
    short = tile_core.compile(EMPTY, target, options=options, keep_stages=False, registry=fresh)
    assert "read" not in {span.name for span in short.timings.children}
    # Without its texts, LLVM makes both.
    monkeypatch.setattr(empty, "LLVM_IR", "")
    long = tile_core.compile(EMPTY, target, options=options)
    for stage in ("llvm", "ptx", "cubin"):
        assert short.stages[stage] == long.stages[stage]
    assert short.remarks == long.remarks


@pytest.mark.parametrize("version", VERSIONS)
def test_empty_programs_of_all_versions(version: tuple[int, int]) -> None:
    assert is_empty(write_bytecode(Module(), version=version))


def test_what_is_broken_or_holds_something_is_not_empty() -> None:
    assert not is_empty((EXAMPLES / "vector_add_f32.tileirbc").read_bytes())
    assert not any(is_empty(EMPTY[:cut]) for cut in range(len(EMPTY)))


def test_a_pass_that_is_asked_for_its_options_is_loaded() -> None:
    with pytest.raises(TileError, match="no-such-pass"):
        tile_core.compile(
            EMPTY, "sm_90", keep_stages=False, pass_options={"no-such-pass.option": 1}
        )
