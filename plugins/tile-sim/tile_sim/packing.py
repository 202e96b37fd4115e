"""Parameters of a launch as the CUDA driver takes them: an array of pointers to each."""

from __future__ import annotations

import ctypes

from tile_sim.module import Module
from tile_sim.program.layout import parameter_offsets, size_of


def gathered_parameters(module: Module, name: str, address: int) -> bytes:
    """The bytes of a kernel's visible parameters, laid out as it declares them.

    `address` is that of the array of pointers.
    """
    program = module.program(name)
    count = len(program.entry.params if module.hidden is None else program.visible)
    raw = bytearray(parameter_offsets(program.entry.params[:count])[1])
    pointers = ctypes.cast(address, ctypes.POINTER(ctypes.c_void_p))
    for i, (param, start) in enumerate(
        zip(program.entry.params[:count], program.param_offsets[:count], strict=True)
    ):
        size = size_of(param)
        raw[start : start + size] = ctypes.string_at(pointers[i], size)
    return bytes(raw)
