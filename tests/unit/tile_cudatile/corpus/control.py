"""Control flow, scalars, printing, and what the compiler itself evaluates."""

from __future__ import annotations

import cuda.tile as ct
from unit.tile_cudatile.corpus.cases import DTYPES, array, case, const, each, scalar

INTEGERS = tuple(d for d in DTYPES if "int" in str(d))


@ct.kernel
def counted(x, y, n):
    i = ct.bid(0)
    t = ct.zeros((16,), y.dtype)
    for k in range(n):
        t = t + ct.load(x, (k,), (16,))
    for k in range(1, n, 3):
        for m in range(k, n):
            t = t + ct.load(x, (k + m,), (16,))
    ct.store(y, (i,), t)


@ct.kernel
def left_early(x, y, n):
    i = ct.bid(0)
    if i >= ct.num_blocks(0) - 1:
        return
    k = 0
    t = ct.zeros((16,), y.dtype)
    while k < n:
        k += 1
        if k % 2 == 0:
            continue
        if k > 100:
            break
        t = t + ct.load(x, (k,), (16,))
    ct.store(y, (i,), t)


@ct.kernel
def branched(x, y, n):
    i = ct.bid(0)
    t = ct.load(x, (i,), (16,))
    if i > n:
        t = t + t
    elif i == n:
        t = t - t
        ct.store(y, (i + 1,), t)
    else:
        t = t * t
    a = i + 1 if (n > 3 and i != 4) or not i else n
    ct.store(y, (a,), t)


@ct.kernel
def endless(x, y, n):
    i = ct.bid(0)
    t = ct.load(x, (i,), (16,))
    while True:
        t = t + t
        n = n - 1
        if n < 0:
            break
    ct.store(y, (i,), t)


for name, kernel in {
    "for": counted,
    "while": left_early,
    "if": branched,
    "while_true": endless,
}.items():
    case(name, kernel, each(lambda d: [array(d), array(d), scalar(ct.int32)]))


@ct.kernel
def scalars(y, a, b):
    i = ct.bid(0) * ct.num_blocks(1) + ct.bid(2)
    c = a * b + a - b
    d = min(a, b) + max(a, 3) + abs(b)
    y0 = ct.full((16,), c, dtype=y.dtype) + ct.astile(d, dtype=y.dtype)
    ct.store(y, (i,), y0)


@ct.kernel
def integer_scalars(y, a, b):
    i = ct.bid(0)
    c = (a // 3 + b % 5) ^ (a & b) | (a << 2) | (b >> 1)
    d = ct.cdiv(a, 4) + ct.assume_divisible_by(b, 8)
    ct.store(y, (i,), ct.full((16,), c + d, dtype=y.dtype))


case("scalars", scalars, each(lambda d: [array(d), scalar(d), scalar(d)]))
case("integer_scalars", integer_scalars, each(lambda d: [array(d), scalar(d), scalar(d)], INTEGERS))


@ct.kernel
def picked(x, y):
    i = ct.bid(0)
    first = ct.load(x, (i,), (1,)).item()
    t = ct.load(x, (i,), (16,))
    rank = t.ndim + t.shape[0]
    ct.store(y, (i,), ct.full((16,), first, dtype=t.dtype) + rank)


case("item", picked, each(lambda d: [array(d), array(d)]))


@ct.kernel
def printed(x):
    i = ct.bid(0)
    t = ct.load(x, (i,), (4,))
    ct.printf("block %d of %d\n", i, ct.num_blocks(0))
    ct.print("values", t, i, sep=", ", end=";\n")
    ct.print(f"{i}: {t}")
    ct.assert_(t == t, "not a number")  # noqa: PT009
    ct.assert_(t < t + t)  # noqa: PT009


case("print", printed, each(lambda d: [array(d)]))


@ct.kernel
def formatted_real(x):
    ct.printf("%f %5.2e %g %%\n", ct.load(x, (0,), (4,)), ct.load(x, (1,), (1,)), 1.5)


@ct.kernel
def formatted_integer(x):
    ct.printf("%i %x\n", ct.load(x, (0,), (4,)), 3)


case("printf_real", formatted_real, each(lambda d: [array(d)]))
case("printf_integer", formatted_integer, each(lambda d: [array(d)]))


@ct.function
def helper(t, factor=2):
    return t * factor + 1


@ct.kernel
def helped(x, y):
    i = ct.bid(0)
    t = helper(ct.load(x, (i,), (16,)))
    ct.store(y, (i,), helper(t, factor=3))


case("function", helped, each(lambda d: [array(d), array(d)]))


@ct.kernel
def evaluated(x, y, first: ct.Constant, second: ct.Constant):
    sizes = (first, second, 4)
    ct.static_assert(len(sizes) == 3, "three sizes")
    i = ct.bid(0)
    total = ct.zeros((16,), y.dtype)
    for size in ct.static_iter(sizes):
        n = ct.static_eval(max(size, 2))
        part = ct.load(x, (i * n,), (16,))
        total = total + part * ct.ensure_constant(n)
    if ct.static_eval(len(sizes) > 4):
        raise ct.static_exception(ValueError("too many"))
    ct.store(y, (i,), total)


case("static", evaluated, each(lambda d: [array(d), array(d), const(1), const(2)]))


@ct.kernel
def dependent(x, y):
    i = ct.bid(0)
    ct.grid_dependency_control_wait()
    t = ct.load(x, (i,), (16,))
    ct.grid_dependency_control_launch_dependents()
    ct.store(y, (i,), t)


case("grid_dependency", dependent, each(lambda d: [array(d), array(d)], (ct.float32,)))


@ct.kernel(num_ctas=ct.ByTarget(sm_100=2, sm_107=2, default=1), occupancy=4, opt_level=2)
def hinted(x, y):
    i = ct.bid(0)
    ct.store(y, (i,), ct.load(x, (i,), (16,)))


@ct.kernel(num_worker_warps=8)
def warped(x, y):
    i = ct.bid(0)
    ct.store(y, (i,), ct.load(x, (i,), (16,)))


case("hints", hinted, each(lambda d: [array(d), array(d)], (ct.float32,)))
case("worker_warps", warped, each(lambda d: [array(d), array(d)], (ct.float32,)))
