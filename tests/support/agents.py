"""Programs whose loops agents share: one copies for products of another. Run by tests."""

# pyright: reportArgumentType=false, reportOperatorIssue=false

import sys

import cuda.tile as ct
import numpy as np
from tile_sim.cutile import launches, settings

Int = ct.Constant[int]
ZERO = ct.PaddingMode.ZERO
TILE = (128, 128, 64)


def product(a, b, row, column, tm, tn, tk):
    """A tile of a @ b."""
    total = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(ct.num_tiles(a, axis=1, shape=(tm, tk))):
        left = ct.load(a, index=(row, k), shape=(tm, tk), padding_mode=ZERO)
        right = ct.load(b, index=(k, column), shape=(tk, tn), padding_mode=ZERO)
        total = ct.mma(left, right, total)
    return total


@ct.kernel
def persistent(a, b, bias, c, tm: Int, tn: Int, tk: Int):
    """Tiles in turn, with an epilogue of its own loads."""
    columns = ct.cdiv(b.shape[1], tn)
    for block in range(ct.bid(0), ct.cdiv(a.shape[0], tm) * columns, ct.num_blocks(0)):
        total = product(a, b, block // columns, block % columns, tm, tn, tk)
        total = total + ct.load(bias, index=(0, block % columns), shape=(1, tn), padding_mode=ZERO)
        ct.store(c, index=(block // columns, block % columns), tile=ct.astype(total, c.dtype))


@ct.kernel
def turns(a, b, c, tiles: int, tm: Int, tn: Int, tk: Int):
    """The same in a loop that ends by a condition, and with tiles that are left out."""
    block = ct.bid(0)
    columns = ct.cdiv(b.shape[1], tn)
    while block < tiles:
        if block % 3 != 1:
            total = product(a, b, block // columns, block % columns, tm, tn, tk)
            ct.store(c, index=(block // columns, block % columns), tile=ct.astype(total, c.dtype))
        block += ct.num_blocks(0)


@ct.kernel
def gated(a, b, gate, c, tm: Int, tn: Int, tk: Int):
    """Two products of a loop, of three operands; a row maximum of one scales the other."""
    total = ct.full((tm, tn), 0, dtype=ct.float32)
    other = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(ct.num_tiles(a, axis=1, shape=(tm, tk))):
        left = ct.load(a, index=(ct.bid(0), k), shape=(tm, tk), padding_mode=ZERO)
        right = ct.load(b, index=(k, ct.bid(1)), shape=(tk, tn), padding_mode=ZERO)
        second = ct.load(gate, index=(k, ct.bid(1)), shape=(tk, tn), padding_mode=ZERO)
        total = ct.mma(left, right, total)
        other = ct.mma(left, second, other)
    scaled = total * ct.max(other, axis=1, keepdims=True)
    ct.store(c, index=(ct.bid(0), ct.bid(1)), tile=ct.astype(scaled, c.dtype))


@ct.kernel
def twice(a, b, d, c, tm: Int, tn: Int, tk: Int):
    """Two loops, one after the other, with stages of their own."""
    first = product(a, b, ct.bid(0), ct.bid(1), tm, tn, tk)
    second = product(a, d, ct.bid(0), ct.bid(1), tm, tn, tk)
    ct.store(c, index=(ct.bid(0), ct.bid(1)), tile=ct.astype(first - second * 2, c.dtype))


@ct.kernel
def counted(a, b, lengths, c, tm: Int, tn: Int, tk: Int):
    """How far it goes stands in memory: one agent does all."""
    total = ct.full((tm, tn), 0, dtype=ct.float32)
    for k in range(ct.load(lengths, index=(ct.bid(0),), shape=()).item()):
        left = ct.load(a, index=(ct.bid(0), k), shape=(tm, tk), padding_mode=ZERO)
        right = ct.load(b, index=(k, ct.bid(1)), shape=(tk, tn), padding_mode=ZERO)
        total = ct.mma(left, right, total)
    ct.store(c, index=(ct.bid(0), ct.bid(1)), tile=ct.astype(total, c.dtype))


def check(name, found, wanted, *, agents=True):
    """Equal, and made by as many agents as are meant."""
    assert np.array_equal(found.astype(np.float64), wanted), name
    divided = "bar.sync \t1" in launches[-1].kernel.ptx
    assert divided == agents, f"{name}: {'agents' if divided else 'no agents'}"


def main(schedule, strategy):
    settings.arch, settings.opt_level, settings.strict = "sm_90", 3, True
    settings.options = {"pipeline-strategy": strategy}
    settings.launch = {"schedule": schedule}
    draw = np.random.default_rng(5)
    m, n, k = 248, 264, 200

    def integers(*shape):
        return draw.integers(-2, 3, shape).astype(np.float16)

    a, b, d, bias = integers(m, k), integers(k, n), integers(k, n), integers(1, n)
    c, wide = np.zeros((m, n), np.float16), a.astype(np.float64)
    whole = wide @ b
    for blocks, tile in ((4, TILE), (2, (64, 128, 64))):
        ct.launch(None, (blocks, 1, 1), persistent, (a, b, bias, c, *tile))
        check(f"persistent on {blocks} blocks", c, whole + bias)
    c[:] = 0
    ct.launch(None, (1, 1, 1), turns, (a, b, c, 6, *TILE))
    wanted = whole.copy()
    for block in (1, 4):
        row, column = block // 3 * 128, block % 3 * 128
        wanted[row : row + 128, column : column + 128] = 0
    check("turns", c, wanted)
    grid, small = (2, 3, 1), (a, b, d, c, 128, 128, 64)
    ct.launch(None, grid, twice, small)
    check("two loops", c, whole - wide @ d * 2)
    ct.launch(None, (4, 3, 1), gated, (a, b, d // 2, c, 64, 128, 64))
    wanted = np.concatenate(
        [
            whole[:, at : at + 128] * _padded(wide @ (d // 2), at).max(1, keepdims=True)
            for at in (0, 128, 256)
        ],
        axis=1,
    )
    check("two products", c, wanted.astype(np.float16).astype(np.float64))
    lengths = np.array([4, 2], np.int32)
    ct.launch(None, grid, counted, (a, b, lengths, c, *TILE))
    wanted = np.concatenate([whole[:128], wide[128:, :128] @ b[:128]])
    check("lengths from memory", c, wanted, agents=False)


def _padded(product_, at):
    """Columns of a tile, zeros outside."""
    part = product_[:, at : at + 128]
    return np.pad(part, ((0, 0), (0, 128 - part.shape[1])))


if __name__ == "__main__":
    main(*sys.argv[1:])
