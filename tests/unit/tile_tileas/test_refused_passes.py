"""Passes of the specification that are not here: the error says why, and what to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tile_core.diagnostics import ConfigurationError
from tile_core.explain import explanations
from tile_core.options import configured
from tile_core.pipeline.build import build
from tile_core.pipeline.resolve import Request, load, resolve
from tile_core.pipeline.text import parse_text
from tile_core.registry import Registry

PASSES = ("tileas-queue-to-pipeline", "tileas-materialize-async", "tileas-unroll-register-loops")
OPTIONS = ("reg2reg-vec-size", "reinterpret-to-i8")
CONVERSION = "tileas-materialize-convert-layout"


@pytest.fixture(scope="module")
def registry() -> Registry:
    return Registry.discover()


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_that_is_not_here_says_why(name: str, registry: Registry) -> None:
    with pytest.raises(ConfigurationError, match=f"unknown pass '{name}' at") as raised:
        parse_text(f"builtin.module(func.func({name}))", registry)
    why, _ = raised.value.notes
    assert len(why) > 40
    assert raised.value.hint


@pytest.mark.parametrize("name", PASSES)
def test_so_does_a_pipeline_file(name: str, registry: Registry, tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text(
        '[pipeline]\nname = "own"\nsummary = "one pass more"\nextends = "O2"\n\n'
        '[[insert]]\nsegment = "tileas"\nafter = "tileas-assign-layouts"\n'
        f'passes = ["{name}"]\n'
    )
    request = Request("sm_90", pipeline=str(file))
    with pytest.raises(ConfigurationError, match=f"there is no pass '{name}'") as raised:
        build(resolve(load(request, registry), request, registry), registry)
    assert raised.value.notes
    assert raised.value.hint


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_that_is_not_here_is_explained(name: str, registry: Registry) -> None:
    work = registry.load("pass", CONVERSION)
    with pytest.raises(ConfigurationError) as raised:
        configured(work, f"pass '{CONVERSION}'", {name: "1"})
    assert any("ptxas" in t or "byte" in t for t in explanations(registry, raised.value.message))
