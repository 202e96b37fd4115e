"""Products with block scales on tcgen05: scales go through shared to tensor memory."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import pytest
import tile_cudatile
import tile_sim
from support.pipelined import WEAK
from support.programs import I32, Program
from support.removals import SCHEDULES, is_caught
from support.scaled import check, codes, product
from tile_cudatile import types as t
from tile_cudatile.attrs import DivBy
from tile_cudatile.tree import Value

import tile_core

#: Elements, M x N x K, batch: one copy and several, tiles that fill none, several instructions.
CASES = [
    (t.F8E4M3FN, (128, 64, 128), ()),
    (t.F8E5M2, (256, 128, 64), ()),
    (t.F8E4M3FN, (128, 256, 256), ()),
    (t.F8E4M3FN, (128, 8, 32), ()),
    (t.F8E5M2, (128, 32, 128), (1,)),
    (t.F4E2M1FN, (128, 64, 128), ()),  # as 8-bit floats
    (t.F4E2M1FN, (128, 32, 64), (1,)),
]


@pytest.mark.parametrize(("element", "shape", "batch"), CASES, ids=str)
def test_every_shape(element: t.Scalar, shape: tuple[int, int, int], batch: tuple[int]) -> None:
    p, _ = product(element, t.F8E8M0FNU, 32, shape, batch)
    text = p.ptx(target="sm_100")
    assert "tcgen05.cp" in text
    assert "mma.sync" not in text
    check(element, t.F8E8M0FNU, 32, shape, batch=batch, target="sm_100")


#: Scales, M x N x K, batch; of the last ones, the rows of A or the columns of B fill no copy.
PACKED = [
    (t.F8E8M0FNU, (128, 64, 128), ()),
    (t.F8E4M3FN, (128, 64, 64), ()),
    (t.F8E8M0FNU, (256, 128, 256), (1,)),
    (t.F8E4M3FN, (128, 256, 256), ()),
    (t.F8E4M3FN, (128, 32, 128), (1,)),
    (t.F8E8M0FNU, (128, 8, 64), ()),
]


@pytest.mark.parametrize(("scale", "shape", "batch"), PACKED, ids=str)
def test_elements_of_four_bits_are_read_two_to_a_byte(
    scale: t.Scalar, shape: tuple[int, int, int], batch: tuple[int]
) -> None:
    block = 32 if scale == t.F8E8M0FNU else 16
    p, _ = product(t.F4E2M1FN, scale, block, shape, batch, turned=True)
    text = p.ptx(target="sm_100")
    assert ("kind::mxf4.block_scale.scale_vec::2X" in text) == (block == 32)
    assert ("kind::mxf4nvf4.block_scale.scale_vec::4X" in text) == (block == 16)
    check(t.F4E2M1FN, scale, block, shape, batch=batch, turned=True, target="sm_100")


@pytest.mark.parametrize(
    ("element", "scale", "block", "shape"),
    [
        (t.F8E4M3FN, t.F8E8M0FNU, 32, (64, 64, 64)),  # instructions have 128 rows
        (t.F4E2M1FN, t.F8E4M3FN, 16, (128, 32, 64)),  # two elements of a byte are along N
        (t.F4E2M1FN, t.F8E5M3FNU, 16, (128, 16, 64)),
    ],
    ids=str,
)
def test_what_it_does_not_take(
    element: t.Scalar, scale: t.Scalar, block: int, shape: tuple[int, int, int]
) -> None:
    p, _ = product(element, scale, block, shape)
    assert "block_scale" not in p.ptx(target="sm_100")
    check(element, scale, block, shape, target="sm_100")


@pytest.mark.parametrize("target", ["sm_100", "sm_103", "sm_110"])
def test_targets(target: str) -> None:
    p, _ = product(t.F8E4M3FN, t.F8E8M0FNU, 32, (128, 64, 128))
    assert "tcgen05.cp" in p.ptx(target=target)
    assert "tcgen05" not in p.ptx(target=target, opt_level=1)


def test_products_without_scales_are_given_none() -> None:
    p = Program()
    a, b = (p.load(shape, t.F8E4M3FN) for shape in ((128, 64), (64, 64)))
    acc = p.load((128, 64), t.F32)
    p.store(p.emit("mmaf", [a, b, acc], t.Tile((128, 64), t.F32)), (128, 64), t.F32)
    text = p.ptx(target="sm_100")
    assert "kind::f8f6f4" in text
    assert "block_scale" not in text


# --- loops ----------------------------------------------------------------------------------------

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
def loop(packed: bool, narrow: bool = False) -> Program:
    """sum over steps of (A SFA) (B SFB); scales in rows, or packed in 512 bytes. `narrow`: A and B
    are numbers of four bits, two to a byte.
    """
    p = Program()
    element, k = (t.I8, K // 2) if narrow else (t.F8E4M3FN, K)
    sources = [pieces(p, shape, element) for shape in ((M, k), (N, k))]
    rows = [(32, 16) if packed else (M, BLOCKS), (N, BLOCKS)]
    scales = [pieces(p, shape, t.F8E8M0FNU) for shape in rows]
    bounds = [p.argument(I32), p.argument(I32), p.constant(I32, 1)]
    start = p.constant(t.Tile((M, N), t.F32), 0)

    def body(i: Value, total: Value) -> list[Value]:
        a, b, sfa, sfb = (load(i) for load in (*sources, *scales))
        sfa = unpacked(p, sfa) if packed else sfa
        a, b = (unpack(p, x) if narrow else x for x in (a, b))
        operands = [a, turned(p, b), total, sfa, turned(p, sfb)]
        return [p.emit("mmaf_scaled", operands, total.type)]

    region = p.region([I32, start.type], body, "continue")
    total = p.emit("for", [*bounds, (start,)], start.type, regions=(region,))
    p.store(total, (M, N), t.F32)
    return p


def arguments(packed: bool, first: int, last: int, narrow: bool = False) -> list[Any]:
    rng = np.random.default_rng(7)
    element = t.F4E2M1FN if narrow else t.F8E4M3FN
    a, b = (codes((MOST, *shape), element, rng) for shape in ((M, K), (N, K)))
    shapes = (32, 16) if packed else (M, BLOCKS), (N, BLOCKS)
    scales = [rng.integers(126, 129, (MOST, *s)).astype(np.uint8).view(np.int8) for s in shapes]
    return [a, b, *scales, np.int32(first), np.int32(last), np.zeros((M, N), np.float32)]


@cache
def ptx(packed: bool, strategy: str = "unspecialize", narrow: bool = False) -> str:
    module = loop(packed, narrow).module()
    tile_cudatile.verify(module)
    options = {"pipeline-strategy": strategy, "tma-descriptors": "host"}
    made = tile_core.compile(
        str(tile_cudatile.to_mlir(module)), "sm_100", opt_level=2, emit="ptx",
        start_at="convert-cudatile-to-tileaa", options=options,
    )  # fmt: skip
    return str(made.stage("ptx"))


@cache
def meant(packed: bool, first: int, last: int, narrow: bool = False) -> np.ndarray:
    given = arguments(packed, first, last, narrow)
    tile_cudatile.evaluate(loop(packed, narrow).module(), "k", (1, 1, 1), given)
    return given[-1]


def agrees(
    text: str, packed: bool, schedule: str, first: int = 0, last: int = MOST, narrow: bool = False
) -> None:
    given = arguments(packed, first, last, narrow)
    report = tile_sim.Module(text).launch(
        "k", (1, 1, 1), None, given, check=True, schedule=schedule, max_steps=20_000
    )
    assert not report.findings
    np.testing.assert_array_equal(given[-1], meant(packed, first, last, narrow))


@pytest.mark.parametrize(
    ("packed", "narrow"), [(False, False), (True, False), (False, True), (True, True)]
)
def test_loops_of_every_length(packed: bool, narrow: bool) -> None:
    text = ptx(packed, narrow=narrow)
    assert "tcgen05.cp" in text
    assert ("kind::mxf4." in text) == narrow
    assert "cp.async.bulk.tensor" in text
    assert "st.shared.b8" not in text  # scales come by copies
    for first, last in ((0, 0), (2, 3), (0, MOST)):
        for schedule in SCHEDULES:
            agrees(text, packed, schedule, first, last, narrow)


def without_scales(element: t.Scalar, k: int) -> str:
    """PTX of a loop of products of 128 x 256 x k."""
    p = Program()
    sources = [pieces(p, shape, element) for shape in ((M, k), (2 * N, k))]
    bounds = [p.argument(I32), p.argument(I32), p.constant(I32, 1)]
    start = p.constant(t.Tile((M, 2 * N), t.F32), 0)

    def body(i: Value, total: Value) -> list[Value]:
        a, b = (load(i) for load in sources)
        return [p.emit("mmaf", [a, turned(p, b), total], total.type)]

    region = p.region([I32, start.type], body, "continue")
    p.store(p.emit("for", [*bounds, (start,)], start.type, regions=(region,)), (M, 2 * N), t.F32)
    options = {"tma-descriptors": "host", "num-warps": 8}
    made = tile_core.compile(
        str(tile_cudatile.to_mlir(p.module())), "sm_100", opt_level=2, emit="ptx",
        start_at="convert-cudatile-to-tileaa", options=options,
    )  # fmt: skip
    return str(made.stage("ptx"))


def test_stages_go_by_bytes_of_k() -> None:
    """Those of 8-bit floats last as long as those of half as many of f16."""
    wide, narrow = without_scales(t.F16, 64), without_scales(t.F8E4M3FN, 128)
    assert "kind::f16" in wide
    assert "kind::f8f6f4" in narrow
    sizes = [int(re.search(r"global_smem\[(\d+)\]", text)[1]) for text in (wide, narrow)]  # type: ignore[index]
    assert sizes[0] // 49152 == sizes[1] // 49152 == 4


def test_one_product_after_the_other() -> None:
    for schedule in SCHEDULES:
        agrees(ptx(False, "none"), False, schedule)


@pytest.mark.parametrize(
    "instruction",
    [r"tcgen05\.cp[^;]*", r"tcgen05\.commit[^;]*", r"cp\.async\.wait_group[^;]*",
     r"cp\.async\.commit_group[^;]*", r"fence\.proxy\.async[^;]*", r"tcgen05\.wait::ld[^;]*"],
)  # fmt: skip
@pytest.mark.parametrize("narrow", [False, True])
def test_nothing_of_it_can_go(instruction: str, narrow: bool) -> None:
    text = ptx(False, narrow=narrow)
    found = list(re.finditer(instruction + ";", text))
    assert found
    for one in found:
        assert _fails(text[: one.start()] + text[one.end() :], narrow), one[0]


def _fails(text: str, narrow: bool) -> bool:
    return is_caught(lambda schedule: agrees(text, False, schedule, narrow=narrow))
