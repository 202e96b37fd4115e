"""Products with block scales on tcgen05: scales go through shared to tensor memory."""

from __future__ import annotations

import re
from functools import partial

import pytest
import tile_cudatile
from support.programs import I32, Program
from support.removals import SCHEDULES, is_caught
from support.scaled import check, product
from support.scaled_loop import MOST, M, N, agrees, compiled, pieces, turned
from tile_cudatile import types as t
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


def ptx(packed: int, strategy: str = "unspecialize", narrow: bool = False) -> str:
    return compiled(packed, "sm_100", strategy, narrow)


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


@pytest.mark.parametrize("narrow", [False, True])
def test_scales_that_lie_as_they_are_read_come_by_tensor_maps(narrow: bool) -> None:
    """No thread touches them, and none waits for others in a step."""
    text = ptx(2, narrow=narrow)
    assert "cp.async.commit_group" not in text
    step = text[text.index("tcgen05.cp") : text.rindex("expect_tx")]  # from a product to new copies
    assert "tcgen05.commit" in step
    assert not re.search(r"\bbar(rier)?\.\w*\.?sync", step)
    for first, last in ((0, 0), (2, 3), (1, 3), (0, MOST)):
        for schedule in SCHEDULES:
            agrees(text, 2, schedule, first, last, narrow)


def test_none_of_their_waits_can_go() -> None:
    text = ptx(2)
    waits = r"(tcgen05\.cp|tcgen05\.commit|mbarrier\.arrive\.expect_tx)[^;]*;"
    found = list(re.finditer(waits, text))
    assert len(found) > 4
    for one in found:
        without = text[: one.start()] + text[one.end() :]
        assert is_caught(partial(_packed_agrees, without)), one[0]


def _packed_agrees(text: str, schedule: str) -> None:
    agrees(text, 2, schedule)


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
