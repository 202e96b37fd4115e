"""The plugin guide: its plugin is put together from the code blocks, and works."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path

import pytest

import tile_core
from tile_core.inspection import problems_of_plugin
from tile_core.opt import OptJob, Selection, optimize
from tile_core.plugins import Origin, Plugin
from tile_core.registry import KINDS, Registry

ROOT = Path(__file__).parents[3]
BLOCK = re.compile(r"```(?:python|toml)\n# (\S+\.(?:py|toml))\n(.*?)```", re.DOTALL)
ODD = ROOT / "examples" / "bytecode" / "attention_f16.tileirbc"  # its starts are
KERNEL = ROOT / "examples" / "bytecode" / "saxpy_loop_f32.tileirbc"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("guide")
    for name, text in BLOCK.findall((ROOT / "docs" / "plugin-guide.md").read_text()):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    (folder / "my_plugin" / "__init__.py").write_text("")
    return folder


@pytest.fixture(scope="module")
def registry(written: Path):
    sys.path.insert(0, str(written))
    try:
        module = importlib.import_module("my_plugin.plugin")
        installed = Registry.discover()
        yield Registry([*installed.plugins, Plugin("mine", module, Origin("my-plugin", "0"))])
    finally:
        sys.path.remove(str(written))


def test_every_block_loads(registry: Registry) -> None:
    assert problems_of_plugin(registry, "mine") == []
    brought = {e.kind for kind in KINDS for e in registry.entries(kind) if e.plugin.name == "mine"}
    assert brought == set(KINDS) - {"dialect", "patterns"}


def test_the_pipeline_compiles(registry: Registry, capsys: pytest.CaptureFixture[str]) -> None:
    artifact = tile_core.compile(
        KERNEL.read_bytes(), "sm_90", opt_level=2, pipeline="mine", emit="ptx",
        registry=registry, instrumentations=["mine-names"],
        options={"scheduler": "mine-serial", "layout-strategy": "mine-plain"},
    )  # fmt: skip
    assert "count/mine-count-loops" in capsys.readouterr().out
    assert ("passed", "1 loops") in [(r.kind, r.message) for r in artifact.remarks]
    assert ".reqntid 256" in str(artifact.output)


def test_messages_and_views(registry: Registry) -> None:
    from tile_core.explain import explanations
    from tile_core.explore.record import Exploration

    (text,) = [t for t in explanations(registry, "3 loops") if "mine-count-loops" in t]
    assert "`minimum` leaves out" in text
    explored = Exploration("k", b"", "sm_90", {}, registry, {"input": "scf.for scf.for"})
    (view,) = registry.load("view", "mine-loops")(explored)
    assert view.text == "input: 2"


GENERATE = "tileas-generate-schedule-constraints"


def test_parts_and_machine_models_take_effect(registry: Registry) -> None:
    def starts(**options: object) -> list[int]:
        """Start cycles of all operations in a loop that may overlap its iterations."""
        text = tile_core.compile(
            ODD.read_bytes(), "sm_90", opt_level=3, emit=f"mlir:{GENERATE}",
            registry=registry, options={"scheduler": "cost"},
            pass_options={
                f"{GENERATE}.{key.replace('_', '-')}": value
                for key, value in {"max_stages": 0, "heed_occupancy": False, **options}.items()
            },
        ).output  # fmt: skip
        assert isinstance(text, str)
        _, _, loop = text.partition("scf.for")
        body, _, _ = loop.partition("nv_tileas.ii")
        return [int(found) for found in re.findall(r"nv_tileas.start = (\d+)", body)]

    assert any(start % 2 for start in starts())
    assert not any(start % 2 for start in starts(parts="mine-even"))
    assert starts(machine_model="mine-narrow")


def test_the_front_end_reads(registry: Registry) -> None:
    found = tile_core.compile(b"MINEmodule {}", "sm_99", emit="tileir", registry=registry)
    assert str(found.output).startswith("module {")


def test_the_test_of_the_guide(registry: Registry, written: Path) -> None:
    module = importlib.import_module("my_plugin.plugin")
    alone = Registry.of(mine=module)
    text = "func.func @f() { return }"
    job = OptJob(alone, Selection(passes="mine-count-loops{minimum=0}"))
    assert [r.message for r in optimize(text, 0, job).artifact.remarks] == ["0 loops"]
    scope: dict[str, object] = {}
    exec((written / "test_my_plugin.py").read_text(), scope)
    scope["test_loops_are_counted"]()  # type: ignore[operator]


def test_compiling_from_python(registry: Registry, written: Path) -> None:
    scope: dict[str, object] = {}
    exec((written / "compile_it.py").read_text(), scope)
    assert ".version" in scope["ptx_of"](str(KERNEL), "sm_90")  # type: ignore[operator]
