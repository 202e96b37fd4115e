"""Names, owners and loading."""

from __future__ import annotations

import types

import pytest

from tile_core.diagnostics import ConfigurationError
from tile_core.fingerprint import fingerprint
from tile_core.hookspecs import Lazy, LazyFrontend, hookimpl
from tile_core.inspection import problems_of_plugin
from tile_core.registry import Registry
from tile_core.target import Target


def plugin(**hooks) -> types.SimpleNamespace:
    """A module-like plugin whose hooks return fixed lists."""
    return types.SimpleNamespace(**{k: hookimpl(_fixed(items)) for k, items in hooks.items()})


def _fixed(items):
    def hook():
        return items

    return hook


def test_owners_and_objects(registry: Registry, toys) -> None:
    assert str(registry.owner("pass", "toy-mark")) == "toys 0"
    assert registry.owner("target", "sm_90").name == "core"
    assert registry.owner("pipeline", "O3").name == "core"
    assert registry.load("pass", "toy-mark") is toys.Mark
    assert registry.load("pass", "toy-mark") is toys.Mark
    assert registry.patterns("toy-mark") == [1]
    assert registry.patterns("other") == []


def test_unknown_names(registry: Registry) -> None:
    with pytest.raises(ConfigurationError) as caught:
        registry.load("pass", "toy-mrak")
    assert "there is no pass 'toy-mrak'" in str(caught.value)
    assert "did you mean 'toy-mark'?" in str(caught.value)
    with pytest.raises(ConfigurationError, match="GPU architecture sm_91 is not supported"):
        registry.target("sm_91")


@pytest.mark.parametrize(
    ("hook", "target", "words"),
    [
        ("tile_passes", "no_such_module:Pass", "ModuleNotFoundError"),
        ("tile_passes", "tile_core_toys:Nothing", "AttributeError"),
        ("tile_passes", "tile_core_toys:Backwards", "is not a subclass of"),
        ("tile_passes", "tile_core_toys:Mark", "calls itself 'toy-mark'"),
        ("tile_schedulers", "tile_core_toys:integer", "is not a class"),
        ("tile_schedulers", "tile_core_toys:Backwards", "calls itself 'toy-backwards'"),
        ("tile_targets", "tile_core_toys:Backwards", "is not a tile_core.target.Target"),
    ],
)
def test_objects_are_checked_when_loaded(toys, hook: str, target: str, words: str) -> None:
    registry = Registry.of(mine=plugin(**{hook: [Lazy("thing", target)]}))
    kind = {"tile_passes": "pass", "tile_schedulers": "scheduler", "tile_targets": "target"}[hook]
    with pytest.raises(ConfigurationError) as caught:
        registry.load(kind, "thing")
    assert words in str(caught.value)
    assert "mine 0" in str(caught.value)
    assert problems_of_plugin(registry, "mine")


def test_targets_of_plugins(toys, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = Target("sm_999", "sm_999a", 99, 1, 1)
    monkeypatch.setattr(toys, "MINE", mine, raising=False)
    registry = Registry.of(mine=plugin(tile_targets=[Lazy("sm_999", "tile_core_toys:MINE")]))
    assert registry.target("sm_999") is mine
    assert registry.target("sm_90").chip == "sm_90a"


def test_the_longest_magic_wins() -> None:
    registry = Registry.of(
        mine=plugin(
            tile_frontends=[
                LazyFrontend("short", "x:y", magic=b"AB"),
                LazyFrontend("long", "x:y", magic=b"ABC"),
                LazyFrontend("none", "x:y"),
            ]
        )
    )
    found = [registry.frontend_for(data) for data in (b"ABCD", b"ABD")]
    assert [entry.lazy.name for entry in found if entry is not None] == ["long", "short"]
    assert registry.frontend_for(b"B") is None


def test_the_toy_plugin_is_well_formed(registry: Registry) -> None:
    assert problems_of_plugin(registry, "toys") == []


def test_the_fingerprint_follows_the_plugins(registry: Registry) -> None:
    alone = fingerprint(Registry.of())
    assert alone == fingerprint(Registry.of())
    assert len(alone) == 16
    assert fingerprint(registry) != alone


def test_a_target_may_be_named_by_its_chip() -> None:
    registry = Registry.of()
    assert registry.target("sm_90a") is registry.target("sm_90")
    with pytest.raises(ConfigurationError, match="sm_80a is not supported"):
        registry.target("sm_80a")
