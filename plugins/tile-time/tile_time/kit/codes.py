"""Code for the kit: programs through this compiler and through tileiras, PTX through ptxas."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tile_nvptx.emit import toolchain
from tile_nvptx.emit.large_shared import without_large_arrays
from tile_nvptx.emit.ptxas import assemble

from tile_core.api import compile as compile_program
from tile_core.target import builtin_targets
from tile_time.kit.build import Code

_ENTRY = re.compile(r"\.entry\s+([\w$]+)")
_TARGET = re.compile(r"^\s*\.target\s+(sm_\d+[af]?)", re.MULTILINE)
_SECONDS = 120.0


def compiled(
    bytecode: bytes, target: str, level: int, options: Mapping[str, Any] | None = None
) -> Code:
    """A program's only kernel by this compiler; its PTX stays in the cubin.

    Raises TileError for what cannot be compiled.
    """
    made = compile_program(
        bytecode, target, opt_level=level, options={"lineinfo": "true", **(options or {})}
    )
    entry = _ENTRY.search(str(made.stage("ptx")))
    assert entry is not None
    assert made.cubin is not None
    return Code(made.cubin, entry[1])


def by_tileiras(bytecode: bytes, target: str) -> Code:
    """The same by NVIDIA's compiler. Raises TileError where it is not there, or refuses."""
    from tile_sim.peer import tileiras

    cubin = tileiras.find().compile(bytecode, target)
    entry = _ENTRY.search(cubin.ptx)
    assert entry is not None
    return Code(cubin.data, entry[1])


def assembled(
    ptx: str, block: tuple[int, int, int], cluster: tuple[int, int, int] | None = None
) -> Code:
    """A kernel in PTX. Raises CompileError for what ptxas refuses."""
    entry, target = _ENTRY.search(ptx), _TARGET.search(ptx)
    assert entry is not None
    assert target is not None
    about = builtin_targets()[target[1].rstrip("af")]
    static = about.static_shared if target[1][-1] in "af" else 48 * 1024
    large = without_large_arrays(ptx, static)
    ptxas = toolchain.require("ptxas").path
    made = assemble(large.ptx, ptxas, ["-v", "-arch", target[1], "-lineinfo"], _SECONDS)
    return Code(made.cubin, entry[1], block, large.sizes.get(entry[1], 0), cluster)
