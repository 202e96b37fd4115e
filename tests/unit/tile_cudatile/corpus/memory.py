"""Loads, stores, views, gathers and atomics."""

from __future__ import annotations

import cuda.tile as ct
from cuda.tile.compilation import ListConstraint
from unit.tile_cudatile.corpus.cases import array, case, each, scalar

P, O, S = ct.PaddingMode, ct.MemoryOrder, ct.MemoryScope
SOME = (ct.int32, ct.float16, ct.float32, ct.uint64)


def padded(mode):
    @ct.kernel
    def kernel(x, y):
        i, j = ct.bid(0), ct.bid(1)
        ct.store(y, (i, j), ct.load(x, (i, j), (8, 16), padding_mode=mode))

    return kernel


@ct.kernel
def ordered(x, y):
    i, j = ct.bid(0), ct.bid(1)
    t = ct.load(x, (i, j), (8, 16), order="F")
    ct.store(y, (j, i), t, order=(1, 0))
    n = ct.num_tiles(x, axis=0, shape=(8, 16), order="F")
    u = ct.load(x, (n - 1, j), (16, 8), order=(1, 0), latency=4, allow_tma=False)
    ct.store(y, (i, n), u, order="F", latency=2, allow_tma=True)


@ct.kernel
def within_bounds(x, y):
    i, j = ct.bid(0), ct.bid(1)
    t = ct.load(x, (i, j), (8, 16), check_bounds=False)
    ct.store(y, (i, j), t, check_bounds=False)
    ct.store(y, (j, i), ct.load(x, (j, i), (1, 1)), check_bounds=True)


def pairs(dtype):
    return [array(dtype, 2), array(dtype, 2)]


for mode in P:
    case(f"load_{mode.value}", padded(mode), each(pairs))
case("load_order", ordered, each(pairs))
case("check_bounds", within_bounds, each(pairs))


def synchronized(load_order, store_order, scope):
    @ct.kernel
    def kernel(x, y):
        i = ct.bid(0)
        t = ct.load(x, (i,), (16,), memory_order=load_order, memory_scope=scope)
        ct.store(y, (i,), t, memory_order=store_order, memory_scope=scope)

    return kernel


for scope in (S.BLOCK, S.DEVICE, S.SYS):
    for first, second in ((O.RELAXED, O.RELAXED), (O.ACQUIRE, O.RELEASE)):
        case(
            f"memory_order_{first.value}_{scope.value}",
            synchronized(first, second, scope),
            each(lambda d: [array(d), array(d)], SOME),
        )


def viewed(mode, steps):
    @ct.kernel
    def kernel(x, y):
        i, j = ct.bid(0), ct.bid(1)
        view = x.tiled_view((4, 8), padding_mode=mode, traversal_steps=steps)
        n = view.num_tiles(0)
        t = view.load((i, j), latency=3, allow_tma=True)
        other = y.tiled_view((4, 8))
        other.store((i, j), t, latency=5)
        other.store((n, j), view.load((n - 1, 0)))

    return kernel


@ct.kernel
def viewed_within_bounds(x, y):
    i, j = ct.bid(0), ct.bid(1)
    view, other = x.tiled_view((4, 8)), y.tiled_view((4, 8))
    other.store((i, j), view.load((i, j), check_bounds=False), check_bounds=False)
    other.store((j, i), view.load((j, i), check_bounds=True), allow_tma=False)


case("tiled_view_bounds", viewed_within_bounds, each(pairs))
case("tiled_view", viewed(P.ZERO, None), each(pairs))
case("tiled_view_steps", viewed(P.NAN, (2, 3)), each(pairs))
case("tiled_view_undetermined", viewed(P.UNDETERMINED, (1, 8)), each(pairs))


@ct.kernel
def stored_atomically(x, y):
    i, j = ct.bid(0), ct.bid(1)
    view = y.tiled_view((4, 8))
    t = ct.load(x, (i, j), (4, 8))
    view.atomic_store_add((i, j), t)
    view.atomic_store_max((j, i), t)
    view.atomic_store_min((i, i), t)


@ct.kernel
def bits_stored_atomically(x, y):
    i, j = ct.bid(0), ct.bid(1)
    view = y.tiled_view((4, 8))
    t = ct.load(x, (i, j), (4, 8))
    view.atomic_store_and((i, j), t)
    view.atomic_store_or((j, i), t)
    view.atomic_store_xor((i, i), t)


@ct.kernel
def added_atomically(x, y):
    i, j = ct.bid(0), ct.bid(1)
    y.tiled_view((4, 8)).atomic_store_add((i, j), ct.load(x, (i, j), (4, 8)))


case("atomic_store", stored_atomically, each(pairs))
case("atomic_store_bits", bits_stored_atomically, each(pairs))
case("atomic_store_add", added_atomically, each(pairs))


@ct.kernel
def advanced(x, rows, y):
    i = ct.bid(0)
    r = ct.load(rows, (i,), (8,))
    t = ct.load_advanced_indexing(x, (r, ct.Slice(i * 16, 16)), padding_mode=P.ZERO)
    ct.store_advanced_indexing(y, (r, ct.Slice(0, 16)), t)
    u = ct.load_advanced_indexing(x, (ct.Slice(i, 16), r), latency=2, allow_tma=True)
    ct.store_advanced_indexing(y, (ct.Slice(i, 16), r), u, latency=3, allow_tma=False)


case("advanced_indexing", advanced, each(lambda d: [array(d, 2), array(ct.int32), array(d, 2)]))


@ct.kernel
def gathered(x, rows, y):
    i = ct.bid(0)
    r = ct.load(rows, (i,), (8,))
    c = ct.arange(16, dtype=ct.int32)
    t = ct.gather(x, (r[:, None], c[None, :]))
    ct.scatter(y, (r[:, None], c[None, :]), t)
    u = ct.gather(x, (r, i), mask=r > 3, padding_value=1, check_bounds=False, latency=4)
    ct.scatter(y, (r, i), u, mask=r != 0, check_bounds=False, latency=2)


case("gather", gathered, each(lambda d: [array(d, 2), array(ct.int32), array(d, 2)]))


def updated(function):
    @ct.kernel
    def kernel(x, rows, y):
        i = ct.bid(0)
        r = ct.load(rows, (i,), (16,))
        ct.store(y, (i,), function(x, r, ct.load(y, (i,), (16,))))

    return kernel


def updated_in_order(function, order, scope):
    @ct.kernel
    def kernel(x, rows, y):
        i = ct.bid(0)
        r = ct.load(rows, (i,), (16,))
        t = function(
            x,
            r,
            ct.load(y, (i,), (16,)),
            check_bounds=False,
            memory_order=order,
            memory_scope=scope,
        )
        ct.store(y, (i,), t)

    return kernel


def atomically(dtype):
    return [array(dtype), array(ct.int32), array(dtype)]


ATOMICS = {
    "add": ct.atomic_add,
    "max": ct.atomic_max,
    "min": ct.atomic_min,
    "and": ct.atomic_and,
    "or": ct.atomic_or,
    "xor": ct.atomic_xor,
    "xchg": ct.atomic_xchg,
}
for name, function in ATOMICS.items():
    case(f"atomic_{name}", updated(function), each(atomically))
for order in (O.RELAXED, O.ACQUIRE, O.RELEASE, O.ACQ_REL):
    for scope in (S.BLOCK, S.DEVICE, S.SYS):
        case(
            f"atomic_add_{order.value}_{scope.value}",
            updated_in_order(ct.atomic_add, order, scope),
            each(atomically, SOME),
        )


@ct.kernel
def exchanged(x, rows, y):
    i = ct.bid(0)
    r = ct.load(rows, (i,), (16,))
    t = ct.load(y, (i,), (16,))
    ct.store(y, (i,), ct.atomic_cas(x, r, t, t + t))
    first = ct.atomic_cas(
        x, i, 0, 1, check_bounds=False, memory_order=O.ACQUIRE, memory_scope=S.SYS
    )
    ct.store(y, (i,), first)


case("atomic_cas", exchanged, each(atomically))


@ct.kernel
def raw(x, rows, y):
    i = ct.bid(0)
    r = ct.load(rows, (i,), (16,))
    memory, other = x.get_raw_memory(), y.get_raw_memory()
    t = memory.load_offset(r, mask=r > 0, padding_value=1, latency=3)
    other.store_offset(r, t, mask=r < 9, latency=2)
    other.store_offset(i, memory.load_offset(i))


@ct.kernel
def raw_atomic(x, rows, y):
    i = ct.bid(0)
    r = ct.load(rows, (i,), (16,))
    memory = x.get_raw_memory()
    t = ct.load(y, (i,), (16,))
    t = memory.atomic_add_offset(r, t, mask=r > 0)
    t = memory.atomic_max_offset(r, t)
    t = memory.atomic_min_offset(r, t, memory_order=O.RELAXED)
    t = memory.atomic_xchg_offset(r, t, memory_scope=S.SYS)
    t = memory.atomic_cas_offset(r, t, t + t, mask=r > 1)
    ct.store(y, (i,), t)


@ct.kernel
def raw_atomic_bits(x, rows, y):
    i = ct.bid(0)
    r = ct.load(rows, (i,), (16,))
    memory = x.get_raw_memory()
    t = ct.load(y, (i,), (16,))
    t = memory.atomic_and_offset(r, t)
    t = memory.atomic_or_offset(r, t, mask=r > 0)
    t = memory.atomic_xor_offset(r, t, memory_order=O.ACQUIRE)
    ct.store(y, (i,), t)


case("raw_memory", raw, each(atomically))
case("raw_memory_atomics", raw_atomic, each(atomically))
case("raw_memory_atomic_bits", raw_atomic_bits, each(atomically))


@ct.kernel
def foreign(pointer_of, y, n):
    i = ct.bid(0)
    same = ct.Array.from_foreign(pointer_of.foreign_pointer, (n, 16), (16, 1))
    part = same.slice(0, i, n)
    ct.store(y, (i, 0), ct.load(part, (i, 0), (8, 16)))
    ct.store(y, (i, part.shape[0]), ct.load(pointer_of, (i, pointer_of.strides[0]), (8, 16)))


@ct.kernel
def part(x, y, n):
    i = ct.bid(0)
    half = x.slice(1, i, n)
    ct.store(y, (i, 0), ct.load(half, (i, half.shape[1] // 16), (8, 16)))
    ct.store(y, (i, half.ndim), ct.load(x, (i, x.strides[0]), (8, 16)))


case("foreign_pointer", foreign, each(lambda d: [*pairs(d), scalar(ct.int32)]))
case("slice", part, each(lambda d: [*pairs(d), scalar(ct.int32)]))


@ct.kernel
def of_a_list(xs, y):
    i = ct.bid(0)
    t = ct.zeros((16,), y.dtype)
    for k in range(len(xs)):
        t = t + ct.load(xs[k], (i,), (16,))
    ct.store(y, (i,), t)


case(
    "list",
    of_a_list,
    each(
        lambda d: [
            ListConstraint(array(d), alias_groups=(), elements_may_alias=False),
            array(d),
        ]
    ),
)


@ct.kernel
def any_rank(a, b, c, d, y):
    i = ct.bid(0)
    t = ct.reshape(ct.load(b, (i, 0), (4, 4)), (16,))
    t = t + ct.reshape(ct.load(c, (i, 0, 0), (2, 2, 4)), (16,))
    t = t + ct.reshape(ct.load(d, (0, 0, i, 0), (2, 2, 2, 2)), (16,))
    ct.store(y, (i,), t + ct.load(a, (i,), (1,)))


case(
    "ranks",
    any_rank,
    each(lambda d: [array(d, 1), array(d, 2), array(d, 3), array(d, 4), array(d)]),
)
LAYOUTS = {
    "unknown_strides": {"stride_constant": None, "stride_divisible_by": 1},
    "any_alignment": {
        "shape_divisible_by": 1,
        "stride_divisible_by": 1,
        "base_addr_divisible_by": 1,
    },
    "may_alias": {"alias_groups": ("all",), "may_alias_internally": True},
    "wide_indices": {"index_dtype": ct.int64},
}


@ct.kernel
def copied(x, y):
    i, j = ct.bid(0), ct.bid(1)
    t = ct.load(x, (i, j), (8, 16))
    ct.store(y, (i, j), t + ct.load(y, (i, j), (8, 16)))


for name, options in LAYOUTS.items():
    case(
        f"array_{name}",
        copied,
        each(lambda d, o=options: [array(d, 2, **o), array(d, 2, **o)], SOME),
    )


@ct.kernel
def about_views(x, y):
    i = ct.bid(0)
    view = x.tiled_view((4, 8), traversal_steps=(2, 8))
    t = view.load((i + view.tile_shape[0], view.traversal_steps[1]))
    y.tiled_view(view.tile_shape).store((view.traversal_steps[0], i), t.astype(view.dtype))


case("tiled_view_properties", about_views, each(pairs, SOME))
