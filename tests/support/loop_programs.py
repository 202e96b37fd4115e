"""Loops that bend: what a pass that lets loads run ahead can meet, one cuTile program each.

The names are those of the list that asynchronous loops are held to: conditional loads, early
exits, nested pairs, aliases, tiles with two users, values carried over two iterations, addresses
that are loaded, padding, odd bases and strides, boxes of more than 256 rows, atomics.
"""

# cuTile reads these functions' source: annotations are its own, values of arrays unknown here.
# pyright: basic

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cuda.tile as ct
import numpy as np

M, N, K = 64, 64, 32  # one tile of a product
ZERO, LOW, NAN = ct.PaddingMode.ZERO, ct.PaddingMode.NEG_INF, ct.PaddingMode.NAN
Arrays = tuple[Any, ...]


@ct.kernel
def conditional_load(a, b, keep, out, steps: int):
    """A step that is skipped loads nothing."""
    total = ct.full((M, N), 0, dtype=ct.float32)
    for i in range(steps):
        if ct.load(keep, index=(i,), shape=()).item() > 0:
            left = ct.load(a, index=(0, i), shape=(M, K))
            right = ct.load(b, index=(i, 0), shape=(K, N))
            total = ct.mma(left, right, total)
    ct.store(out, index=(0, 0), tile=total)


@ct.kernel
def conditional_use(a, b, keep, out, steps: int):
    """A step that is skipped has loaded its tiles."""
    total = ct.full((M, N), 0, dtype=ct.float32)
    for i in range(steps):
        left = ct.load(a, index=(0, i), shape=(M, K))
        right = ct.load(b, index=(i, 0), shape=(K, N))
        if ct.load(keep, index=(i,), shape=()).item() > 0:
            total = ct.mma(left, right, total)
    ct.store(out, index=(0, 0), tile=total)


@ct.kernel
def early_exit(a, b, keep, out, steps: int):
    """The first step that is not kept ends the loop."""
    total = ct.full((M, N), 0, dtype=ct.float32)
    i = 0
    while i < steps:
        left = ct.load(a, index=(0, i), shape=(M, K))
        right = ct.load(b, index=(i, 0), shape=(K, N))
        total = ct.mma(left, right, total)
        if ct.load(keep, index=(i,), shape=()).item() == 0:
            break
        i += 1
    ct.store(out, index=(0, 0), tile=total)


@ct.kernel
def early_return(a, b, keep, out, steps: int):
    """A block whose first step is not kept returns before its loop."""
    if ct.load(keep, index=(0,), shape=()).item() == 0:
        return
    total = ct.full((M, N), 0, dtype=ct.float32)
    for i in range(steps):
        left = ct.load(a, index=(0, i), shape=(M, K))
        right = ct.load(b, index=(i, 0), shape=(K, N))
        total = ct.mma(left, right, total)
    ct.store(out, index=(0, 0), tile=total)


@ct.kernel
def nested_pair(a, b, keep, out, steps: int):
    """Two loops in each turn of an outer one, the second of which runs as often as it is told."""
    total = ct.full((M, N), 0, dtype=ct.float32)
    for i in range(steps):
        for j in range(i):
            left = ct.load(a, index=(0, j), shape=(M, K))
            right = ct.load(b, index=(i, 0), shape=(K, N))
            total = ct.mma(left, right, total)
        for j in range(ct.load(keep, index=(i,), shape=()).item()):
            left = ct.load(a, index=(0, i), shape=(M, K))
            right = ct.load(b, index=(j, 0), shape=(K, N))
            total = ct.mma(left, right, total)
    ct.store(out, index=(0, 0), tile=total)


@ct.kernel
def through_memory(a, b, keep, out, steps: int):
    """Each step reads what the one before has stored."""
    for i in range(steps):
        left = ct.load(out, index=(0, i), shape=(M, K))
        right = ct.load(b, index=(i, 0), shape=(K, N))
        product = ct.mma(left, right, ct.full((M, N), 0, dtype=ct.float32))
        part = ct.extract(product, index=(0, 0), shape=(M, K))
        ct.store(out, index=(0, i + 1), tile=ct.astype(part, out.dtype))


@ct.kernel
def overwritten(a, b, keep, out, steps: int):
    """Twice, what the steps of a loop have read is overwritten behind it."""
    for _ in range(2):
        total = ct.full((M, N), 0, dtype=ct.float32)
        for j in range(steps):
            left = ct.load(out, index=(0, j), shape=(M, K))
            right = ct.load(b, index=(j, 0), shape=(K, N))
            total = ct.mma(left, right, total)
        ct.store(out, index=(0, 1), tile=ct.full((M, N), 1, dtype=out.dtype))
        ct.store(out, index=(0, 0), tile=ct.astype(total, out.dtype))


@ct.kernel
def stored_before(a, b, keep, out, steps: int):
    """A loop reads the product that was stored in front of it, and is overwritten behind it."""
    left = ct.load(a, index=(0, 0), shape=(M, K))
    right = ct.load(b, index=(0, 0), shape=(K, N))
    first = ct.mma(left, right, ct.full((M, N), 0, dtype=ct.float32))
    ct.store(out, index=(0, 0), tile=ct.astype(first, out.dtype))
    total = ct.full((M, N), 0, dtype=ct.float32)
    for i in range(steps):
        left = ct.load(out, index=(0, i % 2), shape=(M, K))
        right = ct.load(b, index=(i, 0), shape=(K, N))
        total = ct.mma(left, right, total)
    ct.store(out, index=(0, 0), tile=ct.astype(total, out.dtype))


@ct.kernel
def unlocked(a, b, keep, out, steps: int):
    """A lock is given back behind all that was read under it."""
    total = ct.full((M, N), 0, dtype=ct.float32)
    while ct.atomic_cas(keep, 0, 0, 1, memory_order=ct.MemoryOrder.ACQUIRE) == 1:
        pass
    for i in range(steps):
        left = ct.load(a, index=(0, i), shape=(M, K))
        right = ct.load(b, index=(i, 0), shape=(K, N))
        total = ct.mma(left, right, total)
    ct.atomic_xchg(keep, 0, 0, memory_order=ct.MemoryOrder.RELEASE)
    ct.store(out, index=(0, 0), tile=total)


@ct.kernel
def two_users(a, b, keep, out, steps: int):
    """A tile that a product reads, and a sum over its rows, turned as well."""
    total = ct.full((M, N), 0, dtype=ct.float32)
    rows = ct.full((M, 1), 0, dtype=ct.float32)
    for i in range(steps):
        left = ct.load(a, index=(0, i), shape=(M, K))
        right = ct.load(b, index=(i, 0), shape=(K, N))
        total = ct.mma(left, right, total)
        rows = rows + ct.sum(ct.astype(left, ct.float32), axis=1, keepdims=True)
    ct.store(out, index=(0, 0), tile=total + ct.transpose(total) + rows)


@ct.kernel
def carried_twice(a, b, keep, out, steps: int):
    """Each product's left tile was loaded two steps before."""
    total = ct.full((M, N), 0, dtype=ct.float32)
    last = ct.load(a, index=(0, 0), shape=(M, K))
    older = last
    for i in range(steps):
        now = ct.load(a, index=(0, i), shape=(M, K))
        right = ct.load(b, index=(i, 0), shape=(K, N))
        total = ct.mma(older, right, total)
        older = last
        last = now
    ct.store(out, index=(0, 0), tile=total)


@ct.kernel
def loaded_address(a, b, keep, out, steps: int):
    """Which tile of B is read stands in memory."""
    total = ct.full((M, N), 0, dtype=ct.float32)
    for i in range(steps):
        left = ct.load(a, index=(0, i), shape=(M, K))
        which = ct.load(keep, index=(i,), shape=()).item()
        right = ct.load(b, index=(which, 0), shape=(K, N))  # pyright: ignore[reportArgumentType] - scalars are tiles
        total = ct.mma(left, right, total)
    ct.store(out, index=(0, 0), tile=total)


@ct.kernel
def dynamic_step(a, b, keep, out, steps: int):
    """First and step are known at a launch, too."""
    total = ct.full((M, N), 0, dtype=ct.float32)
    first = ct.load(keep, index=(0,), shape=()).item()
    for i in range(first, steps, first + 2):
        left = ct.load(a, index=(0, i), shape=(M, K))
        right = ct.load(b, index=(i, 0), shape=(K, N))
        total = ct.mma(left, right, total)
    ct.store(out, index=(0, 0), tile=total)


@ct.kernel
def low_padding(a, b, keep, out, steps: int):
    """The largest of each row, beyond whose end lies minus infinity."""
    most = ct.full((M, K), -1e30, dtype=ct.float32)
    for i in range(ct.num_tiles(a, axis=1, shape=(M, K))):
        left = ct.load(a, index=(0, i), shape=(M, K), padding_mode=LOW)
        most = ct.maximum(most, ct.astype(left, ct.float32))
    rows = ct.max(most, axis=1, keepdims=True)
    ct.store(out, index=(0, 0), tile=rows + ct.full((M, N), 0, dtype=ct.float32))


@ct.kernel
def nan_padding(a, b, keep, out, steps: int):
    """How many elements of each row are no numbers, which only what lies beyond its end is."""
    count = ct.full((M, K), 0, dtype=ct.float32)
    for i in range(ct.num_tiles(a, axis=1, shape=(M, K))):
        left = ct.astype(ct.load(a, index=(0, i), shape=(M, K), padding_mode=NAN), ct.float32)
        count = count + ct.where(left == left, 0.0, 1.0)
    rows = ct.sum(count, axis=1, keepdims=True)
    ct.store(out, index=(0, 0), tile=rows + ct.full((M, N), 0, dtype=ct.float32))


@ct.kernel
def ragged(a, b, keep, out, steps: int):
    """Neither rows nor columns nor steps divide; what is beyond is zero."""
    total = ct.full((M, N), 0, dtype=ct.float32)
    for i in range(ct.num_tiles(a, axis=1, shape=(M, K))):
        left = ct.load(a, index=(0, i), shape=(M, K), padding_mode=ZERO)
        right = ct.load(b, index=(i, 0), shape=(K, N), padding_mode=ZERO)
        total = ct.mma(left, right, total)
    ct.store(out, index=(0, 0), tile=total)


@ct.kernel
def tall_boxes(a, b, keep, out, steps: int):
    """A tile of 512 rows, which no box of a tensor map holds."""
    total = ct.full((512, 16), 0, dtype=ct.float32)
    for i in range(steps):
        left = ct.load(a, index=(0, i), shape=(512, 16))
        right = ct.load(b, index=(i, 0), shape=(16, 16))
        total = ct.mma(left, right, total)
    ct.store(out, index=(0, 0), tile=total)


@ct.kernel
def counted(a, b, keep, out, steps: int):
    """Each step counts itself in memory, once."""
    total = ct.full((M, N), 0, dtype=ct.float32)
    for i in range(steps):
        left = ct.load(a, index=(0, i), shape=(M, K))
        right = ct.load(b, index=(i, 0), shape=(K, N))
        before = ct.atomic_add(keep, (i,), 1)
        total = ct.mma(left, right, total) + ct.astype(before, ct.float32)
    ct.store(out, index=(0, 0), tile=total)


@ct.kernel
def listed(several_a, several_b, keep, several_out, steps: int):
    """Arrays of lists, each with an address, sizes and strides of its own."""
    for g in range(len(several_a)):
        a, b, out = several_a[g], several_b[g], several_out[g]
        for row in range(ct.num_tiles(out, 0, (M, N))):
            total = ct.full((M, N), 0, dtype=ct.float32)
            for i in range(steps):
                left = ct.load(a, index=(row, i), shape=(M, K), padding_mode=ZERO)
                right = ct.load(b, index=(i, 0), shape=(K, N), padding_mode=ZERO)
                total = ct.mma(left, right, total)
            ct.store(out, index=(row, 0), tile=ct.astype(total, out.dtype))


@ct.kernel
def dealt(several_a, several_b, keep, several_out, steps: int):
    """The same, tiles dealt out one after the other to blocks, of which there is one."""
    tile, before = ct.bid(0), 0
    for g in range(len(several_a)):
        a, b, out = several_a[g], several_b[g], several_out[g]
        count = ct.num_tiles(out, 0, (M, N))
        while tile >= before and tile < before + count:
            total = ct.full((M, N), 0, dtype=ct.float32)
            for i in range(steps):
                left = ct.load(a, index=(tile - before, i), shape=(M, K), padding_mode=ZERO)
                right = ct.load(b, index=(i, 0), shape=(K, N), padding_mode=ZERO)
                total = ct.mma(left, right, total)
            ct.store(out, index=(tile - before, 0), tile=ct.astype(total, out.dtype))
            tile += 1
        before += count


WIDE = (128, 64, 256)  # M, K and N of a tile that leaves no room for all of it beside stages


@ct.kernel
def in_turn(a, b, keep, out, steps: int):
    """Tiles one after the other, of which each is stored while the next one is multiplied."""
    m, k, n = WIDE
    for tile in range(ct.bid(0), ct.num_tiles(out, 0, (m, n)), ct.num_blocks(0)):
        total = ct.full((m, n), 0, dtype=ct.float32)
        for i in range(steps):
            left = ct.load(a, index=(tile, i), shape=(m, k), padding_mode=ZERO)
            right = ct.load(b, index=(i, 0), shape=(k, n), padding_mode=ZERO)
            total = ct.mma(left, right, total)
        ct.store(out, index=(tile, 0), tile=total)


TALL = (256, 32, 256)  # a tile whose sums of f32 shared memory does not hold


@ct.kernel
def of_a_batch(a, b, keep, out, steps: int):
    """Sums with an axis of one element more, too many to be staged at once."""
    m, k, n = TALL
    total = ct.full((m, n), 0, dtype=ct.float32)
    for i in range(steps):
        left = ct.load(a, index=(0, i), shape=(m, k), padding_mode=ZERO)
        right = ct.load(b, index=(i, 0), shape=(k, n), padding_mode=ZERO)
        total = ct.mma(left, right, total)
    ct.store(out, index=(0, 0, 0), tile=ct.reshape(total, (1, m, n)))


@dataclass(frozen=True)
class Case:
    """One launch: arrays, how many steps, what `out` holds afterwards (float64)."""

    kernel: Any
    arrays: Arrays  # a, b, keep, out
    steps: int
    wanted: np.ndarray


def _operands(steps: int, pad: int = 0, offset: int = 0) -> Arrays:
    """Small integers, whose sums are exact; rows are `pad` elements longer than they need be, and
    begin `offset` elements into their allocation.
    """
    rng = np.random.default_rng(steps)
    columns = max(steps, 1) * K
    a = rng.integers(-3, 4, (M, columns + pad + offset)).astype(np.float16)
    b = rng.integers(-3, 4, (columns, N + pad + offset)).astype(np.float16)
    keep = rng.integers(0, 2, max(steps, 1)).astype(np.int32)
    return a[:, offset : offset + columns], b[:, offset : offset + N], keep


def _parts(a: np.ndarray, b: np.ndarray, i: int, j: int | None = None) -> np.ndarray:
    """Step i's product, or that of A's tile i with B's tile j."""
    j = i if j is None else j
    left, right = a[:, K * i : K * (i + 1)], b[K * j : K * (j + 1)]
    return left.astype(np.float64) @ right.astype(np.float64)


def _sum(parts: list[np.ndarray]) -> np.ndarray:
    return sum(parts, np.zeros((M, N)))


def _simple(kernel: Any, chosen: Callable[[Arrays, int], np.ndarray]) -> Callable[[int], Case]:
    """A kernel over `_operands`, whose result `chosen` says."""

    def case(steps: int) -> Case:
        a, b, keep = _operands(steps)
        wanted = chosen((a, b, keep), steps)
        return Case(kernel, (a, b, keep, np.ones((M, N), np.float32)), steps, wanted)

    return case


def _kept(arrays: Arrays, steps: int) -> np.ndarray:
    a, b, keep = arrays
    return _sum([_parts(a, b, i) for i in range(steps) if keep[i]])


def _until(arrays: Arrays, steps: int) -> np.ndarray:
    a, b, keep = arrays
    ends = [i for i in range(steps) if not keep[i]]
    return _sum([_parts(a, b, i) for i in range(min([steps, *(end + 1 for end in ends)]))])


def _returned(arrays: Arrays, steps: int) -> np.ndarray:
    a, b, keep = arrays
    return _sum([_parts(a, b, i) for i in range(steps)]) if keep[0] else np.ones((M, N))


def _used_twice(arrays: Arrays, steps: int) -> np.ndarray:
    a, b, _ = arrays
    total = _sum([_parts(a, b, i) for i in range(steps)])
    return total + total.T + a[:, : K * steps].astype(np.float64).sum(1, keepdims=True)


def _delayed(arrays: Arrays, steps: int) -> np.ndarray:
    a, b, _ = arrays
    return _sum([_parts(a, b, max(i - 2, 0), i) for i in range(steps)])


def _chosen(arrays: Arrays, steps: int) -> np.ndarray:
    a, b, keep = arrays
    return _sum([_parts(a, b, i, int(keep[i])) for i in range(steps)])


def _strided(arrays: Arrays, steps: int) -> np.ndarray:
    a, b, keep = arrays
    return _sum([_parts(a, b, i) for i in range(int(keep[0]), steps, int(keep[0]) + 2)])


def _through(steps: int) -> Case:
    _, b, keep = _operands(steps)
    b[:] = 0  # but for one element of a column, so that values of any number of steps stay exact
    for i in range(steps):
        b[K * i + np.random.default_rng(i).permutation(K), np.arange(K)] = 1 - 2 * (i % 2)
    out = np.zeros((M, (steps + 1) * K), np.float16)
    out[:, :K] = np.eye(M, K)
    wanted = out.astype(np.float64)
    for i in range(steps):
        product = wanted[:, K * i : K * (i + 1)] @ b[K * i : K * (i + 1), :K].astype(np.float64)
        wanted[:, K * (i + 1) : K * (i + 2)] = product
    return Case(through_memory, (out, b, keep, out), steps, wanted)


def _overwritten(steps: int) -> Case:
    rng = np.random.default_rng(steps)
    count = max(steps, 2 * N // K)
    out = rng.integers(-1, 2, (M, count * K)).astype(np.float16)
    b = (rng.integers(0, 8, (count * K, N)) == 0).astype(np.float16)
    wanted = out.astype(np.float64)
    for _ in range(2):
        product = wanted[:, : steps * K] @ b[: steps * K].astype(np.float64)
        wanted[:, :N], wanted[:, N : 2 * N] = product, 1
    return Case(overwritten, (out, b, np.zeros(1, np.int32), out), steps, wanted)


def _stored_before(steps: int) -> Case:
    a, b, keep = _operands(steps)
    b[:] = b == 3
    out = np.zeros((M, N), np.float16)
    first = _parts(a, b, 0)
    parts = [_parts(first, b, i % 2, i) for i in range(steps)]
    return Case(stored_before, (a, b, keep, out), steps, _sum(parts))


def _unlocked(arrays: Arrays, steps: int) -> np.ndarray:
    a, b, keep = arrays
    keep[0] = 0
    return _sum([_parts(a, b, i) for i in range(steps)])


def _cut(kernel: Any, pad: int, offset: int, rows: int, columns: int) -> Callable[[int], Case]:
    """Operands of `rows` rows, `columns` short of whole steps."""

    def case(steps: int) -> Case:
        a, b, keep = _operands(max(steps, 1), pad, offset)
        a = a[:rows, : a.shape[1] - columns]
        b = b[: b.shape[0] - columns]
        out = np.ones((rows, N), np.float32)
        wide = a.astype(np.float64)
        if kernel is low_padding:
            wanted = wide.max(1, keepdims=True) + 0 * out
        elif kernel is nan_padding:
            wanted = np.full_like(out, columns)
        else:
            wanted = wide @ b.astype(np.float64)
        return Case(kernel, (a, b, keep, out), steps, wanted)

    return case


def _inner(steps: int) -> Case:
    a, b, _ = _operands(steps)
    keep = np.random.default_rng(steps).permutation(max(steps, 1)).astype(np.int32)
    pairs = [(j, i) for i in range(steps) for j in range(i)]
    pairs += [(i, j) for i in range(steps) for j in range(keep[i])]
    wanted = _sum([_parts(a, b, i, j) for i, j in pairs])
    return Case(nested_pair, (a, b, keep, np.ones((M, N), np.float32)), steps, wanted)


def _tall(steps: int) -> Case:
    rng = np.random.default_rng(steps)
    count = max(steps, 1)
    a = rng.integers(-3, 4, (512, 16 * count)).astype(np.float16)
    b = rng.integers(-3, 4, (16 * count, 16)).astype(np.float16)
    wanted = a[:, : 16 * steps].astype(np.float64) @ b[: 16 * steps].astype(np.float64)
    return Case(tall_boxes, (a, b, np.zeros(1, np.int32), np.ones((512, 16), np.float32)), steps,
                wanted)  # fmt: skip


def _counted(steps: int) -> Case:
    a, b, keep = _operands(steps)
    wanted = _sum([_parts(a, b, i) + int(keep[i]) for i in range(steps)])
    return Case(counted, (a, b, keep, np.ones((M, N), np.float32)), steps, wanted)


def _several(kernel: Any) -> Callable[[int], Case]:
    """Three pairs of operands, which end before the last step and the last row or reach beyond."""

    def case(steps: int) -> Case:
        rng, arrays, wanted = np.random.default_rng(steps), ([], [], []), []
        for g in range(3):
            depth = max(1, steps + 1 - g) * K - 8
            a = rng.integers(-3, 4, (2 * M - 24 * g, depth + 8 * g)).astype(np.float16)
            b = rng.integers(-3, 4, (depth, N + 8 * g)).astype(np.float16)
            found = np.zeros((2 * M, N))
            read = min(depth, steps * K)
            found[: len(a)] = a[:, :read].astype(np.float64) @ b[:read, :N].astype(np.float64)
            out = np.ones((2 * M, N), np.float16)
            for some, one in zip(arrays, (a[:, :depth], b[:, :N], out), strict=True):
                some.append(one)
            wanted.append(found.astype(np.float16))
        a, b, out = arrays
        return Case(kernel, (a, b, np.zeros(1, np.int32), out), steps, np.array(wanted))

    return case


def _of_a_batch(steps: int) -> Case:
    """A matrix of fewer rows than the tile has."""
    m, k, n = TALL
    draw, depth = np.random.default_rng(steps), max(steps, 1) * k
    shapes = ((m - 40, depth), (depth, n))
    a, b = (draw.integers(-3, 4, shape).astype(np.float16) for shape in shapes)
    wanted = a[:, : steps * k].astype(np.float64) @ b[: steps * k].astype(np.float64)
    out = np.full((1, m - 40, n), 7, np.float32)
    return Case(of_a_batch, (a, b, np.ones(1, np.int32), out), steps, wanted[None])


def _in_turn(steps: int) -> Case:
    """Three tiles, the last one of fewer rows."""
    m, k, n = WIDE
    draw = np.random.default_rng(steps)
    rows, depth = 2 * m + 72, max(steps * k - 8, 8)
    a, b = (draw.integers(-3, 4, shape).astype(np.float16) for shape in ((rows, depth), (depth, n)))
    out = np.full((rows, n), 7, np.float32)
    used = min(depth, steps * k)
    wanted = a[:, :used].astype(np.float64) @ b[:used].astype(np.float64)
    return Case(in_turn, (a, b, np.ones(1, np.int32), out), steps, wanted)


CASES: dict[str, Callable[[int], Case]] = {
    "conditional load": _simple(conditional_load, _kept),
    "conditional use": _simple(conditional_use, _kept),
    "early exit": _simple(early_exit, _until),
    "early return": _simple(early_return, _returned),
    "nested pair": _inner,
    "through memory": _through,
    "overwritten behind": _overwritten,
    "stored before": _stored_before,
    "unlocked behind": _simple(unlocked, _unlocked),
    "two users": _simple(two_users, _used_twice),
    "carried twice": _simple(carried_twice, _delayed),
    "loaded address": _simple(loaded_address, _chosen),
    "dynamic step": _simple(dynamic_step, _strided),
    "padding of minus infinity": _cut(low_padding, 8, 0, M, 5),
    "padding of NaN": _cut(nan_padding, 8, 0, M, 16),
    "ragged": _cut(ragged, 8, 0, M - 7, 8),
    "base off by 8 bytes": _cut(ragged, 4, 4, M, 0),
    "stride of 8 bytes": _cut(ragged, 4, 0, M, 0),
    "boxes of 512 rows": _tall,
    "counted once": _counted,
    "arrays of a list": _several(listed),
    "tiles dealt out": _several(dealt),
    "sums in turn": _in_turn,
    "sums of a batch": _of_a_batch,
}
