"""Finding plugins: entry points of fake distributions on sys.path."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path

import importlib_metadata
import pytest

from tile_core import plugins
from tile_core.diagnostics import ConfigurationError
from tile_core.hookspecs import SPEC_VERSION, Lazy, LazyFrontend
from tile_core.registry import KINDS, Registry

Install = Callable[..., None]

HEAD = """\
from tile_core.hookspecs import Lazy, LazyEmitter, hookimpl
TILE_SPEC_VERSION = 1
"""
SCHEDULER = HEAD + '@hookimpl\ndef tile_schedulers():\n    return [Lazy("{0}", "nowhere:It")]\n'


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """`install(distribution, version, module text, entry point name)`; replaces what is real."""
    monkeypatch.syspath_prepend(str(tmp_path))
    installed: list[str] = []

    def make(distribution: str, version: str, text: str, point: str = "") -> None:
        module = f"fake_{distribution.replace('-', '_')}_plugin"
        (tmp_path / f"{module}.py").write_text(text)
        info = tmp_path / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
        )
        (info / "entry_points.txt").write_text(
            f"[tile.plugins]\n{point or distribution} = {module}\n"
        )
        installed.append(distribution)
        monkeypatch.delitem(sys.modules, module, raising=False)

    real = importlib_metadata.entry_points

    def only_fakes(**selection):
        return [p for p in real(**selection) if p.dist.name in installed]

    monkeypatch.setattr(importlib_metadata, "entry_points", only_fakes)
    return make


def test_plugins_are_found_in_order_of_name(install: Install) -> None:
    install("zz", "1.0", SCHEDULER.format("z"))
    install("aa", "2.0", SCHEDULER.format("a"))
    registry = Registry.discover()
    assert [str(p) for p in registry.plugins[1:]] == ["aa 2.0", "zz 1.0"]
    assert registry.names("scheduler") == ["a", "z"]
    assert str(registry.owner("scheduler", "z")) == "zz 1.0"


EVERY_KIND = (
    HEAD
    + """
from tile_core.hookspecs import LazyFrontend, LazyPatterns
@hookimpl
def tile_frontends():
    asked = Lazy("empty", "m:empty")
    return [LazyFrontend("f", "m:f", "reads", b"\\0MAGIC", ("word", "other"), asked)]
@hookimpl
def tile_emitters():
    return [LazyEmitter("e", "m:e", consumes="mlir", produces="x", tools=Lazy("t", "m:t"))]
@hookimpl
def tile_patterns():
    return [LazyPatterns("p", "m:p", extends="some-pass")]
"""
)


def test_what_plugins_register_is_remembered(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second time nobody is asked, and the answer is the same."""
    install("all", "1.0", EVERY_KIND)
    first = Registry.discover()
    monkeypatch.setattr(plugins, "plugin_manager", _not_called)
    again = Registry.discover()
    assert again is not first
    assert again.plugins == first.plugins
    for kind in KINDS:
        assert again.entries(kind) == first.entries(kind), kind
    (frontend,) = again.entries("frontend")[-1:]
    assert isinstance(frontend.lazy, LazyFrontend)
    assert frontend.lazy.empty == Lazy("empty", "m:empty")
    assert again.plugins[1].module.__name__ == "fake_all_plugin"
    assert again.plugins[1].package == "fake_all_plugin"


def test_a_plugin_that_has_changed_is_asked_again(install: Install, tmp_path: Path) -> None:
    install("one", "1.0", SCHEDULER.format("before"))
    assert Registry.discover().names("scheduler") == ["before"]
    (tmp_path / "fake_one_plugin.py").write_text(SCHEDULER.format("behind it"))
    del sys.modules["fake_one_plugin"]
    importlib.invalidate_caches()
    assert Registry.discover().names("scheduler") == ["behind it"]


def test_references_of_a_plugins_own_making_are_asked_for_each_time(install: Install) -> None:
    text = "class Mine(Lazy): pass\n@hookimpl\ndef tile_passes():\n    return [Mine('a', 'b:c')]\n"
    install("own", "1.0", HEAD + text)
    for _ in range(2):
        (entry,) = Registry.discover().entries("pass")
        assert type(entry.lazy).__name__ == "Mine"


def _not_called(*_arguments: object) -> None:
    raise AssertionError("plugins are asked though nothing has changed")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import does_not_exist_anywhere", ["bad 3.1", "ModuleNotFoundError", "does_not_exist"]),
        ("raise SystemError('boom')", ["bad 3.1", "SystemError: boom"]),
        ("x = 1", ["bad 3.1", "declares no TILE_SPEC_VERSION"]),
        (
            f"TILE_SPEC_VERSION = {SPEC_VERSION + 1}",
            ["bad 3.1", f"plugin interface {SPEC_VERSION + 1}, and this is {SPEC_VERSION}"],
        ),
    ],
)
def test_plugins_that_cannot_be_used(install: Install, text: str, words: list[str]) -> None:
    install("bad", "3.1", text)
    install("good", "1.0", SCHEDULER.format("s"))
    with pytest.raises(ConfigurationError) as caught:
        Registry.discover()
    for word in [*words, "--disable-plugin bad"]:
        assert word in str(caught.value)
    assert Registry.discover(["bad"]).names("scheduler") == ["s"]
    lenient = Registry.discover(strict=False)
    assert lenient.names("scheduler") == ["s"]
    assert [b.name for b in lenient.broken] == ["bad"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("@hookimpl\ndef tile_nothing():\n    return []", ["bad 3.1", "tile_nothing"]),
        ("@hookimpl\ndef tile_passes(registry):\n    return []", ["bad 3.1", "registry"]),
        ("@hookimpl\ndef tile_passes():\n    return [1]", ["bad 3.1", "returned 1", "no Lazy"]),
        ("@hookimpl\ndef tile_passes():\n    return None", ["bad 3.1", "TypeError"]),
        (
            '@hookimpl\ndef tile_emitters():\n    return [Lazy("a", "b:c")]',
            ["bad 3.1", "no LazyEmitter"],
        ),
        ("@hookimpl\ndef tile_passes():\n    raise ValueError('x')", ["bad 3.1", "ValueError: x"]),
    ],
)
def test_hooks_are_checked(install: Install, body: str, words: list[str]) -> None:
    install("bad", "3.1", HEAD + body + "\n")
    with pytest.raises(ConfigurationError) as caught:
        Registry.discover()
    for word in words:
        assert word in str(caught.value)
    lenient = Registry.discover(strict=False)
    assert [b.name for b in lenient.broken] == ["bad"]
    assert [p.name for p in lenient.plugins] == ["core"]


def test_a_name_registered_twice(install: Install) -> None:
    install("one", "1.0", SCHEDULER.format("same"))
    install("two", "2.0", SCHEDULER.format("same"))
    with pytest.raises(ConfigurationError) as caught:
        Registry.discover()
    assert "two plugins register the scheduler 'same': one 1.0 and two 2.0" in str(caught.value)
    assert str(Registry.discover(["one"]).owner("scheduler", "same")) == "two 2.0"


def test_an_entry_point_used_twice(install: Install) -> None:
    install("one", "1.0", SCHEDULER.format("a"), "shared")
    install("two", "2.0", SCHEDULER.format("b"), "shared")
    with pytest.raises(ConfigurationError) as caught:
        Registry.discover()
    assert "two plugins are called 'shared': one of one 1.0, one of two 2.0" in str(caught.value)
    assert Registry.discover(["two"]).names("scheduler") == ["a"]


def test_a_target_of_the_core_cannot_be_taken(install: Install) -> None:
    body = '@hookimpl\ndef tile_targets():\n    return [Lazy("sm_90", "nowhere:It")]\n'
    install("bad", "1.0", HEAD + body)
    with pytest.raises(ConfigurationError, match="register the target 'sm_90': tilec"):
        Registry.discover()


def test_disabling_what_is_not_there(install: Install) -> None:
    install("present", "1.0", SCHEDULER.format("s"))
    with pytest.raises(ConfigurationError) as caught:
        Registry.discover(["presnt"])
    assert "no plugin 'presnt'" in str(caught.value)
    assert "did you mean 'present'?" in str(caught.value)
