"""Products with block scales, against the reference evaluator."""

import numpy as np
import pytest
from support.programs import Program
from support.scaled import check, codes, product, tile_of
from tile_cudatile import types as t

CASES = [
    (t.F8E4M3FN, t.F8E8M0FNU, 32),
    (t.F8E5M2, t.F8E8M0FNU, 32),
    (t.F4E2M1FN, t.F8E8M0FNU, 16),
    (t.F4E2M1FN, t.F8E8M0FNU, 32),
    (t.F4E2M1FN, t.F8E4M3FN, 16),
    (t.F4E2M1FN, t.F8E5M3FNU, 16),
]


@pytest.mark.parametrize(("element", "scale", "block"), CASES, ids=str)
def test_every_combination(element, scale, block):
    check(element, scale, block, (16, 16, 64))


@pytest.mark.parametrize("target", ["sm_80", "sm_89", "sm_100", "sm_120"])
def test_every_tier_of_targets(target):
    check(t.F4E2M1FN, t.F8E4M3FN, 16, (16, 8, 32), target=target)


#: Scales -> what instructions of sm_120 multiply by them, and tiles that many warps share.
INSTRUCTIONS = [
    (t.F8E4M3FN, t.F8E8M0FNU, 32, (64, 64, 128), "mxf8f6f4"),
    (t.F8E5M2, t.F8E8M0FNU, 32, (32, 16, 32), "mxf8f6f4"),
    (t.F8E4M3FN, t.F8E8M0FNU, 32, (16, 32, 256), "mxf8f6f4"),
    (t.F4E2M1FN, t.F8E8M0FNU, 32, (32, 64, 128), "mxf4"),
    (t.F4E2M1FN, t.F8E8M0FNU, 32, (64, 8, 32), "mxf8f6f4"),
    (t.F4E2M1FN, t.F8E4M3FN, 16, (64, 32, 64), "mxf4nvf4"),
    (t.F4E2M1FN, t.F8E4M3FN, 16, (16, 64, 256), "mxf4nvf4"),
]


@pytest.mark.parametrize(("element", "scale", "block", "shape", "kind"), INSTRUCTIONS, ids=str)
@pytest.mark.parametrize("batch", [(), (2,)], ids=["matrix", "batch"])
def test_instructions_that_take_scales(element, scale, block, shape, kind, batch):
    p, _ = product(element, scale, block, shape, batch)
    assert f".kind::{kind}.block_scale" in p.ptx(target="sm_120")
    check(element, scale, block, shape, batch=batch, target="sm_120")


@pytest.mark.parametrize("element", [t.F8E4M3FN, t.F8E5M2], ids=str)
@pytest.mark.parametrize(("batch", "shape"), [((), (64, 64, 128)), ((2,), (16, 32, 32))])
def test_products_without_scales_are_given_ones(element, batch, shape):
    """Full rate for 8-bit floats into f32 on sm_120."""
    p = Program()
    m, n, k = shape
    shapes = [(*batch, *s) for s in ((m, k), (k, n), (m, n))]
    a, b = (tile_of(p, s, element) for s in shapes[:2])
    acc = p.load(shapes[2], t.F32)
    p.store(p.emit("mmaf", [a, b, acc], t.Tile(shapes[2], t.F32)), shapes[2], t.F32)
    assert ".block_scale" in p.ptx(target="sm_120")
    assert ".block_scale" not in p.ptx(target="sm_89")
    rng = np.random.default_rng(3)
    data = [codes(s, element, rng) for s in shapes[:2]]
    acc = rng.integers(-4, 5, shapes[2]).astype(np.float32)
    p.agrees(*data, acc, np.zeros(shapes[2], np.float32), target="sm_120")


def test_tiles_of_fewer_instructions_than_warps_keep_signs_of_scales():
    """The instruction takes none; cuTile's own tests have negative scales of f8E4M3FN there."""
    p, shapes = product(t.F4E2M1FN, t.F8E4M3FN, 16, (16, 16, 64))
    assert ".block_scale" not in p.ptx(target="sm_120")
    rng = np.random.default_rng(4)
    data = [codes(s, t.F4E2M1FN, rng) for s in shapes[:2]]
    signed = np.array([0x38, 0x40, 0xB8, 0xC0], np.uint8).view(np.int8)
    data += [rng.choice(signed, int(np.prod(s))) for s in shapes[2:4]]
    acc = np.zeros(shapes[4], np.float32)
    p.agrees(*data, acc, acc.copy(), target="sm_120")


def test_a_batch_and_shapes_without_an_instruction():
    check(t.F8E4M3FN, t.F8E8M0FNU, 32, (4, 8, 32), batch=(2,))


def test_scales_that_no_narrower_format_holds():
    """2**120 on one side and 2**-120 on the other: the product is an ordinary number."""
    check(t.F8E4M3FN, t.F8E8M0FNU, 32, (16, 8, 32), first=247)


def test_nan_scales():
    p, shapes = product(t.F8E4M3FN, t.F8E8M0FNU, 32, (16, 8, 32))
    rng = np.random.default_rng(2)
    a, b = (codes(s, t.F8E4M3FN, rng) for s in shapes[:2])
    sfa, sfb = (np.full(int(np.prod(s)), 127, np.int8) for s in shapes[2:4])
    sfa[3] = -1
    out = np.zeros(shapes[4], np.float32)
    p.agrees(a, b, sfa, sfb, np.ones(shapes[4], np.float32), out)
    assert np.isnan(out[3]).all()
    assert not np.isnan(np.delete(out, 3, axis=0)).any()
