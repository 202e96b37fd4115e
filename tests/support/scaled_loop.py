"""Loops of products with block scales, step i of which reads tile i of arrays of tiles."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import tile_cudatile
import tile_sim
from tile_cudatile import types as t
from tile_cudatile.attrs import DivBy
from tile_cudatile.tree import Value

import tile_core

from .pipelined import WEAK
from .programs import I32, Program
from .scaled import codes

M, N, K, MOST = 128, 128, 128, 6
BLOCKS = K // 32


def pieces(p: Program, shape: tuple[int, ...], element: t.Scalar) -> Any:
    """Step i of an array of tiles, one behind the other."""
    base = p.argument(t.Tile((), t.Pointer(element)))
    base = p.emit("assume", [base], base.type, predicate=DivBy(16))
    strides = (*(int(np.prod(shape[at:])) for at in range(len(shape))), 1)
    tensor = t.TensorView(element, (MOST, *shape), strides)
    view = p.emit("make_tensor_view", [base, (), ()], tensor)
    axes = tuple(range(len(shape) + 1))
    kind = t.PartitionView((1, *shape), tensor, axes, "zero")
    view = p.emit("make_partition_view", [view], kind)

    def load(i: Value) -> Value:
        index = (i, *[p.constant(I32, 0)] * len(shape))
        tile = t.Tile((1, *shape), element)
        loaded = p.emit("load_view_tko", [view, index], tile, t.TOKEN, **WEAK)
        return p.emit("reshape", [loaded], t.Tile(shape, element))

    return load


def turned(p: Program, value: Value) -> Value:
    """Its transpose."""
    assert isinstance(value.type, t.Tile)
    type_ = t.Tile(value.type.shape[::-1], value.type.element)
    return p.emit("permute", [value], type_, permutation=(1, 0))


def unpacked(p: Program, value: Value) -> Value:
    """Scales that lie as the instruction takes them, 32 x 4 x 4, as rows of scales."""
    kind = t.F8E8M0FNU
    value = p.emit("reshape", [value], t.Tile((32, 4, 4), kind))
    value = p.emit("permute", [value], t.Tile((4, 32, 4), kind), permutation=(1, 0, 2))
    return p.emit("reshape", [value], t.Tile((128, 4), kind))


def unpack(p: Program, value: Value) -> Value:
    """A tile of bytes as twice as many numbers of four bits."""
    assert isinstance(value.type, t.Tile)
    rows, bytes_ = (int(size) for size in value.type.shape if size is not None)
    flat = p.emit("reshape", [value], t.Tile((rows * bytes_,), t.I8))
    numbers = p.emit("unpack", [flat], t.Tile((2 * rows * bytes_,), t.F4E2M1FN))
    return p.emit("reshape", [numbers], t.Tile((rows, 2 * bytes_), t.F4E2M1FN))


@cache
def loop(packed: int, narrow: bool = False, m: int = M) -> Program:
    """sum over steps of (A SFA) (B SFB); scales in rows, or packed in 512 bytes: those of A, or (2)
    of both. `narrow`: A and B are numbers of four bits, two to a byte; A has `m` rows.
    """
    p = Program()
    element, k = (t.I8, K // 2) if narrow else (t.F8E4M3FN, K)
    sources = [pieces(p, shape, element) for shape in ((m, k), (N, k))]
    scales = [pieces(p, shape, t.F8E8M0FNU) for shape in _shapes(packed, m)]
    bounds = [p.argument(I32), p.argument(I32), p.constant(I32, 1)]
    start = p.constant(t.Tile((m, N), t.F32), 0)

    def body(i: Value, total: Value) -> list[Value]:
        a, b, sfa, sfb = (load(i) for load in (*sources, *scales))
        sfa, sfb = (unpacked(p, x) if at < packed else x for at, x in enumerate((sfa, sfb)))
        a, b = (unpack(p, x) if narrow else x for x in (a, b))
        operands = [a, turned(p, b), total, sfa, turned(p, sfb)]
        return [p.emit("mmaf_scaled", operands, total.type)]

    region = p.region([I32, start.type], body, "continue")
    total = p.emit("for", [*bounds, (start,)], start.type, regions=(region,))
    p.store(total, (m, N), t.F32)
    return p


def _shapes(packed: int, m: int) -> list[tuple[int, int]]:
    """Of a step's scales in memory."""
    return [
        (32, 16) if at < packed else shape for at, shape in enumerate(((m, BLOCKS), (N, BLOCKS)))
    ]


def arguments(packed: int, first: int, last: int, narrow: bool = False, m: int = M) -> list[Any]:
    """Of a launch with steps `first` to `last`; the last one is the result."""
    rng = np.random.default_rng(7)
    element = t.F4E2M1FN if narrow else t.F8E4M3FN
    a, b = (codes((MOST, *shape), element, rng) for shape in ((m, K), (N, K)))
    shapes = _shapes(packed, m)
    scales = [rng.integers(126, 129, (MOST, *s)).astype(np.uint8).view(np.int8) for s in shapes]
    return [a, b, *scales, np.int32(first), np.int32(last), np.zeros((m, N), np.float32)]


@cache
def compiled(
    packed: int, target: str, strategy: str = "unspecialize", narrow: bool = False, m: int = M
) -> str:
    """Its PTX."""
    module = loop(packed, narrow, m).module()
    tile_cudatile.verify(module)
    options = {"pipeline-strategy": strategy, "tma-descriptors": "host"}
    made = tile_core.compile(
        str(tile_cudatile.to_mlir(module)), target, opt_level=2, emit="ptx",
        start_at="convert-cudatile-to-tileaa", options=options,
    )  # fmt: skip
    return str(made.stage("ptx"))


@cache
def meant(packed: int, first: int, last: int, narrow: bool = False, m: int = M) -> np.ndarray:
    """What the evaluator makes of it."""
    given = arguments(packed, first, last, narrow, m)
    tile_cudatile.evaluate(loop(packed, narrow, m).module(), "k", (1, 1, 1), given)
    return given[-1]


def agrees(
    text: str, packed: int, schedule: str, first: int = 0, last: int = MOST, narrow: bool = False,
    m: int = M,
) -> None:  # fmt: skip
    """Fails where the simulator finds a fault, or another result than the evaluator."""
    given = arguments(packed, first, last, narrow, m)
    report = tile_sim.Module(text).launch(
        "k", (1, 1, 1), None, given, check=True, schedule=schedule, max_steps=20_000
    )
    assert not report.findings
    np.testing.assert_array_equal(given[-1], meant(packed, first, last, narrow, m))
