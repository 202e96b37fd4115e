"""Operations that move elements."""

from __future__ import annotations

import cuda.tile as ct
from unit.tile_cudatile.corpus.cases import array, case, each


@ct.kernel
def concatenated(x, y, z):
    i = ct.bid(0)
    a, b = ct.load(x, (i, 0), (4, 8)), ct.load(y, (i, 0), (4, 8))
    ct.store(z, (i, 0), ct.cat((a, b), axis=0))
    ct.store(z, (i, 0), ct.cat((b, a), axis=1))
    ct.store(z, (i, 1), ct.cat((a, b), axis=-1))


@ct.kernel
def reshaped(x, y):
    i = ct.bid(0)
    t = ct.load(x, (i, 0), (4, 8))
    ct.store(y, (i, 0), ct.reshape(t, (8, 4)))
    ct.store(y, (i, 1), t.reshape((2, 2, 8)).reshape((2, 16)))
    u = ct.reshape(t, (32,))
    ct.store(y, (0, i), ct.reshape(ct.expand_dims(u, 0), (16, 2)))
    ct.store(y, (i, i), ct.expand_dims(u, axis=-1))


@ct.kernel
def permuted(x, y):
    i, j, k = ct.bid(0), ct.bid(1), ct.bid(2)
    t = ct.load(x, (i, j, k), (2, 4, 8))
    ct.store(y, (j, k, i), ct.permute(t, (1, 2, 0)))
    ct.store(y, (k, j, i), t.permute((2, 1, 0)))
    ct.store(y, (j, i, k), ct.transpose(t, 0, 1))
    ct.store(y, (i, k, j), t.transpose(1, 2))


@ct.kernel
def broadcast(x, y):
    i = ct.bid(0)
    row = ct.load(x, (i, 0), (1, 8))
    ct.store(y, (i, 0), ct.broadcast_to(row, (4, 8)))
    column = ct.load(x, (0, i), (8, 1))
    ct.store(y, (0, i), ct.broadcast_to(column, (8, 16)))
    single = ct.load(x, (i, i), (1, 1))
    ct.store(y, (i, i), ct.broadcast_to(single, (4, 4)))


@ct.kernel
def sliced(x, y):
    i = ct.bid(0)
    t = ct.load(x, (i, 0), (8, 16))
    ct.store(y, (i, 0), ct.extract(t, (1, 2), (4, 4)))
    ct.store(y, (i, 1), t.extract((i, 0), (2, 8)))
    ct.store(y, (0, i), t[None, :, None].reshape((16, 8)))


@ct.kernel
def inserted(x, y):
    i = ct.bid(0)
    t = ct.load(x, (i, 0), (8, 16))
    part = ct.load(x, (0, i), (4, 4))
    ct.store(y, (i, 0), ct.insert(t, (1, 2), part))
    ct.store(y, (i, 1), t.insert((i, 0), part))


def pairs(dtype):
    return [array(dtype, 2), array(dtype, 2)]


case("cat", concatenated, each(lambda d: [*pairs(d), array(d, 2)]))
case("reshape", reshaped, each(pairs))
case("permute", permuted, each(lambda d: [array(d, 3), array(d, 3)]))
case("broadcast_to", broadcast, each(pairs))
case("extract", sliced, each(pairs))
case("insert", inserted, each(pairs))


@ct.kernel
def matrix_transposed(x, y):
    i, j = ct.bid(0), ct.bid(1)
    ct.store(y, (j, i), ct.transpose(ct.load(x, (i, j), (8, 16))))


case("transpose", matrix_transposed, each(pairs))
