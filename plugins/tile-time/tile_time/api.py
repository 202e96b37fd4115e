"""`tile_sim.time`: the model from Python."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tile_core.machines import Machine, find_machine, machines_of
from tile_core.registry import Registry, default_registry
from tile_time.result import Result

Dim = tuple[int, int, int]
_PTX = re.compile(rb"^[ \t]*\.version[ \t]+\d", re.MULTILINE)


@dataclass(frozen=True)
class Program:
    """PTX, and what fills its hidden parameters (tensor maps), as host code does at a launch."""

    name: str
    ptx: str
    hidden: Any = None


def time(
    program: bytes | str,
    gpu: str | Machine = "h100",
    *,
    grid: int | Sequence[int],
    args: Sequence[Any] = (),
    block: int | Sequence[int] | None = None,
    cluster: int | Sequence[int] | None = None,
    shared_bytes: int = 0,
    entry: str | None = None,
    with_shape: bool = False,
    warm: bool = False,
    opt_level: int | None = None,
    pipeline: str | None = None,
    options: Mapping[str, Any] | None = None,
    pass_options: Mapping[str, Any] | None = None,
    registry: Registry | None = None,
) -> Result:
    """How long a launch of a kernel takes on a GPU, by the model of docs/timing.md.

        result = tile_sim.time(bytecode, "h100", grid=(32, 32), args=[a, b, c], with_shape=True)
        print(result.us, result.binds)

    Args:
        program: TileIR bytecode or MLIR (compiled for the GPU), PTX text, or a cubin that holds
            its PTX.
        gpu: a machine, or a name such as "b200".
        args: as for `tile_sim.Module.launch`; arrays are used, and changed, as the kernel does.
        with_shape: pass arrays as cuTile does: address, shape, strides.
        warm: what the kernel reads is in L2 when it starts, as far as it fits.
        opt_level, pipeline, options, pass_options: of the compiler, for bytecode and MLIR.

    Raises:
        ConfigurationError: there is no such GPU; names are suggested.
        SimError: what is no PTX, or what the kernel does wrong.
        TileError: from the compiler, from ptxas, or that the launch is too large for the model.
    """
    from tile_sim.arguments import with_shape as flattened

    from tile_time.model import load_kernel, time_kernel

    registry = registry or default_registry()
    machine = find_machine(gpu, machines_of(registry)) if isinstance(gpu, str) else gpu
    chosen = {"opt_level": opt_level, "pipeline": pipeline, "options": options,
              "pass_options": pass_options}  # fmt: skip
    found = program_of(program, machine, registry, **chosen)
    kernel = load_kernel(found.ptx, machine, entry, found.hidden)
    values = flattened(list(args)) if with_shape else args
    return time_kernel(
        kernel, extent(grid), None if block is None else extent(block), values,
        shared_bytes=shared_bytes, cluster=None if cluster is None else extent(cluster), warm=warm,
    )  # fmt: skip


def program_of(
    data: bytes | str, machine: Machine, registry: Registry | None = None, name: str = "program",
    **chosen: Any,
) -> Program:  # fmt: skip
    """The PTX of an input of any kind.

    Raises:
        UsageError: a cubin without PTX.
        TileError: from the compiler.
    """
    raw = data.encode() if isinstance(data, str) else bytes(data)
    if raw[:4] == b"\x7fELF":
        return of_cubin(name, raw)
    if name.endswith(".ptx") or _PTX.search(raw):
        return Program(name, raw.decode("utf-8", "replace"))
    return compiled(raw, machine, registry, name, **chosen)


def of_cubin(name: str, data: bytes) -> Program:
    """The PTX that a cubin keeps, with what fills its hidden parameters."""
    from tile_sim.peer import Cubin

    from tile_core.diagnostics import UsageError

    cubin = Cubin(data)
    if not cubin.has_ptx:
        raise UsageError(
            f"the cubin '{name}' holds no PTX, and the simulator runs no SASS",
            hint="compile it with --lineinfo, or give the program that it was made from",
        )
    return Program(name, cubin.ptx, cubin.load().hidden)


def compiled(
    data: bytes, machine: Machine, registry: Registry | None, name: str, *,
    opt_level: int | None = None, pipeline: str | None = None,
    options: Mapping[str, Any] | None = None, pass_options: Mapping[str, Any] | None = None,
) -> Program:  # fmt: skip
    """A program through this compiler; the cubin is made where maps are hidden parameters."""
    from tile_core.api import compile as compile_program

    given = dict(options or {}) if pipeline is not None else {"lineinfo": "true", **(options or {})}
    made = compile_program(
        data, machine.target, opt_level=opt_level, pipeline=pipeline, options=given,
        pass_options=dict(pass_options or {}), emit="cubin", registry=registry, name=name,
    )  # fmt: skip
    ptx = str(made.stage("ptx"))
    hidden = of_cubin(name, made.cubin or b"").hidden if ".hidden" in ptx else None
    return Program("tilec", ptx, hidden)


def extent(value: int | Sequence[int]) -> Dim:
    """One to three numbers as (x, y, z)."""
    numbers = (value,) if isinstance(value, int) else tuple(int(n) for n in value)
    x, y, z = (*numbers, *[1] * (3 - len(numbers)))
    return x, y, z
