"""Small kernels in nv_tileaa, compiled by the real pipeline and run in the simulator."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import tile_sim

import support.strategies
import tile_core
from tile_core.registry import Registry

DTYPES: dict[str, Any] = {
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "f16": np.float16,
    "bf16": ml_dtypes.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
}


def tile(shape: tuple[int, ...], element: str) -> str:
    """The MLIR type of a tile; the bare element for rank 0."""
    return f"tensor<{'x'.join(map(str, (*shape, element)))}>" if shape else element


@cache
def registry(**more: Any) -> Registry:
    """All plugins of the project and the test strategies, and further plugin modules."""
    import tile_cudatile.plugin
    import tile_cute.plugin
    import tile_nvptx.plugin
    import tile_sched.plugin
    import tile_tileaa.plugin
    import tile_tileas.plugin

    return Registry.of(
        cudatile=tile_cudatile.plugin,
        cute=tile_cute.plugin,
        nvptx=tile_nvptx.plugin,
        tests=support.strategies,
        tileaa=tile_tileaa.plugin,
        sched=tile_sched.plugin,
        tileas=tile_tileas.plugin,
        **more,
    )


@dataclass
class Kernel:
    """A kernel under construction; each tile input and output is a whole static memref."""

    num_warps: int = 4
    params: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def param(self, type_: str) -> str:
        """A further kernel parameter."""
        self.params.append(type_)
        return f"%arg{len(self.params) - 1}"

    def op(self, text: str) -> None:
        """A line of the body."""
        self.lines.append(text)

    def view(self, shape: tuple[int, ...], element: str, padding: str = "") -> tuple[str, str]:
        """A pointer parameter viewed as one tile of `shape`; its value and type."""
        name = f"%v{len(self.lines)}"
        pointer = self.param(f"!nv_tileaa.ptr<{element}, 1 : i32>")
        strides = [int(np.prod(shape[axis + 1 :])) for axis in range(len(shape))]
        memref = f"!nv_tileaa.memref<{element}, {_i64(shape)}, {_i64(strides)}>"
        dims = ", ".join(map(str, range(len(shape))))
        view = (
            f"!nv_tileaa.tiled_view<{memref}, array<i32: {', '.join(map(str, shape))}>, "
            f'array<i32: {dims}>, "{padding}">'
        )
        self.op(
            f'{name}m = "nv_tileaa.make_memref"({pointer}) {{operandSegmentSizes = '
            f"array<i32: 1, 0, 0>}} : (!nv_tileaa.ptr<{element}, 1 : i32>) -> {memref}"
        )
        self.op(f'{name} = "nv_tileaa.block_tile"({name}m) : ({memref}) -> {view}')
        return name, view

    def load(self, name: str, shape: tuple[int, ...], element: str) -> None:
        """%name = the whole of a new parameter."""
        view, type_ = self.view(shape, element)
        self._zero()
        coords = ", ".join(["%zero"] * len(shape))
        types = ", ".join([type_, *["i32"] * len(shape)])
        self.op(
            f'{name}, {name}_token = "nv_tileaa.tiled_load"({view}, {coords}) '
            f'{{mem_semantic = "weak", operandSegmentSizes = array<i32: 1, {len(shape)}, 0>}} : '
            f"({types}) -> ({tile(shape, element)}, !nv_tileaa.mem_token)"
        )

    def store(self, value: str, shape: tuple[int, ...], element: str) -> None:
        """A new parameter = %value."""
        view, type_ = self.view(shape, element)
        self._zero()
        coords = ", ".join(["%zero"] * len(shape))
        types = ", ".join([type_, tile(shape, element), *["i32"] * len(shape)])
        self.op(
            f'%stored{len(self.lines)} = "nv_tileaa.tiled_store"({view}, {value}, {coords}) '
            f'{{mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 1, {len(shape)}, 0>}} '
            f": ({types}) -> !nv_tileaa.mem_token"
        )

    def _zero(self) -> None:
        line = "%zero = arith.constant 0 : i32"
        if line not in self.lines:
            self.op(line)

    def text(self) -> str:
        """The module."""
        params = ", ".join(f"%arg{i}: {type_}" for i, type_ in enumerate(self.params))
        body = "\n".join(f"      {line}" for line in self.lines)
        return (
            "module { gpu.module @kernels attributes {tt.num_ctas = 1 : i32, "
            f"tt.num_warps = {self.num_warps} : i32}} {{\n"
            f"  func.func @kernel({params}) attributes {{nv_tileaa.kernel}} {{\n{body}\n"
            "      return\n  }\n} }"
        )

    def ptx(self, target: str = "sm_90", opt_level: int = 2, **settings: Any) -> str:
        """Its PTX through the pipeline of the level."""
        return ptx_of(self.text(), target, opt_level, **settings)

    def run(
        self,
        *args: Any,
        grid: tuple[int, int, int] = (1, 1, 1),
        check: bool = True,
        **settings: Any,
    ) -> Any:
        """Compile and run; array arguments are changed in place. Findings fail the test."""
        module = tile_sim.Module(self.ptx(**settings))
        report = module.launch("kernel", grid, None, list(args), check=check or None)
        assert not report.findings, "\n".join(map(str, report.findings))
        return report


def ptx_of(text: str, target: str, opt_level: int, **settings: Any) -> str:
    """PTX of nv_tileaa text."""
    artifact = tile_core.compile(
        text,
        target,
        opt_level=opt_level,
        start_at="convert-tileaa-to-tileas",
        emit="ptx",
        registry=registry(),
        keep_stages=False,
        **settings,
    )
    return str(artifact.stages["ptx"])


def _i64(values: tuple[int, ...] | list[int]) -> str:
    return f"array<i64: {', '.join(map(str, values))}>"
