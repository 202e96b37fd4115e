"""Kernels of data, numbers and points, as users write them.

benchmarks/data_rows.py has their arguments, and what NumPy makes of the same.
"""

import cuda.tile as ct
from user_kernels import ZERO, Int


@ct.kernel
def radix_pass(keys, starts, out, shift: Int, length: Int):
    """A pass of a radix sort by four bits: where each key of a block goes, and it there."""
    block = ct.bid(0)
    key = ct.load(keys, (block,), (length,))
    digit = (key >> shift) & 15
    place = ct.full((length,), 0, dtype=ct.int32)
    for one in ct.static_iter(range(16)):
        hit = (digit == one).astype(ct.int32)
        before = ct.cumsum(hit, 0) - hit + ct.gather(starts, (block, one))
        place = ct.where(hit == 1, before, place)
    ct.scatter(out, place, key)


@ct.kernel
def digit_counts(keys, counts, shift: Int, length: Int):
    """How many keys of a block have which of sixteen digits."""
    digit = (ct.load(keys, (ct.bid(0),), (length,)) >> shift) & 15
    which = ct.arange(16, dtype=ct.uint32).reshape((16, 1))
    hits = (digit.reshape((1, length)) == which).astype(ct.int32)
    ct.store(counts, (ct.bid(0), 0), ct.sum(hits, axis=1).reshape((1, 16)))


@ct.kernel
def merged(first, second, out, steps: Int, length: Int):
    """Two sorted rows as one: each number's place by a binary search in the other row."""
    at = ct.bid(0) * length + ct.arange(length, dtype=ct.int32)
    for own, other, strict in ct.static_iter(((0, 1, True), (1, 0, False))):
        mine, theirs = (first, second)[own], (first, second)[other]
        there = at < mine.shape[0]
        key = ct.gather(mine, at)
        low = ct.full((length,), 0, dtype=ct.int32)
        high = ct.full((length,), 0, dtype=ct.int32) + theirs.shape[0]
        for _ in range(steps):
            middle = (low + high) >> 1
            found = ct.gather(theirs, middle, padding_value=0)
            right = (found < key) & (low < high) if strict else (found <= key) & (low < high)
            low, high = ct.where(right, middle + 1, low), ct.where(right, high, middle)
        ct.scatter(out, at + low, key, mask=there)


@ct.kernel
def number_transform(x, roots, out, modulus: Int, inverse: Int, length: Int):
    """One layer of a number-theoretic transform: butterflies modulo a prime of 31 bits."""
    row, part = ct.bid(0), ct.bid(1)
    a = ct.load(x, (row, 0, part), (1, 1, length)).reshape((1, length))
    b = ct.load(x, (row, 1, part), (1, 1, length)).reshape((1, length))
    root = ct.load(roots, (part,), (length,)).reshape((1, length))
    product = b.astype(ct.uint64) * root.astype(ct.uint64)
    low, high = product.astype(ct.uint32), (product >> 32).astype(ct.uint32)
    factor = (low * inverse).astype(ct.uint64)
    cut = (factor * modulus >> 32).astype(ct.uint32)
    turned = ct.where(high >= cut, high - cut, high + modulus - cut)
    total = a + turned
    total = ct.where(total >= modulus, total - modulus, total)
    apart = ct.where(a >= turned, a - turned, a + modulus - turned)
    ct.store(out, (row, 0, part), total.reshape((1, 1, length)))
    ct.store(out, (row, 1, part), apart.reshape((1, 1, length)))


@ct.kernel
def forest(x, features, limits, leaves, out, rows: Int, depth: Int):
    """Sums of the leaves that rows of features reach in each of many trees."""
    row = ct.bid(0) * rows + ct.arange(rows, dtype=ct.int32)
    total = ct.full((rows,), 0, dtype=ct.float32)
    for tree in range(features.shape[0]):
        node = ct.full((rows,), 0, dtype=ct.int32)
        for _ in range(depth):
            feature = ct.gather(features, (tree, node))
            right = ct.gather(x, (row, feature)) > ct.gather(limits, (tree, node))
            node = 2 * node + ct.where(right, 2, 1)
        total += ct.gather(leaves, (tree, node - ((1 << depth) - 1)))
    ct.scatter(out, row, total)


@ct.kernel
def substitution(lower, right, out, n: Int, columns: Int):
    """L X = B for a small triangular matrix, and many columns (forward substitution)."""
    batch, part = ct.bid(0), ct.bid(1)
    matrix = ct.load(lower, (batch, 0, 0), (1, n, n)).reshape((n, n))
    rest = ct.load(right, (batch, 0, part), (1, n, columns)).reshape((n, columns))
    i = ct.arange(n, dtype=ct.int32).reshape((n, 1))
    j = ct.arange(n, dtype=ct.int32).reshape((1, n))
    found = ct.full((n, columns), 0, dtype=ct.float32)
    for at in range(n):
        column = ct.sum(ct.where(j == at, matrix, 0.0), axis=1, keepdims=True)
        pivot = ct.sum(ct.where(i == at, column, 0.0), axis=0, keepdims=True)
        row = ct.sum(ct.where(i == at, rest, 0.0), axis=0, keepdims=True) / pivot
        found = ct.where(i == at, row, found)
        rest = rest - column * row
    ct.store(out, (batch, 0, part), found.reshape((1, n, columns)))


@ct.kernel
def turned_points(points, turns, shifts, out, count: Int):
    """Points of three coordinates, side by side, turned and shifted."""
    batch = ct.bid(1)
    at = ct.bid(0) * count + ct.arange(count, dtype=ct.int32)
    x, y, z = (
        ct.gather(points, (batch, at, 0)),
        ct.gather(points, (batch, at, 1)),
        ct.gather(points, (batch, at, 2)),
    )
    for i in ct.static_iter(range(3)):
        a, b, c = (
            ct.gather(turns, (batch, i, 0)),
            ct.gather(turns, (batch, i, 1)),
            ct.gather(turns, (batch, i, 2)),
        )
        ct.scatter(out, (batch, at, i), a * x + b * y + c * z + ct.gather(shifts, (batch, i)))


@ct.kernel
def neighbour_forces(x, y, z, others, force_x, force_y, force_z, rows: Int, width: Int):
    """Forces of Lennard-Jones between particles and those that a list has for each."""
    i = ct.bid(0) * rows + ct.arange(rows, dtype=ct.int32).reshape((rows, 1))
    own = ct.gather(x, i), ct.gather(y, i), ct.gather(z, i)
    other = ct.load(others, (ct.bid(0), 0), (rows, width))
    there = other >= 0
    dx = own[0] - ct.gather(x, other, mask=there, padding_value=0)
    dy = own[1] - ct.gather(y, other, mask=there, padding_value=0)
    dz = own[2] - ct.gather(z, other, mask=there, padding_value=0)
    squared = dx * dx + dy * dy + dz * dz
    near = there & (squared < 6.25)
    inverse = 1.0 / ct.where(near, squared, 1.0)
    sixth = inverse * inverse * inverse
    size = ct.where(near, 24.0 * inverse * sixth * (2.0 * sixth - 1.0), 0.0)
    ct.store(force_x, (ct.bid(0),), ct.sum(size * dx, axis=1))
    ct.store(force_y, (ct.bid(0),), ct.sum(size * dy, axis=1))
    ct.store(force_z, (ct.bid(0),), ct.sum(size * dz, axis=1))


def rolled(x, by):
    """Bits of a word, `by` to the right and around."""
    return (x >> by) | (x << (32 - by))


@ct.kernel
def digests(words, constants, out, count: Int):
    """SHA-256 of messages of one block each; a message is a column of sixteen words."""
    at = ct.bid(0)
    w = (ct.load(words, (0, at), (1, count)),)
    for i in ct.static_iter(range(1, 16)):
        w = (*w, ct.load(words, (i, at), (1, count)))
    start = (ct.full((1, count), 0x6A09E667, dtype=ct.uint32),)
    for value in ct.static_iter(
        (0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19)
    ):
        start = (*start, ct.full((1, count), value, dtype=ct.uint32))
    a, b, c, d, e, f, g, h = start
    for i in ct.static_iter(range(64)):
        sums = rolled(e, 6) ^ rolled(e, 11) ^ rolled(e, 25)
        one = h + sums + ((e & f) ^ (~e & g)) + ct.gather(constants, i) + w[0]
        sums = rolled(a, 2) ^ rolled(a, 13) ^ rolled(a, 22)
        two = sums + ((a & b) ^ (a & c) ^ (b & c))
        a, b, c, d, e, f, g, h = one + two, a, b, c, d + one, e, f, g
        small = rolled(w[1], 7) ^ rolled(w[1], 18) ^ (w[1] >> 3)
        large = rolled(w[14], 17) ^ rolled(w[14], 19) ^ (w[14] >> 10)
        w = (*w[1:], w[0] + small + w[9] + large)
    state = (a, b, c, d, e, f, g, h)
    for i in ct.static_iter(range(8)):
        ct.store(out, (i, at), state[i] + start[i])


@ct.kernel
def volume(density, colour, out, steps: int, pitch: float, rows: Int, columns: Int):
    """Rays through a volume, front to back, each until it is opaque."""
    i = ct.bid(0) * rows + ct.arange(rows, dtype=ct.int32).reshape((rows, 1))
    j = ct.bid(1) * columns + ct.arange(columns, dtype=ct.int32).reshape((1, columns))
    seen = ct.full((rows, columns), 0, dtype=ct.float32)
    left = ct.full((rows, columns), 1, dtype=ct.float32)
    step = 0
    while step < steps and ct.max(left) > 0.01:
        u = i.astype(ct.float32) + step * pitch
        v = j.astype(ct.float32) + step * pitch
        low_u, low_v = ct.floor(u), ct.floor(v)
        near_u, near_v = low_u.astype(ct.int32), low_v.astype(ct.int32)
        right, down = v - low_v, u - low_u
        top = ct.gather(density, (step, near_u, near_v)).astype(ct.float32) * (1 - right)
        top += ct.gather(density, (step, near_u, near_v + 1)).astype(ct.float32) * right
        low = ct.gather(density, (step, near_u + 1, near_v)).astype(ct.float32) * (1 - right)
        low += ct.gather(density, (step, near_u + 1, near_v + 1)).astype(ct.float32) * right
        thick = top * (1 - down) + low * down
        clear = ct.exp2(-thick)
        seen += left * (1 - clear) * ct.gather(colour, step)
        left = left * clear
        step += 1
    ct.store(out, (ct.bid(0), ct.bid(1)), seen)


@ct.kernel
def kernel_sums(x, x_norm, y, y_norm, values, out, tm: Int, tn: Int, depth: Int, width: Int):
    """Sums of values by a Gaussian of the distance between points."""
    block = ct.bid(0)
    own = ct.load(x, (block, 0), (tm, depth))
    half = ct.load(x_norm, (block,), (tm,)).reshape((tm, 1))
    total = ct.full((tm, width), 0, dtype=ct.float32)
    for j in range(ct.cdiv(y.shape[0], tn)):
        other = ct.load(y, (j, 0), (tn, depth), padding_mode=ZERO)
        like = ct.mma(own, other.transpose(), ct.full((tm, tn), 0, dtype=ct.float32))
        apart = like - half - ct.load(y_norm, (j,), (tn,)).reshape((1, tn))
        value = ct.load(values, (j, 0), (tn, width), padding_mode=ZERO)
        total = ct.mma(ct.exp2(apart).astype(x.dtype), value, total)
    ct.store(out, (block, 0), total.astype(out.dtype))
