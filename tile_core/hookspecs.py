"""Every extension point of tilec, on one screen.

A plugin is a module named by an entry point of group `tile.plugins`. It declares
`TILE_SPEC_VERSION = 1` and implements any of these hooks with `@hookimpl`. Hooks return *lazy
references*: a name and where its object lives, so that listing what is installed imports
neither MLIR nor the code behind the names. Names are unique over all plugins; a clash is an
error that names both owners.
"""

# pyright: reportReturnType=false
# (specifications have no bodies)

from __future__ import annotations

from collections.abc import Iterable

import pluggy

from tile_core.references import Lazy, LazyEmitter, LazyFrontend, LazyPatterns

__all__ = ["Lazy", "LazyEmitter", "LazyFrontend", "LazyPatterns", "hookimpl"]

PROJECT = "tile"
ENTRY_POINT_GROUP = "tile.plugins"

#: Version of this module's contract. It rises when a hook or the object behind one changes
#: incompatibly; a plugin made for another version is refused by name.
SPEC_VERSION = 1

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def tile_dialects() -> Iterable[Lazy]:
    """MLIR dialects: `target` is `load()`, called once per context with it current."""


@hookspec
def tile_passes() -> Iterable[Lazy]:
    """Passes: `target` is a subclass of `tile_core.passes.Pass` of the same name.

    A program that has neither functions nor globals is given to no pass, unless somebody asks for
    its stages or watches them."""


@hookspec
def tile_patterns() -> Iterable[LazyPatterns]:
    """Conversion rules added to the conversion pass named by `extends`."""


@hookspec
def tile_schedulers() -> Iterable[Lazy]:
    """Schedulers: `target` is a class with `name` and `schedule(graph, model)`."""


@hookspec
def tile_schedule_parts() -> Iterable[Lazy]:
    """Parts of schedulers that are made of some: `target` is a class with `name` and `kind`.

    `kind` is "arm", "gate" or "cost"; `tile_sched.placement` says what each of them does.
    """


@hookspec
def tile_machine_models() -> Iterable[Lazy]:
    """Resources and times for schedulers: `target` is "package:file.toml"."""


@hookspec
def tile_layout_strategies() -> Iterable[Lazy]:
    """Layout strategies: `target` is a class with `name` and `assign(graph, model)`."""


@hookspec
def tile_targets() -> Iterable[Lazy]:
    """GPU targets: `target` is a `tile_core.target.Target`."""


@hookspec
def tile_machines() -> Iterable[Lazy]:
    """GPUs of the timing model: `target` is "package:file.toml", see `tile_core.machines`."""


@hookspec
def tile_pipelines() -> Iterable[Lazy]:
    """Pipeline files: `target` is "package:file.toml", read as a package resource."""


@hookspec
def tile_instrumentations() -> Iterable[Lazy]:
    """Instrumentations: `target` is a subclass of `tile_core.pipeline.Instrumentation`."""


@hookspec
def tile_frontends() -> Iterable[LazyFrontend]:
    """Readers of input formats, chosen by how the input starts."""


@hookspec
def tile_text_checks() -> Iterable[Lazy]:
    """Rules for MLIR that is read as text, beyond those of MLIR's own verifier.

    The object is `check(module: ir.Module) -> None`, which raises `InputError`.
    """


@hookspec
def tile_emitters() -> Iterable[LazyEmitter]:
    """Steps from MLIR to LLVM IR, PTX and cubin; the pipeline file orders them."""


@hookspec
def tile_checks() -> Iterable[Lazy]:
    """Checks of `tilec doctor`: `target` is `check() -> Iterable[tile_core.doctor.Finding]`."""


@hookspec
def tile_gpu_checks() -> Iterable[Lazy]:
    """Checks of `tilec doctor --gpu`.

    `target` is `check(driver: str, registry) -> tile_core.doctor.GpuAnswer`, where `driver` names
    a Python module with the functions of the CUDA driver, as `cuda.bindings.driver` has them.
    """


@hookspec
def tile_views() -> Iterable[Lazy]:
    """What `tilec explore` shows beside stages, passes and remarks.

    The object is `view(explored: Exploration) -> Iterable[View]` (`tile_core.explore.record`).
    """


@hookspec
def tile_messages() -> Iterable[Lazy]:
    """What errors and remarks mean, for `tilec explain` and the documentation.

    `target` is "package:file.toml" with tables `[[message]]` of `text`, `why` and `do`.
    """


@hookspec
def tile_cli_commands() -> Iterable[Lazy]:
    """Verbs of `tilec`: `target` is a `click.Command`."""
