"""What is known of an integer or pointer tile along each of its axes: a small lattice on ints.

For every aligned group of `contiguity[d]` elements along axis d, the elements rise by one (by the
pointee's size for pointers) and the first is divisible by `divisibility[d]` (bytes for pointers).
Every aligned group of `constancy[d]` elements holds one value. All numbers are powers of two.
A scalar has rank 0 and its one divisibility in `scalar`.

Arithmetic wraps around: a run rises modulo 2^width of its type. Once it is widened, it is cut where
it passed the largest number, so then only runs of up to the divisibility are promised.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import gcd

#: The largest divisibility that is tracked; zero is divisible by everything.
MAX_DIVISOR = 1 << 40


def pow2_divisor(value: int) -> int:
    """The largest power of two that divides `value`, at most MAX_DIVISOR."""
    return MAX_DIVISOR if value == 0 else min(value & -value, MAX_DIVISOR)


@dataclass(frozen=True)
class AxisInfo:
    """Facts along each axis; all tuples have the rank of the tile."""

    contiguity: tuple[int, ...]
    divisibility: tuple[int, ...]
    constancy: tuple[int, ...]
    scalar: int = 1  # divisibility of a rank-0 value

    @property
    def rank(self) -> int:
        return len(self.contiguity)

    def every_element(self, axis: int) -> int:
        """What divides every element along `axis`, not only the first of each group."""
        return self.divisibility[axis] if self.contiguity[axis] == 1 else 1


def unknown(shape: tuple[int, ...]) -> AxisInfo:
    """Nothing is known."""
    ones = (1,) * len(shape)
    return AxisInfo(ones, ones, ones)


def scalar(divisor: int) -> AxisInfo:
    """A rank-0 value divisible by `divisor`."""
    return AxisInfo((), (), (), divisor)


def uniform(shape: tuple[int, ...], divisor: int) -> AxisInfo:
    """One value, divisible by `divisor`, everywhere."""
    ones = (1,) * len(shape)
    return AxisInfo(ones, (divisor,) * len(shape), shape, divisor)


def counting(extent: int) -> AxisInfo:
    """0, 1, ..., extent - 1."""
    return AxisInfo((extent,), (MAX_DIVISOR,), (1,))


def regroup(info: AxisInfo, axis: int, contiguity: int) -> int:
    """Divisibility along `axis` of the starts of groups of `contiguity` elements."""
    divisor = info.divisibility[axis]
    return divisor if contiguity >= info.contiguity[axis] else gcd(divisor, contiguity)


def add(left: AxisInfo, right: AxisInfo, right_scale: int = 1) -> AxisInfo:
    """left + right * right_scale; contiguity counts elements of that scale on the left.

    With a pointer on the left, `right_scale` is the pointee's size in bytes.
    """
    if left.rank == 0:
        return scalar(gcd(left.scalar, _scaled(right.scalar, right_scale)))
    contiguity, divisibility, constancy = [], [], []
    for axis in range(left.rank):
        run = max(
            gcd(left.contiguity[axis], right.constancy[axis]),
            gcd(left.constancy[axis], right.contiguity[axis]),
        )
        contiguity.append(run)
        a = regroup(left, axis, run)
        b = _scaled(regroup(right, axis, run), right_scale)
        divisibility.append(gcd(a, b))
        constancy.append(gcd(left.constancy[axis], right.constancy[axis]))
    return AxisInfo(tuple(contiguity), tuple(divisibility), tuple(constancy))


def subtract(left: AxisInfo, right: AxisInfo) -> AxisInfo:
    """left - right: rises where the left does and the right stays."""
    if left.rank == 0:
        return scalar(gcd(left.scalar, right.scalar))
    contiguity, divisibility, constancy = [], [], []
    for axis in range(left.rank):
        run = gcd(left.contiguity[axis], right.constancy[axis])
        contiguity.append(run)
        divisibility.append(gcd(regroup(left, axis, run), regroup(right, axis, run)))
        constancy.append(gcd(left.constancy[axis], right.constancy[axis]))
    return AxisInfo(tuple(contiguity), tuple(divisibility), tuple(constancy))


def _scaled(divisor: int, scale: int) -> int:
    return min(divisor * pow2_divisor(scale), MAX_DIVISOR)


def multiply(left: AxisInfo, right: AxisInfo) -> AxisInfo:
    """left * right."""
    if left.rank == 0:
        return scalar(_scaled(left.scalar, right.scalar))
    divisibility = tuple(
        _scaled(left.every_element(axis), right.every_element(axis)) for axis in range(left.rank)
    )
    constancy = tuple(map(gcd, left.constancy, right.constancy))
    return AxisInfo((1,) * left.rank, divisibility, constancy)


def within(info: AxisInfo, width: int) -> AxisInfo:
    """`info` with runs that half the numbers of `width` bits have room for."""
    room = 1 << (width - 1)
    if all(run <= room for run in info.contiguity):
        return info
    divisibility = tuple(
        regroup(info, axis, min(room, c)) for axis, c in enumerate(info.contiguity)
    )
    return replace(
        info, contiguity=tuple(min(room, c) for c in info.contiguity), divisibility=divisibility
    )


def join(left: AxisInfo, right: AxisInfo) -> AxisInfo:
    """What holds of either."""
    return either([left, right], (MAX_DIVISOR,) * left.rank)


def either(infos: list[AxisInfo], constancy: tuple[int, ...]) -> AxisInfo:
    """One of `infos`, the same one in every aligned group of `constancy[d]` elements."""
    first = infos[0]
    if first.rank == 0:
        return scalar(gcd(*(info.scalar for info in infos)))
    runs = [gcd(c, *(i.contiguity[axis] for i in infos)) for axis, c in enumerate(constancy)]
    divisibility = (
        gcd(*(regroup(info, axis, run) for info in infos)) for axis, run in enumerate(runs)
    )
    same = (gcd(c, *(i.constancy[axis] for i in infos)) for axis, c in enumerate(constancy))
    return AxisInfo(tuple(runs), tuple(divisibility), tuple(same))


def every(infos: list[AxisInfo], divisors: Callable[[list[int]], int]) -> AxisInfo:
    """An elementwise function of which only the divisor is known, from its operands'."""
    first = infos[0]
    if first.rank == 0:
        return scalar(divisors([info.scalar for info in infos]))
    found = tuple(
        divisors([info.every_element(axis) for info in infos]) for axis in range(first.rank)
    )
    return replace(pointwise(infos), divisibility=found)


def shifted(info: AxisInfo, bits: int) -> AxisInfo:
    """info >> bits, rounded down: runs from multiples of 2^bits become groups of one value."""
    unit = 1 << bits
    if info.rank == 0:
        return scalar(max(1, info.scalar >> bits))
    result = every([info], lambda divisors: max(1, divisors[0] >> bits))
    constancy = tuple(
        max(same, min(unit, _aligned_run(info, axis))) for axis, same in enumerate(info.constancy)
    )
    return replace(result, constancy=constancy)


def low_bits(info: AxisInfo, bits: int) -> AxisInfo:
    """The lowest `bits` bits of info, as a number that is not negative."""
    unit = 1 << bits
    if info.rank == 0:
        return info
    runs = tuple(min(unit, _aligned_run(info, axis)) for axis in range(info.rank))
    divisibility = tuple(regroup(info, axis, run) for axis, run in enumerate(runs))
    return AxisInfo(runs, divisibility, info.constancy)


def _aligned_run(info: AxisInfo, axis: int) -> int:
    """Elements of a run that starts at a multiple of its length."""
    return gcd(info.contiguity[axis], info.divisibility[axis])


def pointwise(infos: list[AxisInfo]) -> AxisInfo:
    """Any elementwise function of `infos`: constant where all of them are."""
    first = infos[0]
    if first.rank == 0:
        return scalar(1)
    constancy = first.constancy
    for other in infos[1:]:
        constancy = tuple(map(gcd, constancy, other.constancy))
    return replace(unknown((1,) * first.rank), constancy=constancy)


def ordered_compare(left: AxisInfo, right: AxisInfo) -> AxisInfo:
    """left < right or left >= right, where a run on the left meets a constant on the right.

    Runs start at multiples of g and the bound is a multiple of g, so each aligned group of g
    elements falls on one side of it.
    """
    result = pointwise([left, right])
    if left.rank == 0:
        return result
    constancy = list(result.constancy)
    for axis in range(left.rank):
        run = gcd(left.contiguity[axis], right.constancy[axis])
        aligned = gcd(regroup(left, axis, run), right.divisibility[axis])
        constancy[axis] = max(constancy[axis], gcd(run, aligned))
    return replace(result, constancy=tuple(constancy))


def broadcast(info: AxisInfo, source: tuple[int, ...], result: tuple[int, ...]) -> AxisInfo:
    """Axes of extent 1 repeat."""
    grown = [a != b for a, b in zip(source, result, strict=True)]
    return AxisInfo(
        tuple(1 if g else c for g, c in zip(grown, info.contiguity, strict=True)),
        tuple(
            info.every_element(axis) if g else d
            for axis, (g, d) in enumerate(zip(grown, info.divisibility, strict=True))
        ),
        tuple(r if g else c for g, r, c in zip(grown, result, info.constancy, strict=True)),
    )


def reshape(info: AxisInfo, source: tuple[int, ...], result: tuple[int, ...]) -> AxisInfo:
    """Axes of extent 1 come and go; any other reshape forgets everything."""
    kept = [axis for axis, extent in enumerate(source) if extent != 1]
    wanted = [axis for axis, extent in enumerate(result) if extent != 1]
    if [source[a] for a in kept] != [result[a] for a in wanted]:
        return unknown(result)
    # Along a new axis of extent 1 there is one element: all it needs is its divisor.
    single = max((info.every_element(axis) for axis in range(len(source))), default=info.scalar)
    contiguity, divisibility, constancy = (
        [1] * len(result),
        [single] * len(result),
        [1] * len(result),
    )
    for a, b in zip(kept, wanted, strict=True):
        contiguity[b], divisibility[b] = info.contiguity[a], info.divisibility[a]
        constancy[b] = info.constancy[a]
    return AxisInfo(tuple(contiguity), tuple(divisibility), tuple(constancy))


def permute(info: AxisInfo, axes: Sequence[int]) -> AxisInfo:
    """Axis i of the result is axis axes[i]."""
    return AxisInfo(
        tuple(info.contiguity[axis] for axis in axes),
        tuple(info.divisibility[axis] for axis in axes),
        tuple(info.constancy[axis] for axis in axes),
    )


def part(info: AxisInfo, extents: Sequence[int]) -> AxisInfo:
    """An aligned part of a tile, of `extents` elements."""
    runs = tuple(map(min, info.contiguity, extents))
    divisibility = tuple(regroup(info, axis, run) for axis, run in enumerate(runs))
    return AxisInfo(runs, divisibility, tuple(map(min, info.constancy, extents)))
