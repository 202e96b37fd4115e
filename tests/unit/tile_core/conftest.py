"""The toy plugin of `toys.py` as an importable module, a registry with it, and small helpers."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from tile_core.pipeline.build import Plan, build
from tile_core.pipeline.merge import merge
from tile_core.pipeline.resolve import Request, Resolved, resolve
from tile_core.pipeline.tables import Source
from tile_core.registry import Registry

HERE = Path(__file__).parent

MODULE = """
gpu.module @k {
  func.func @a(%x: i32) -> i32 {
    %c = arith.constant 0 : i32
    %y = arith.addi %x, %c : i32
    return %y : i32
  }
  func.func @b() { return }
}
"""


def _load_toys() -> ModuleType:
    if "tile_core_toys" not in sys.modules:
        spec = importlib.util.spec_from_file_location("tile_core_toys", HERE / "toys.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["tile_core_toys"] = module
        spec.loader.exec_module(module)
    return sys.modules["tile_core_toys"]


@pytest.fixture(scope="session")
def toys() -> ModuleType:
    return _load_toys()


@pytest.fixture(scope="session")
def registry(toys: ModuleType) -> Registry:
    return Registry.of(toys=toys)


@pytest.fixture
def module_text() -> str:
    return MODULE


@pytest.fixture(scope="session")
def resolved(registry: Registry) -> Callable[..., Resolved]:
    """A pipeline text, resolved: `resolved(text, target=..., options=..., pass_options=...)`."""

    def make(text: str, target: str = "sm_90", **values) -> Resolved:
        def read(name: str) -> Source:
            return Source(*registry.pipeline_text(name))

        request = Request(target, **values)
        return resolve(merge(Source("p.toml", text), read), request, registry)

    return make


@pytest.fixture(scope="session")
def planned(registry: Registry, resolved: Callable[..., Resolved]) -> Callable[..., Plan]:
    """A pipeline text as a plan."""
    return lambda text, **values: build(resolved(text, **values), registry)


@pytest.fixture
def write_pipeline(tmp_path: Path) -> Callable[[str], str]:
    """Write a pipeline file; its path."""

    def write(text: str, name: str = "p.toml") -> str:
        path = tmp_path / name
        path.write_text(text)
        return str(path)

    return write
