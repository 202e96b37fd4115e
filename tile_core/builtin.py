"""What the framework itself registers, through the same hooks as any plugin."""

from __future__ import annotations

from collections.abc import Iterable

from tile_core.hookspecs import SPEC_VERSION, Lazy, hookimpl

TILE_SPEC_VERSION = SPEC_VERSION

_LEVELS = ("O0", "O1", "O2", "O3")


@hookimpl
def tile_pipelines() -> Iterable[Lazy]:
    for level in _LEVELS:
        yield Lazy(level, f"tile_pipelines:{level}.toml", f"what -{level} runs")
    for level in _LEVELS:
        name = f"tileir-listing-{level.lower()}"
        yield Lazy(name, f"tile_pipelines:{name}.toml", f"the original's pass list at -{level}")


@hookimpl
def tile_machines() -> Iterable[Lazy]:
    for name in ("a100", "h100-sxm", "h200", "b200", "rtx5090"):
        yield Lazy(name, f"tile_core.machines:{name}.toml", "numbers of a GPU")


@hookimpl
def tile_checks() -> Iterable[Lazy]:
    yield Lazy("core", "tile_core.doctor:check_core", "Python, MLIR's bindings, plugins")


@hookimpl
def tile_cli_commands() -> Iterable[Lazy]:
    home = "tile_core.cli"
    yield Lazy("compile", f"{home}.compile:compile_", "Compile a program to a cubin, or part-way")
    yield Lazy("opt", f"{home}.opt:opt", "Run passes over textual MLIR")
    yield Lazy("pipeline", f"{home}.pipeline:pipeline", "Show, check and compare pipelines")
    yield Lazy("plugins", f"{home}.plugins:plugins", "List, check and create plugins")
    yield Lazy("cache", f"{home}.cache:cache", "List, trim and empty the artifact cache")
    yield Lazy("serve", f"{home}.serve:serve", "Keep the compiler in memory, for others to use")
    yield Lazy("explore", f"{home}.explore:explore", "A page that shows a compilation")
    yield Lazy("lsp", f"{home}.lsp:lsp", "A language server for editors")
    yield Lazy("diff", f"{home}.diff:diff", "Compare a stage of two compilations")
    yield Lazy("explain", f"{home}.explain:explain", "What a name, message or code means")
    yield Lazy("doctor", f"{home}.doctor:doctor", "What is installed, and what is missing")
