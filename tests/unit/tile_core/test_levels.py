"""The pipelines of the -O levels and the listings: what they promise about each other."""

from __future__ import annotations

from pathlib import Path

import pytest
import tomli

import tile_core
from tile_core.artifact import Stage
from tile_core.cli.main import run
from tile_core.diagnostics import ConfigurationError
from tile_core.pipeline.json_schema import rejected_by_schema
from tile_core.pipeline.merge import Merged
from tile_core.pipeline.resolve import Request, load, resolve, unconditional
from tile_core.pipeline.show import flat_list
from tile_core.pipeline.validate import problems_of
from tile_core.registry import Registry, default_registry
from tile_core.target import builtin_targets

LEVELS = ("O0", "O1", "O2", "O3")


@pytest.fixture(scope="module")
def installed() -> Registry:
    return default_registry()


def merged(registry: Registry, name: str) -> Merged:
    return load(Request("sm_90", None, name), registry)


@pytest.mark.parametrize("level", LEVELS)
def test_levels_are_valid(installed: Registry, level: str) -> None:
    request = Request("sm_90", None, level)
    problems = problems_of(load(request, installed), request, installed)
    assert [p.render() for p in problems] == []


@pytest.mark.parametrize("name", [*LEVELS, *(f"tileir-listing-o{n}" for n in range(4))])
def test_pydantic_accepts_the_files(installed: Registry, name: str) -> None:
    _, text = installed.pipeline_text(name)
    assert rejected_by_schema(tomli.loads(text)) is None


@pytest.mark.parametrize(("lower", "upper"), [("O0", "O1"), ("O1", "O2"), ("O2", "O3")])
def test_each_level_holds_the_one_below_in_order(
    installed: Registry, lower: str, upper: str
) -> None:
    below = [(s.name, e.name) for s in merged(installed, lower).segments for e in s.entries]
    above = iter((s.name, e.name) for s in merged(installed, upper).segments for e in s.entries)
    assert all(entry in above for entry in below)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("target", sorted(builtin_targets()))
def test_levels_resolve_for_every_target(installed: Registry, level: str, target: str) -> None:
    request = Request(target, int(level[1]), None)
    found = resolve(load(request, installed), request, installed)
    assert found.options["opt-level"] == int(level[1])
    assert [call.name for call in found.emitters] == ["llvm-ir", "ptx", "cubin"]


@pytest.mark.parametrize("level", LEVELS)
def test_options_reach_the_passes_that_have_them(installed: Registry, level: str) -> None:
    request = Request("sm_90", None, level)
    found = unconditional(load(request, installed), request, installed)
    for call in found.passes():
        if not call.name.startswith("mlir:"):
            same = set(installed.load("pass", call.name).options()) & set(found.options)
            assert same <= set(call.options), f"{call.name} does not get {same}"


@pytest.mark.parametrize("level", LEVELS)
def test_resolving_is_deterministic(installed: Registry, level: str) -> None:
    request = Request("sm_90", None, level)
    texts = {flat_list(resolve(load(request, installed), request, installed)) for _ in range(3)}
    assert len(texts) == 1


def test_what_was_compiled_before_leaves_no_trace(installed: Registry) -> None:
    folder = Path(__file__).parents[3] / "examples" / "bytecode"
    kernels = [
        (folder / f"{name}.tileirbc").read_bytes() for name in ("softmax_f32", "saxpy_loop_f16")
    ]

    def compiled(order: tuple[int, ...], registry: Registry) -> dict[int, Stage]:
        return {
            i: tile_core.compile(kernels[i], "sm_90", emit="llvm", registry=registry).output
            for i in order
        }

    # A registry of its own has MLIR contexts of its own.
    fresh = [compiled((i,), Registry.discover())[i] for i in (0, 1)]
    reused = Registry.discover()
    for order in ((0, 1), (1, 0), (0, 1)):
        assert compiled(order, reused) == dict(enumerate(fresh))


# The pass lists that the original prints, per level, each on top of the one before.
LISTED = {
    0: [],
    1: ["convert-cudatile-to-tileaa", "snapshot:after-frontend", "tileir-insert-debug-scope",
        "canonicalize"],
    2: ["convert-tileaa-to-tileas", "tileir-emit-host-wrapper", "convert-tileas-to-llvm", "cse",
        "snapshot:tileas-llvm-boundary", "convert-tileas-to-nvgpu"],
    3: ["tileir-verify-ops-analysis", "host-device-assert-enable", "tileir-insert-debug-scope",
        "tileir-gpu-module-prepare", "canonicalize", "cse", "test-convert-to-llvm",
        "tileir-legalize-llvm-kernel", "tileir-finalize-llvm-kernel", "convert-to-llvm",
        "canonicalize", "convert-nvgpu-to-nvvm", "convert-vector-to-llvm",
        "convert-math-to-funcs", "arith-expand", "convert-memref-to-llvm",
        "synthesize-debug-info-scopes", "convert-target-to-nvvm", "canonicalize", "cse",
        "tileir-post-nvvm-finalize"],
}  # fmt: skip


@pytest.mark.parametrize("level", range(4))
def test_listings(installed: Registry, level: int) -> None:
    name = f"tileir-listing-o{level}"
    request = Request("sm_90", None, name)
    found = resolve(load(request, installed), request, installed)
    wanted = [name for below in range(level + 1) for name in LISTED[below]]
    assert [call.name for call in found.passes()] == wanted


def test_the_unspecialized_pipeline_is_listed_where_it_runs(installed: Registry) -> None:
    options = {"pipeline-strategy": "unspecialize"}
    request = Request("sm_90", None, "tileir-listing-o3", options)
    found = resolve(load(request, installed), request, installed)
    names = [call.name for call in found.passes()]
    at = names.index("unspecialized-pipeline")
    assert names[at - 1 : at + 2] == ["cse", "unspecialized-pipeline", "test-convert-to-llvm"]


def test_full_debug_information_is_for_unoptimized_code_only(installed: Registry) -> None:
    wanted = {"device-debug": True}
    plain = Request("sm_90", 0, None, options=wanted)
    assert resolve(load(plain, installed), plain, installed).options["device-debug"]
    for level in (1, 2, 3):
        request = Request("sm_90", level, None, options=wanted)
        with pytest.raises(ConfigurationError) as caught:
            resolve(load(request, installed), request, installed)
        assert caught.value.exit_code == 2
        assert caught.value.message == (
            "optimized debugging is not supported, change optimization level to 0 or disable "
            "full debug info"
        )


@pytest.mark.parametrize(
    ("flags", "text"),
    [((), ""), (("--lineinfo",), ".loc"), (("-g", "-O0"), ".target sm_90a, debug")],
)
def test_flags_of_debug_information(flags: tuple[str, ...], text: str, tmp_path: Path) -> None:
    source = Path(__file__).parents[3] / "examples" / "bytecode" / "vector_add_f32.tileirbc"
    target = tmp_path / "k.ptx"
    common = ("compile", str(source), "--gpu-name", "sm_90", "--emit", "ptx", "-o", str(target))
    assert run([*common, *flags]) == 0
    made = target.read_text()
    assert (text in made) if text else (".loc" not in made and "debug" not in made)
    assert run([*common, "-g"]) == 2
