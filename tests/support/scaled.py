"""Products with block scales as programs, and numbers whose sums are exact."""

import numpy as np
from tile_cudatile import types as t

from support.programs import Program

#: Codes of scales whose products are far from the ends of f32; four steps of each format.
ORDINARY = {t.F8E8M0FNU: 126, t.F8E4M3FN: 0x38, t.F8E5M3FNU: 0x78}


def tile_of(p, shape, element):
    """Numbers whose codes are a new argument."""
    count = int(np.prod(shape))
    raw = p.load((count * element.width // 8,), t.I8)
    name = "unpack" if element.width == 4 else "bitcast"
    x = p.emit(name, [raw], t.Tile((count,), element))
    return p.emit("reshape", [x], t.Tile(shape, element))


def codes(shape, element, rng):
    """Codes of small whole numbers and halves, whose sums are exact."""
    count = int(np.prod(shape))
    if element.width == 4:
        return rng.integers(-128, 128, count // 2).astype(np.int8)
    few = np.array([0, 0x38, 0x40, 0x44, -0x48, -0x40] if element == t.F8E4M3FN
                   else [0, 0x3C, 0x40, 0x42, -0x44, -0x40])  # fmt: skip
    return rng.choice(few, count).astype(np.int8)


def product(element, scale, block, shape, batch=(), turned=False):
    """`turned`: B comes as N x K, and is transposed."""
    m, n, k = shape
    p = Program()
    shapes = [(m, k), (k, n), (m, k // block), (k // block, n), (m, n)]
    shapes = [(*batch, *s) for s in shapes]
    a = tile_of(p, shapes[0], element)
    if turned:
        order = (*range(len(batch)), len(batch) + 1, len(batch))
        given = tile_of(p, (*batch, n, k), element)
        b = p.emit("permute", [given], t.Tile(shapes[1], element), permutation=order)
    else:
        b = tile_of(p, shapes[1], element)
    sfa, sfb = (tile_of(p, s, scale) for s in shapes[2:4])
    acc = p.load(shapes[4], t.F32)
    p.store(
        p.emit("mmaf_scaled", [a, b, acc, sfa, sfb], t.Tile(shapes[4], t.F32)), shapes[4], t.F32
    )
    return p, shapes


def check(element, scale, block, shape, *, batch=(), first=None, turned=False, **settings):
    p, shapes = product(element, scale, block, shape, batch, turned)
    rng = np.random.default_rng(1)
    data = [codes(s, element, rng) for s in shapes[:2]]
    low = ORDINARY[scale] if first is None else first
    scales = [rng.integers(low, low + 4, int(np.prod(s))) for s in shapes[2:4]]
    if first is not None:  # the other side makes up for it
        scales[1] = 254 - scales[1]
    data += [s.astype(np.uint8).view(np.int8) for s in scales]
    acc = rng.integers(-4, 5, shapes[4]).astype(np.float32)
    p.agrees(*data, acc, np.zeros(shapes[4], np.float32), **settings)
