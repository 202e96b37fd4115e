"""What benchmarks/speed.py times: kernels, arguments and grids at the sizes of cuTile's benchmarks.

Tiles are those that cuTile's repository lists as tuned (for B200) or that its samples take.
Arrays are allocated, and hardly ever touched: a time needs addresses, not values.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import ceil, prod, sqrt
from typing import Any

import numpy as np
from tile_sim.arguments import dtype_of

#: Bits of the operands that a tensor core multiplies.
_BITS = {"f16": 16, "bf16": 16, "f32": 32, "e4m3": 8}
_DTYPES = {"e4m3": "f8e4m3", "e8m0": "f8e8m0"}
_SHORT = {"f32": "tf32"}


@dataclass(frozen=True)
class Launch:
    """A grid and the arguments of a launch."""

    grid: tuple[int, int, int]
    arguments: tuple[Any, ...]


#: Bytes to which a driver aligns memory: at least 256 (CUDA programming guide), 512 in fact.
_ALIGNED = 512


@dataclass(frozen=True)
class Row:
    """One line of the table.

    `kernel` is "module:name" beside the benchmarks or in examples/, `suite` the kernel of a cuTile
    checkout that takes the same arguments. `launch` is asked with the number of SMs. `flops` and
    `bytes` are those of the problem, not of the code; `bits` of a tensor core's operands (0: none).
    With `registers` ptxas gets another limit of them than the compiler wrote.
    """

    name: str
    kernel: str
    launch: Callable[[int], Launch]
    flops: float = 0.0
    bytes: float = 0.0
    bits: int = 0
    suite: str = ""
    hints: dict[str, Any] = field(default_factory=dict)
    capability: int = 80  # the first that has the types
    quick: bool = False
    registers: int = 0


def named(kind: str) -> np.dtype:
    """A NumPy type by the name that rows have for it."""
    return dtype_of(_DTYPES.get(kind, kind))


def zeros(kind: str, *shape: int) -> np.ndarray:
    """An array that lies as memory of a GPU does; NumPy's lies 16 bytes behind a page.

    (RMS norm on A100: arrays at 16 bytes move 266 MB, at 128 and more 250; and two orders of
    its instructions are 0.92 to 1.03 of one another by that alone.)
    """
    element = named(kind)
    size = prod(shape) * element.itemsize
    raw = np.zeros(size + _ALIGNED, np.uint8)
    first = -raw.ctypes.data % _ALIGNED
    return raw[first : first + size].view(element).reshape(shape)


def _size(kind: str, *shapes: tuple[int, ...]) -> float:
    return float(sum(prod(s) for s in shapes) * named(kind).itemsize)


Tile = tuple[int, int, int]


def matmul_row(
    kind: str, m: int, n: int, k: int, tile: Tile, ctas: int = 1, quick: bool = False
) -> Row:
    tm, tn, _ = tile

    def launch(_: int) -> Launch:
        a, b, c = zeros(kind, m, k), zeros(kind, k, n), zeros(kind, m, n)
        return Launch((ceil(m / tm) * ceil(n / tn), 1, 1), (a, b, c, *tile))

    return Row(
        f"matmul {_SHORT.get(kind, kind)} {_shape(m, n, k)}, {_tile(tile)}"
        + (f", {ctas} CTAs" if ctas > 1 else ""),
        "speed_kernels:matmul", launch, 2.0 * m * n * k, _size(kind, (m, k), (k, n), (m, n)),
        _BITS[kind], "kernels.matmul:matmul_kernel", _ctas(ctas), quick=quick,
    )  # fmt: skip


def persistent_row(kind: str, m: int, n: int, k: int, tile: Tile, ctas: int = 1) -> Row:
    tm, tn, _ = tile

    def launch(sms: int) -> Launch:
        a, b, c = zeros(kind, m, k), zeros(kind, k, n), zeros(kind, m, n)
        return Launch((min(sms, ceil(m / tm) * ceil(n / tn)), 1, 1), (a, b, c, *tile))

    return Row(
        f"persistent {_SHORT.get(kind, kind)} {_shape(m, n, k)}, {_tile(tile)}"
        + (f", {ctas} CTAs" if ctas > 1 else ""),
        "speed_kernels:persistent_matmul", launch, 2.0 * m * n * k,
        _size(kind, (m, k), (k, n), (m, n)), _BITS[kind],
        "kernels.matmul:persistent_matmul_kernel", _ctas(ctas),
    )  # fmt: skip


#: Elements along K that share a scale (OCP Microscaling Formats, "MXFP8").
_BLOCK = 32


def scaled_row(kind: str, m: int, n: int, k: int, tile: Tile) -> Row:
    tm, tn, _ = tile

    def launch(_: int) -> Launch:
        a, b, c = zeros(kind, m, k), zeros(kind, n, k), zeros("f16", m, n)
        scales = zeros("e8m0", m, k // _BLOCK), zeros("e8m0", n, k // _BLOCK)
        arguments = (a, scales[0], b, scales[1], c, *tile, _BLOCK)
        return Launch((ceil(m / tm) * ceil(n / tn), 1, 1), arguments)

    return Row(
        f"block-scaled {kind} {_shape(m, n, k)}, {_tile(tile)}", "speed_kernels:scaled_matmul",
        launch, 2.0 * m * n * k,
        _size(kind, (m, k), (n, k)) + _size("f16", (m, n))
        + _size("e8m0", (m, k // _BLOCK), (n, k // _BLOCK)), _BITS[kind], capability=100,
    )  # fmt: skip


def packed_row(m: int, n: int, k: int, tile: Tile) -> Row:
    """Numbers of four bits, two to a byte (OCP Microscaling Formats, "MXFP4")."""
    tm, tn, _ = tile

    def launch(_: int) -> Launch:
        a, b, c = zeros("u8", m, k // 2), zeros("u8", n, k // 2), zeros("f16", m, n)
        scales = zeros("e8m0", m, k // _BLOCK), zeros("e8m0", n, k // _BLOCK)
        arguments = (a, scales[0], b, scales[1], c, *tile, _BLOCK)
        return Launch((ceil(m / tm) * ceil(n / tn), 1, 1), arguments)

    return Row(
        f"block-scaled e2m1 {_shape(m, n, k)}, {_tile(tile)}", "speed_kernels:packed_matmul",
        launch, 2.0 * m * n * k,
        _size("u8", (m, k // 2), (n, k // 2)) + _size("f16", (m, n))
        + _size("e8m0", (m, k // _BLOCK), (n, k // _BLOCK)), 4, capability=100,
    )  # fmt: skip


def split_row(kind: str, m: int, n: int, k: int) -> Row:
    tm, tn, tk, parts = 32, 64, 256, 4
    tiles = ceil(m / tm) * ceil(n / tn)

    def launch(_: int) -> Launch:
        a, b, c = zeros(kind, m, k), zeros(kind, k, n), zeros(kind, m, n)
        flags = zeros("i32", tiles), zeros("i32", tiles)
        return Launch((tiles, parts, 1), (a, b, c, *flags, tm, tn, tk, parts))

    return Row(
        f"split-K by {parts} {_SHORT.get(kind, kind)} {_shape(m, n, k)}, {_tile((tm, tn, tk))}",
        "speed_kernels:split_k_matmul", launch, 2.0 * m * n * k,
        _size(kind, (m, k), (k, n), (m, n)), _BITS[kind], "kernels.matmul:matmul_split_k_kernel",
    )  # fmt: skip


def batched_row(
    kind: str, batch: int, m: int, n: int, k: int, tile: Tile, quick: bool = False
) -> Row:
    tm, tn, _ = tile

    def launch(_: int) -> Launch:
        a, b = zeros(kind, batch, m, k), zeros(kind, batch, k, n)
        c = zeros("f32", batch, m, n)
        return Launch((batch, ceil(m / tm), ceil(n / tn)), (a, b, c, *tile))

    return Row(
        f"batched {kind} {batch}x{_shape(m, n, k)}, {_tile(tile)}", "batched_matmul:batched_matmul",
        launch, 2.0 * batch * m * n * k,
        _size(kind, (batch, m, k), (batch, k, n)) + _size("f32", (batch, m, n)), _BITS[kind],
        "kernels.matmul:batch_matmul_kernel", capability=89 if kind == "e4m3" else 80, quick=quick,
    )  # fmt: skip


def attention_row(
    heads: int, groups: int, queries: int, keys: int, depth: int, causal: bool,
    tile: tuple[int, int], batch: int = 1, occupancy: int = 2, quick: bool = False,
) -> Row:  # fmt: skip
    tm, tn = tile

    def launch(_: int) -> Launch:
        q, out = (zeros("f16", batch, heads, queries, depth) for _ in range(2))
        k, v = (zeros("f16", batch, groups, keys, depth) for _ in range(2))
        first = 0 if queries == keys else keys - 1
        return Launch(
            (ceil(queries / tm), batch * heads, 1),
            (q, k, v, out, 1 / sqrt(depth), first, depth, heads, tm, tn, heads // groups, causal,
             keys % tn == 0),
        )  # fmt: skip

    kind = "decode" if queries == 1 else "causal" if causal else "full"
    shared = f", {groups} of keys" if groups != heads else ""
    flops = 4.0 * batch * heads * queries * keys * depth / (2 if causal and queries > 1 else 1)
    q_shape, k_shape = (batch, heads, queries, depth), (batch, groups, keys, depth)
    return Row(
        f"attention {kind} {batch}x{heads}x{max(queries, keys)}x{depth}{shared}, {tm}x{tn}",
        "speed_kernels:attention", launch, flops, _size("f16", q_shape, q_shape, k_shape, k_shape),
        0 if queries == 1 else 16, "kernels.attention:fmha_kernel", {"occupancy": occupancy},
        quick=quick,
    )  # fmt: skip


def rms_row(
    kind: str, rows: int, columns: int, form: str, tile: tuple[int, int], quick: bool = False
) -> Row:
    def launch(sms: int) -> Launch:
        x, y, w = zeros(kind, rows, columns), zeros(kind, rows, columns), zeros(kind, columns)
        if form == "persistent":
            grid = min(sms, ceil(rows / tile[0]))
            return Launch((grid, 1, 1), (x, y, w, *tile, columns, 1e-5))
        rstd = zeros("f32", rows)
        return Launch((rows, 1, 1), (x, w, y, rstd, columns, 1e-5, tile[1]))

    suffix = "" if form == "regular" else f"_{form}"
    theirs = {"regular": "", "gather": "_gather", "persistent": "_static_persistent"}[form]
    return Row(
        f"RMS norm {kind} {rows}x{columns}, {form}, {tile[0]}x{tile[1]}",
        f"speed_kernels:rms_norm{suffix}", launch, rows * (4.0 * columns + 2),
        _size(kind, (rows, columns), (rows, columns), (columns,)), 0,
        f"kernels.rms_norm:rms_norm_kernel{theirs}",
        {"num_worker_warps": 4} if form == "gather" else {}, quick=quick,
    )  # fmt: skip


def layer_norm_row(kind: str, rows: int, columns: int, quick: bool = False) -> Row:
    def launch(_: int) -> Launch:
        x, y = zeros(kind, rows, columns), zeros(kind, rows, columns)
        w, b = zeros(kind, columns), zeros(kind, columns)
        mean, rstd = zeros("f32", rows), zeros("f32", rows)
        return Launch((rows, 1, 1), (x, w, b, y, mean, rstd, 1e-5, 1024))

    return Row(
        f"layer norm {kind} {rows}x{columns}", "layer_norm:layer_norm", launch,
        8.0 * rows * columns, _size(kind, (rows, columns), (rows, columns), (columns,), (columns,)),
        0, "kernels.layer_norm:layer_norm_fwd", quick=quick,
    )  # fmt: skip


def layer_norm_backward_row(kind: str, rows: int, columns: int) -> Row:
    groups = 64

    def launch(_: int) -> Launch:
        dy, x, dx = (zeros(kind, rows, columns) for _ in range(3))
        sums = zeros("f32", groups, columns), zeros("f32", groups, columns)
        mean, rstd = zeros("f32", rows), zeros("f32", rows)
        return Launch(
            (rows, 1, 1), (dy, x, zeros(kind, columns), mean, rstd, dx, *sums, groups, 1024)
        )

    return Row(
        f"layer norm backward {kind} {rows}x{columns}", "layer_norm_backward:layer_norm_backward",
        launch, 12.0 * rows * columns, _size(kind, *[(rows, columns)] * 3),
    )  # fmt: skip


def layer_norm_sums_row(columns: int) -> Row:
    groups, tm, tn = 64, 32, 1024

    def launch(_: int) -> Launch:
        sums = zeros("f32", groups, columns), zeros("f32", groups, columns)
        return Launch(
            (ceil(columns / tn), 1, 1),
            (*sums, zeros("f32", columns), zeros("f32", columns), tm, tn),
        )

    return Row(
        f"layer norm sums f32 {groups}x{columns}", "speed_kernels:layer_norm_sums", launch,
        2.0 * groups * columns, _size("f32", *[(groups, columns)] * 2), 0,
        "kernels.layer_norm:layer_norm_bwd_dwdb",
    )  # fmt: skip


def softmax_row(kind: str, rows: int, columns: int, persistent: bool, quick: bool = False) -> Row:
    def launch(sms: int) -> Launch:
        x, y = zeros(kind, rows, columns), zeros(kind, rows, columns)
        if persistent:
            return Launch((min(4 * sms, rows), 1, 1), (x, y, rows, columns))
        return Launch((rows, 1, 1), (x, y, columns))

    return Row(
        f"softmax {kind} {rows}x{columns}{', persistent' if persistent else ''}",
        "speed_kernels:softmax_rows" if persistent else "softmax:softmax", launch,
        5.0 * rows * columns, _size(kind, *[(rows, columns)] * 2), quick=quick,
    )  # fmt: skip


def cross_entropy_row(kind: str, rows: int, columns: int, tile: tuple[int, int]) -> Row:
    def launch(_: int) -> Launch:
        arrays = zeros(kind, rows, columns), np.zeros(rows, np.int32), zeros("f32", rows)
        return Launch((ceil(rows / tile[0]), 1, 1), (*arrays, *tile))

    return Row(
        f"cross entropy {kind} {rows}x{columns}, {tile[0]}x{tile[1]}",
        "speed_kernels:cross_entropy", launch, 6.0 * rows * columns, _size(kind, (rows, columns)),
    )  # fmt: skip


def mover_row(
    kernel: str, kind: str, shape: tuple[int, int], tile: tuple[int, int], quick: bool = False
) -> Row:
    suite = "kernels.transpose:transpose_kernel" if kernel == "transpose" else ""

    def launch(_: int) -> Launch:
        x = zeros(kind, *shape)
        y = zeros(kind, *(shape[::-1] if kernel == "transpose" else shape))
        return Launch((ceil(shape[0] / tile[0]), ceil(shape[1] / tile[1]), 1), (x, y, *tile))

    return Row(
        f"{kernel} {kind} {_shape(*shape)}, {tile[0]}x{tile[1]}", f"speed_kernels:{kernel}", launch,
        0.0, _size(kind, shape, shape), 0, suite, quick=quick,
    )  # fmt: skip


def add_row(kind: str, count: int, gathered: bool, quick: bool = False) -> Row:
    tile = 1024

    def launch(_: int) -> Launch:
        a, b, c = (zeros(kind, count) for _ in range(3))
        return Launch((ceil(count / tile), 1, 1), (a, b, c, tile))

    return Row(
        f"vector add {kind} {count >> 20}M{', gathered' if gathered else ''}",
        "speed_kernels:add_gathered" if gathered else "vector_add:vector_add", launch,
        float(count), _size(kind, *[(count,)] * 3), quick=quick,
    )  # fmt: skip


def moe_row(kind: str, tokens: int, hidden: int, experts: int, inner: int, top: int) -> Row:
    """The first product of a mixture of experts; tokens are dealt out evenly."""
    tm, tn, tk = 128, 128, 64
    each = ceil(tokens * top / experts)
    blocks = experts * ceil(each / tm)

    def launch(_: int) -> Launch:
        order = np.full((blocks * tm,), tokens * top, np.int32)
        owner = np.repeat(np.arange(experts, dtype=np.int32), ceil(each / tm))
        for e in range(experts):
            mine = np.arange(e, tokens * top, experts, dtype=np.int32)
            start = e * ceil(each / tm) * tm
            order[start : start + len(mine)] = mine
        a, b = zeros(kind, tokens, hidden), zeros(kind, experts, 2 * inner, hidden)
        c, weights = zeros(kind, tokens * top, 2 * inner), zeros(kind, tokens * top)
        arguments = (a, b, c, weights, order, owner, top, False, tm, tn, tk)
        return Launch((blocks * ceil(2 * inner / tn), 1, 1), arguments)

    flops = 2.0 * tokens * top * hidden * 2 * inner
    return Row(
        f"MoE {kind} {tokens}x{hidden}, {top} of {experts} experts of {inner}", "speed_kernels:moe",
        launch, flops, _size(kind, (experts, 2 * inner, hidden), (tokens, hidden),
                             (tokens * top, 2 * inner)), 16, "kernels.fused_moe:fused_moe_kernel",
    )  # fmt: skip


def gated_row(kind: str, rows: int, columns: int) -> Row:
    def launch(_: int) -> Launch:
        a, b, c = (zeros(kind, rows, columns) for _ in range(3))
        return Launch((rows, 1, 1), (a, b, c, 1 << (columns - 1).bit_length()))

    return Row(
        f"gated SiLU {kind} {rows}x{columns}", "speed_kernels:gated", launch, 6.0 * rows * columns,
        _size(kind, *[(rows, columns)] * 3), 0, "kernels.fused_moe:silu_and_mul_kernel",
    )  # fmt: skip


def grouped_row(kind: str, sizes: tuple[Tile, ...], tile: Tile) -> Row:
    def launch(sms: int) -> Launch:
        a = [zeros(kind, m, k) for m, _, k in sizes]
        b = [zeros(kind, k, n) for _, n, k in sizes]
        c = [zeros(kind, m, n) for m, n, _ in sizes]
        return Launch((sms, 1, 1), (a, b, c, sms, *tile))

    flops = 2.0 * sum(m * n * k for m, n, k in sizes)
    size = sum(_size(kind, (m, k), (k, n), (m, n)) for m, n, k in sizes)
    shapes = " ".join(_shape(*one) for one in sizes)
    return Row(
        f"grouped {kind} {shapes}, {_tile(tile)}", "speed_kernels:grouped_matmul", launch, flops,
        size, 16, "kernels.group_gemm:grouped_matmul_kernel",
    )  # fmt: skip


def hinted(row: Row, what: str, **hints: Any) -> Row:
    """`row` with further hints, and with `what` in its name."""
    return replace(row, name=f"{row.name}, {what}", hints={**row.hints, **hints})


def _ctas(count: int) -> dict[str, Any]:
    """The hint; without one it is the compiler's choice."""
    return {"num_ctas": count} if count > 1 else {}


def _shape(*n: int) -> str:
    return f"{n[0]}^{len(n)}" if len(set(n)) == 1 and len(n) > 2 else "x".join(map(str, n))


def _tile(tile: tuple[int, ...]) -> str:
    return "x".join(map(str, tile))


_LARGE, _SAMPLE = (256, 256, 64), (128, 256, 64)
ROWS: tuple[Row, ...] = (
    matmul_row("f16", 1024, 1024, 1024, _SAMPLE),
    matmul_row("f16", 2048, 2048, 2048, _SAMPLE),
    matmul_row("f16", 4096, 4096, 4096, (128, 128, 64)),
    matmul_row("f16", 4096, 4096, 4096, _SAMPLE, quick=True),
    matmul_row("f16", 4096, 4096, 4096, _LARGE),
    matmul_row("f16", 4096, 4096, 4096, (128, 128, 64), 2),
    matmul_row("f16", 4096, 4096, 4096, _SAMPLE, 2),
    matmul_row("f16", 4096, 4096, 4096, _LARGE, 2),
    matmul_row("f16", 8192, 8192, 8192, _SAMPLE),
    matmul_row("f16", 8192, 8192, 8192, _LARGE),
    matmul_row("f16", 12288, 4096, 2560, _SAMPLE),
    matmul_row("bf16", 4096, 4096, 4096, _SAMPLE),
    matmul_row("f32", 1024, 1024, 1024, (128, 128, 32)),
    matmul_row("f32", 4096, 4096, 4096, (128, 128, 32)),
    matmul_row("f32", 8192, 8192, 8192, (128, 256, 32)),
    persistent_row("f16", 4096, 4096, 4096, _SAMPLE),
    persistent_row("f16", 4096, 4096, 4096, _LARGE, 2),
    persistent_row("f16", 8192, 8192, 8192, _SAMPLE),
    persistent_row("f32", 4096, 4096, 4096, (128, 128, 32)),
    split_row("f16", 256, 256, 4096),
    split_row("f32", 128, 128, 8192),
    scaled_row("e4m3", 4096, 4096, 4096, (128, 128, 128)),
    packed_row(4096, 4096, 4096, (128, 128, 128)),
    batched_row("e4m3", 2, 1024, 1024, 1024, (128, 256, 128)),
    batched_row("e4m3", 4, 8192, 8192, 2000, (128, 256, 128), quick=True),
    batched_row("e4m3", 8, 12288, 4096, 2560, (256, 256, 128)),
    batched_row("f16", 4, 4096, 4096, 4096, _SAMPLE),
    attention_row(32, 32, 1024, 1024, 128, True, (128, 128)),
    attention_row(32, 32, 8192, 8192, 128, True, (128, 128), quick=True),
    attention_row(32, 8, 8192, 8192, 128, True, (128, 128)),
    attention_row(32, 32, 4096, 4096, 128, False, (128, 128)),
    attention_row(32, 32, 8192, 8192, 64, True, (128, 128)),
    attention_row(32, 32, 4096, 4096, 64, False, (128, 64), quick=True),
    attention_row(32, 32, 1, 1024, 128, False, (64, 256), occupancy=4),
    attention_row(32, 8, 1, 1024, 128, False, (64, 256), batch=8, occupancy=4),
    rms_row("f16", 65536, 1024, "regular", (1, 1024)),
    rms_row("f16", 65536, 2048, "regular", (1, 1024)),
    rms_row("f16", 65536, 4096, "regular", (1, 1024)),
    rms_row("f32", 65536, 1024, "regular", (1, 1024)),
    rms_row("f32", 65536, 2048, "regular", (1, 512)),
    rms_row("f16", 65536, 1024, "gather", (1, 512)),
    rms_row("f16", 65536, 2048, "gather", (1, 1024)),
    rms_row("f16", 65536, 4096, "gather", (1, 1024)),
    rms_row("f32", 65536, 1024, "gather", (1, 256)),
    rms_row("f32", 65536, 4096, "gather", (1, 2048)),
    rms_row("f16", 65536, 1024, "persistent", (8, 1024)),
    rms_row("f16", 65536, 2048, "persistent", (4, 2048), quick=True),
    rms_row("f16", 65536, 4096, "persistent", (2, 4096)),
    rms_row("f32", 65536, 1024, "persistent", (16, 1024)),
    rms_row("f32", 65536, 2048, "persistent", (4, 2048)),
    layer_norm_row("bf16", 2048, 8192),
    layer_norm_row("bf16", 65536, 16384, quick=True),
    layer_norm_row("f32", 1000, 4000),
    layer_norm_backward_row("bf16", 2048, 8192),
    layer_norm_sums_row(16384),
    softmax_row("f16", 65536, 1024, False, quick=True),
    softmax_row("f32", 65536, 1024, False),
    softmax_row("f16", 65536, 1024, True),
    cross_entropy_row("f16", 4096, 32000, (16, 256)),
    mover_row("transpose", "f16", (1024, 1024), (64, 64)),
    mover_row("transpose", "f16", (12288, 4096), (64, 64), quick=True),
    mover_row("transpose", "f32", (12288, 4096), (64, 64)),
    mover_row("copy", "f16", (8192, 8192), (64, 128)),
    mover_row("copy", "f32", (8192, 8192), (64, 64)),
    add_row("f32", 1 << 25, False),
    add_row("f16", 1 << 27, False),
    add_row("f32", 1 << 25, True),
    moe_row("f16", 110, 1024, 16, 512, 4),
    moe_row("f16", 256, 2048, 32, 1408, 6),
    gated_row("f16", 4096, 11008),
    grouped_row(
        "f16", ((4096, 4096, 1024), (2048, 4096, 2048), (1024, 1024, 4096)), (128, 128, 64)
    ),
)  # fmt: skip
