"""Which tile and which steps along K a block works on: data-parallel, static persistent, StreamK.

Work tiles are numbered. A data-parallel scheduler gives number i to cluster i; a persistent one
gives numbers i, i + width, ... to each cluster of a grid that stays; StreamK cuts all steps along K
of some tiles into equal runs, one for each cluster, and treats the other tiles like a persistent
one. A run is worked off from its end, so that it begins with parts whose sums others wait for, and
ends with those that wait.
"""

from __future__ import annotations

from typing import TypeVar

from tile_cute.cutlass.numbers import Integers, Numbers
from tile_cute.cutlass.records import Problem

N = TypeVar("N")
Fields = dict[str, N]


def tiles(n: Numbers[N], p: Fields[N]) -> N:
    """Output tiles of all batches."""
    batches = n.add(p["more_batches"], n.constant(1))
    return n.mul(n.mul(p["num_tiles_m"], p["num_tiles_n"]), batches)


def width(n: Numbers[N], p: Fields[N]) -> N:
    """Clusters of the grid."""
    return n.div(p["total_ctas"], p["num_ctas_per_cluster"])


def raster(n: Numbers[N], p: Fields[N], tile: N, order: str, swizzle: int) -> tuple[N, N, N]:
    """(m, n, batch) of an output tile, in tiles of clusters.

    Tiles go along the axis that `order` names, in bands of `swizzle` tiles along the other one; the
    last band is as narrow as the problem is.
    """
    m, other = p["num_tiles_m"], p["num_tiles_n"]
    major, minor = (m, other) if order == "along_m" else (other, m)
    plane = n.mul(m, other)
    batch = n.div(tile, plane)
    at = n.rem(tile, plane)
    wide = n.constant(swizzle)
    band = n.mul(wide, major)
    first = n.mul(n.div(at, band), wide)
    inside = n.rem(at, band)
    size = n.least(wide, n.sub(minor, first))
    along = n.div(inside, size)
    across = n.add(first, n.rem(inside, size))
    return (along, across, batch) if order == "along_m" else (across, along, batch)


def _work(n: Numbers[N], p: Fields[N], tile: N, order: str, swizzle: int, **fields: N) -> Fields[N]:
    m, other, batch = raster(n, p, tile, order, swizzle)
    zero, one = n.constant(0), n.constant(1)
    whole: Fields[N] = {
        "m": n.mul(m, p["cluster_shape_x"]),
        "n": n.mul(other, p["cluster_shape_y"]),
        "l": batch,
        "k_tile_start": zero,
        "k_tile_count": p["num_tiles_k"],
        "tile": tile,
        "split": zero,
        "splits": one,
        "valid": one,
        "linear_id": tile,
        "tile_idx": zero,
        "unit_begin": zero,
        "unit_end": zero,
    }
    return {**whole, **fields}


def whole_tile(n: Numbers[N], p: Fields[N], number: N, order: str, swizzle: int) -> Fields[N]:
    """Work of that number where each is a whole output tile."""
    valid = n.less(number, tiles(n, p))
    return _work(n, p, number, order, swizzle, valid=valid)


# --- StreamK -------------------------------------------------------------------------------------


def streamk_tiles(n: Numbers[N], p: Fields[N]) -> N:
    """Output tiles whose steps are cut: the last, partial wave, and one more of two and more."""
    wide = width(n, p)
    full, rest = n.div(tiles(n, p), wide), n.rem(tiles(n, p), wide)
    more = n.select(n.less(n.constant(1), full), wide, n.constant(0))
    return n.select(n.equal(rest, n.constant(0)), rest, n.add(rest, more))


def streamk_units(n: Numbers[N], p: Fields[N]) -> tuple[N, N, N]:
    """(runs, steps of a small one, how many have a step more)."""
    steps = n.mul(streamk_tiles(n, p), p["num_tiles_k"])
    units = n.least(width(n, p), steps)
    share = n.most(units, n.constant(1))
    return units, n.div(steps, share), n.rem(steps, share)


def _unit_of(n: Numbers[N], step: N, small: N, big: N) -> N:
    """The run that a step is in."""
    large = n.add(small, n.constant(1))
    behind = n.mul(big, large)
    late = n.sub(n.most(step, behind), behind)
    share = n.most(small, n.constant(1))
    return n.select(n.less(step, behind), n.div(step, large), n.add(big, n.div(late, share)))


def _piece(
    n: Numbers[N], p: Fields[N], unit: N, begin: N, end: N, order: str, swizzle: int
) -> Fields[N]:
    """The part of steps begin..end of a run that is in the last of their tiles."""
    k = p["num_tiles_k"]
    _, small, big = streamk_units(n, p)
    one = n.constant(1)
    last = n.sub(n.most(end, one), one)
    tile = n.div(last, k)
    edge = n.mul(tile, k)
    start = n.most(begin, edge)
    first_unit = _unit_of(n, edge, small, big)
    last_unit = _unit_of(n, n.sub(n.add(edge, k), one), small, big)
    return _work(
        n, p, tile, order, swizzle,
        k_tile_start=n.sub(start, edge), k_tile_count=n.sub(end, start),
        split=n.sub(unit, first_unit), splits=n.add(n.sub(last_unit, first_unit), one),
        linear_id=unit, unit_begin=begin, unit_end=start,
    )  # fmt: skip


def streamk_work(n: Numbers[N], p: Fields[N], number: N, order: str, swizzle: int) -> Fields[N]:
    """Work of that number: the first part of a run, or a whole tile behind those that are cut."""
    cut = streamk_tiles(n, p)
    units, small, big = streamk_units(n, p)
    begin = n.add(n.mul(number, small), n.least(number, big))
    end = n.add(n.add(begin, small), n.less(number, big))
    piece = _piece(n, p, number, begin, end, order, swizzle)
    behind = n.sub(n.most(number, units), units)
    tile = n.add(cut, behind)
    whole = _work(n, p, tile, order, swizzle, linear_id=number, valid=n.less(tile, tiles(n, p)))
    return chosen(n, n.less(number, units), piece, whole)


def streamk_next(n: Numbers[N], p: Fields[N], work: Fields[N], order: str, swizzle: int):  # type: ignore[no-untyped-def]
    """What comes behind: the part of the run before this one, or what is a width further."""
    begin, end = work["unit_begin"], work["unit_end"]
    same = _piece(n, p, work["linear_id"], begin, end, order, swizzle)
    other = streamk_work(n, p, n.add(work["linear_id"], width(n, p)), order, swizzle)
    return chosen(n, n.less(begin, end), same, other)


def is_final(n: Numbers[N], work: Fields[N]) -> N:
    """Whether a part has the last steps of its tile: it sums up and writes the result."""
    return n.equal(n.add(work["split"], n.constant(1)), work["splits"])


def splits_at_most(n: Numbers[N], p: Fields[N]) -> N:
    """Parts of an output tile: runs need not begin at its first step, hence one more."""
    one = n.constant(1)
    _, small, _ = streamk_units(n, p)
    share = n.most(small, one)
    before = n.sub(p["num_tiles_k"], one)
    return n.add(n.div(n.sub(n.add(before, share), one), share), one)


def workspace(n: Numbers[N], p: Fields[N], accumulators: int) -> tuple[N, N, N]:
    """Bytes (of all, of partial sums, of counters); `accumulators`: of one output tile of a block.

    Every block of a cluster has partial sums and counters of its own.
    """
    places = n.mul(streamk_tiles(n, p), p["num_ctas_per_cluster"])
    slots = n.sub(p["k_split_count"], n.constant(1))
    sums = n.mul(n.mul(places, slots), n.constant(accumulators))
    counters = n.mul(places, n.constant(4))
    line = n.constant(128)
    up = n.div(n.add(n.add(sums, counters), n.constant(127)), line)
    return n.mul(up, line), sums, counters


# --- all kinds -----------------------------------------------------------------------------------


def chosen(n: Numbers[N], condition: N, then: Fields[N], otherwise: Fields[N]) -> Fields[N]:
    """One work or the other."""
    return {name: n.select(condition, then[name], otherwise[name]) for name in then}


def work_of(
    n: Numbers[N], kind: str, p: Fields[N], number: N, order: str, swizzle: int
) -> Fields[N]:
    """Work of that number."""
    make = streamk_work if kind == "streamk" else whole_tile
    return make(n, p, number, order, swizzle)


def next_work(
    n: Numbers[N], kind: str, p: Fields[N], work: Fields[N], order: str, swizzle: int, rounds: int
) -> tuple[Fields[N], N]:
    """(the work behind, whether the pipe's round ends with this tile); of "dp" there is none.

    Args:
        rounds: tiles of a round of the pipe.
    """
    following = n.add(work["tile_idx"], n.constant(1))
    ends = n.equal(following, n.constant(rounds))
    if kind == "streamk":
        found = streamk_next(n, p, work, order, swizzle)
    elif kind == "dp":
        found = {**work, "valid": n.constant(0)}
    else:
        number = n.add(work["linear_id"], width(n, p))
        found = whole_tile(n, p, number, order, swizzle)
    return {**found, "tile_idx": n.select(ends, n.constant(0), following)}, ends


def filled(problem: Problem, *, split: bool) -> dict[str, int]:
    """All fields of a record; `split`: for StreamK."""
    fields = problem.fields()
    if split:
        fields["k_split_count"] = splits_at_most(Integers(), fields)
    return fields
