"""The host object of a cubin, from the recipes in its PTX."""

from __future__ import annotations

from tile_core.diagnostics import CompileError
from tile_core.elf import Elf
from tile_core.target import Target
from tile_nvptx.emit import map_notes
from tile_nvptx.emit.pool import POOL, WorkerFailure
from tile_nvptx.emit.ptx_parameters import parameters_of
from tile_nvptx.host.module import host_module

HOST_TRIPLES = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu")


def host_object(ptx: str, target: Target, triple: str, timeout: float) -> bytes | None:
    """The object for `triple` whose callbacks fill in the tensor maps of the kernels of `ptx`.

    None if no kernel takes any.

    Raises:
        CompileError: a recipe does not fit its kernel, or LLVM fails.
    """
    kernels = map_notes.recipes_of(ptx, "ptx")
    if not kernels:
        return None
    placed = parameters_of(ptx, target.parameter_base)
    offsets = {name: {i: p.offset for i, p in enumerate(placed.get(name, ()))} for name in kernels}
    for name, recipes in kernels.items():
        hidden = {i for i, p in enumerate(placed.get(name, ())) if p.hidden}
        if {recipe.parameter for recipe in recipes} != hidden:
            raise CompileError(f"kernel {name}: hidden parameters and recipes of maps differ")
    request = {"host-ir": host_module(kernels, offsets), "triple": triple}
    try:
        return POOL.ask(request, timeout)["object"]
    except WorkerFailure as failure:
        message = f"no host code for the tensor maps: {failure.message}"
        raise CompileError(message, notes=failure.notes) from None


def check_parameters(cubin: bytes, ptx: str, target: Target) -> None:
    """That ptxas placed the parameters where the host code writes the maps.

    Raises:
        CompileError: it did not.
    """
    placed = parameters_of(ptx, target.parameter_base)
    elf = Elf(cubin)
    for name in map_notes.recipes_of(ptx, "ptx"):
        last = placed[name][-1]
        wanted = target.parameter_base, last.offset + last.size
        found = elf.parameter_bank(name)
        if found != wanted:
            raise CompileError(
                f"kernel {name}: ptxas places parameters at {found}, host code at {wanted}",
                hint="host code is for the placement of ptxas 13.5: say --ptxas=FILE",
            )
