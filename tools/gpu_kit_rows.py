"""What the kit times: rows of benchmarks/speed_rows.py, and what frameworks do of the same work."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import pairwise
from typing import Any

import numpy as np
from tile_time.kit.build import Seeded

from tile_core.machines import machine_for


@dataclass(frozen=True)
class Captured:
    """A launch of a cuTile program: its bytecode, and the arguments of the compiled kernel."""

    bytecode: bytes
    grid: tuple[int, int, int]
    arguments: tuple[Any, ...]
    flops: float
    bytes: float


@dataclass(frozen=True)
class Timed:
    """A row of `speed_rows` by its name."""

    name: str

    def captured(self, target: str) -> Captured:
        """Raises ImportError where cuda-tile is not installed, and what its compiler raises."""
        return _capture(self.name, target)


@cache
def _capture(name: str, target: str) -> Captured:
    """Let cuTile specialise the kernel and marshal arguments; look at the launch, and run nothing.

    cuTile fixes the architecture of a process once; the bytecode is the same for all.
    """
    import cuda.tile as ct
    from tile_sim import cutile

    speed = import_module("speed")
    row = next(row for row in import_module("speed_rows").ROWS if row.name == name)
    launch = row.launch(int(machine_for(target).chip.sms))
    seen: list[Any] = []
    cutile.settings.instead = lambda *about: seen.append(about)
    ct.launch(None, launch.grid, speed.kernel_of(row, None), launch.arguments)
    compiled, _, grid, _, data, buffers = seen[-1]
    names = [a for a in launch.arguments if isinstance(a, np.ndarray)]
    program = compiled.module.program(compiled.symbol)
    visible = program.entry.params if compiled.module.hidden is None else program.visible
    found: list[Any] = []
    offsets = [*program.param_offsets[: len(visible)], len(data)]
    for start, end in pairwise(offsets):
        found.append(_argument(data[start:end], buffers, names))
    # Padding between parameters is none of theirs.
    sizes = [8 if isinstance(one, Seeded) else len(one) for one in found]
    assert sum(sizes) == len(data)
    flops = row.flops if row.bits else 0.0
    return Captured(compiled.bytecode, tuple(grid), tuple(found), flops, row.bytes)


_seeded: dict[int, Seeded] = {}


def _argument(data: bytes, buffers: Any, arrays: list[np.ndarray]) -> Any:
    """An array where the bytes are the address of one, else the bytes as they are."""
    if len(data) >= 8:
        address = struct.unpack("<Q", data[:8])[0]
        for array in arrays:
            if array.ctypes.data == address:
                return _like(array)
    return data if len(data) in (1, 2, 4, 8) else data[:4] + data[4:]


def _like(array: np.ndarray) -> Seeded:
    from tile_time.kit.build import kind_of

    if id(array) not in _seeded:
        kind = kind_of(array.dtype)
        how = "zeros" if kind[0] in "iu" else "unit"
        _seeded[id(array)] = Seeded(kind, array.size, how, 1 + len(_seeded))
    return _seeded[id(array)]


TIMES: tuple[Timed, ...] = (
    Timed("matmul f16 4096^3, 128x256x64"),
    Timed("attention causal 1x32x8192x128, 128x128"),
    Timed("softmax f16 65536x1024"),
    Timed("RMS norm f16 65536x2048, persistent, 4x2048"),
    Timed("transpose f16 12288x4096, 64x64"),
    Timed("matmul f16 8192^3, 128x256x64"),
    Timed("matmul f16 4096^3, 128x128x64"),
    Timed("attention full 1x32x4096x64, 128x64"),
    Timed("layer norm bf16 2048x8192"),
    Timed("copy f16 8192x8192, 64x128"),
    Timed("vector add f32 32M"),
    Timed("matmul tf32 4096^3, 128x128x32"),
)


def _framework(function: str, name: str, row: str, flops: float, size: float, **sizes: Any) -> Any:
    return {"name": name, "function": function, "row": row, "flops": flops, "bytes": size,
            "sizes": sizes}  # fmt: skip


_CUBE = 2.0 * 4096**3
_ATTENTION = 4.0 * 32 * 8192 * 8192 * 128 / 2
FRAMEWORKS: tuple[dict[str, Any], ...] = (
    _framework("cublas", "cuBLAS by PyTorch, f16 4096^3", "matmul f16 4096^3, 128x256x64", _CUBE,
               3 * 2.0 * 4096**2, kind="f16", m=4096, n=4096, k=4096),
    _framework("sdpa", "SDPA of PyTorch, causal", "attention causal 1x32x8192x128, 128x128",
               _ATTENTION, 4 * 2.0 * 32 * 8192 * 128, heads=32, length=8192, depth=128,
               causal=True),
    _framework("cublas", "cuBLAS by PyTorch, f16 8192^3", "matmul f16 8192^3, 128x256x64",
               8 * _CUBE, 3 * 2.0 * 8192**2, kind="f16", m=8192, n=8192, k=8192),
    _framework("triton_matmul", "Triton, f16 4096^3", "matmul f16 4096^3, 128x256x64", _CUBE,
               3 * 2.0 * 4096**2, kind="f16", m=4096, n=4096, k=4096),
    _framework("softmax", "softmax of PyTorch", "softmax f16 65536x1024", 0.0,
               2 * 2.0 * 65536 * 1024, kind="f16", rows=65536, columns=1024),
    _framework("triton_softmax", "softmax in Triton", "softmax f16 65536x1024", 0.0,
               2 * 2.0 * 65536 * 1024, kind="f16", rows=65536, columns=1024),
    _framework("layer_norm", "layer norm of PyTorch", "layer norm bf16 2048x8192", 0.0,
               2 * 2.0 * 2048 * 8192, kind="bf16", rows=2048, columns=8192),
    _framework("transpose", "transpose of PyTorch", "transpose f16 12288x4096, 64x64", 0.0,
               2 * 2.0 * 12288 * 4096, kind="f16", rows=12288, columns=4096),
    _framework("copy", "copy of PyTorch", "copy f16 8192x8192, 64x128", 0.0, 2 * 2.0 * 8192**2,
               kind="f16", rows=8192, columns=8192),
    _framework("cupy_copy", "copy by CuPy", "copy f16 8192x8192, 64x128", 0.0, 2 * 2.0 * 8192**2,
               rows=8192, columns=8192),
)  # fmt: skip
