"""Claims that hold: overflow flags, assumptions, bounds and assertions.

A program is run once by the evaluator on the data of its launches. What was then true of every
value, whatever the operation computed, can be claimed without making the program undefined on
this data; the compiler may make use of all of it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import gcd
from typing import Any

import numpy as np
from tile_cudatile.attrs import Bounded, DivBy, Predicate, SameElements
from tile_cudatile.evaluator import evaluate
from tile_cudatile.evaluator.formats import memory_bytes
from tile_cudatile.evaluator.integers import ARITHMETIC, exact, fits, signed
from tile_cudatile.evaluator.views import ViewValue, access
from tile_cudatile.locations import UNKNOWN
from tile_cudatile.transforms.rewrite import make, replaced
from tile_cudatile.tree import Block, Entry, Op, Region, Value
from tile_cudatile.types import I1, I4, Pointer, Scalar, Tile

from tile_fuzz.case import Case, data_of
from tile_fuzz.generator.maker import dense, element

_READINGS = {"no_signed_wrap": ("signed",), "no_unsigned_wrap": ("unsigned",),
             "no_wrap": ("signed", "unsigned")}  # fmt: skip
#: Pointers are claimed to be multiples of this at most: less than any allocation guarantees.
_POINTER_ALIGNMENT = 16
_RATE = {"flag": 0.5, "assume": 0.08, "assert": 0.02, "inbounds": 0.5}


@dataclass
class Observed:
    """What was true of every execution of an operation."""

    overflows: set[str] = field(default_factory=set)  # readings in which a result did not fit
    low: int | None = None
    high: int | None = None
    divisor: int = 0  # of all elements
    runs: tuple[int, ...] | None = None  # equal neighbours along each dimension
    rising: dict[tuple[int, int], int] | None = None  # (axis, size) of groups -> divisor of firsts
    inside: bool = True


def strengthen(case: Case, rng: random.Random) -> None:
    """Adds true claims to the programs of a case, in place."""
    seen: dict[Op, Observed] = {}
    watcher = _Watcher(seen)
    for launch in case.launches:
        arguments = [data_of(argument) for argument in launch.arguments]
        evaluate(case.module, launch.entry, launch.grid, arguments, watch=watcher)
    for entry in case.module.entries:
        _claim(entry, seen, rng)


class _Watcher:
    def __init__(self, seen: dict[Op, Observed]) -> None:
        self.seen = seen

    def __call__(self, op: Op, operands: list[Any], results: tuple[Any, ...]) -> None:
        found = self.seen.setdefault(op, Observed())
        if "overflow" in op.attrs:
            _watch_overflow(found, op, operands)
        if "inbounds" in op.attrs:
            _watch_inside(found, op, operands)
        if len(results) == 1 and isinstance(op.results[0].type, Tile):
            kind = op.results[0].type.element
            numbers = isinstance(kind, Pointer) or (not kind.is_float and kind not in (I1, I4))
            if numbers and op.name != "ptr_to_int":  # which address an array has is left open
                _watch_numbers(found, kind, np.asarray(results[0]))


def _watch_overflow(found: Observed, op: Op, operands: list[Any]) -> None:
    kind = element(op.results[0])
    for reading in ("signed", "unsigned"):
        if reading in found.overflows:
            continue
        result = _ideal(op, operands, reading)
        if result is None or not fits(result, kind, reading):
            found.overflows.add(reading)


def _ideal(op: Op, operands: list[Any], reading: str) -> Any:
    """The result without wrapping."""
    if op.name in ARITHMETIC:
        kind = element(op.results[0])
        return ARITHMETIC[op.name](*(exact(o, kind, reading) for o in operands))
    if op.name == "trunci":
        return exact(operands[0], element(op.operands[0]), reading)  # type: ignore[arg-type]
    if op.name == "negi" and reading == "signed":
        return -exact(operands[0], element(op.results[0]), reading)
    if op.name == "shli":
        kind = element(op.results[0])
        return exact(operands[0], kind, reading) * 2 ** exact(operands[1], kind, "unsigned")
    return None


def _watch_inside(found: Observed, op: Op, operands: list[Any]) -> None:
    at = op.spec.operand_index
    view, index = operands[at["view"]], operands[at["index"]]
    assert isinstance(view, ViewValue)
    numbers = tuple(np.asarray(i).astype(np.int64) for i in index)
    found.inside &= access(view, numbers, op.name).inside is None


def _watch_numbers(found: Observed, kind: Scalar | Pointer, values: np.ndarray) -> None:
    numbers = values if isinstance(kind, Pointer) else signed(values, kind)
    low, high = int(numbers.min()), int(numbers.max())
    found.low = low if found.low is None else min(low, found.low)
    found.high = high if found.high is None else max(high, found.high)
    found.divisor = gcd(found.divisor, int(np.gcd.reduce(numbers, axis=None)))
    runs = tuple(_run(numbers, axis) for axis in range(numbers.ndim))
    before = found.runs or runs
    found.runs = tuple(map(min, before, runs))
    step = memory_bytes(kind.pointee) if isinstance(kind, Pointer) else 1
    rising = _rising(numbers, step)
    if found.rising is not None:
        both = found.rising.keys() & rising.keys()
        rising = {key: gcd(found.rising[key], rising[key]) for key in sorted(both)}
    found.rising = rising


def _rising(numbers: np.ndarray, step: int) -> dict[tuple[int, int], int]:
    """Groups of a power of two of neighbours that rise by `step`, and what divides their firsts."""
    found = {}
    for axis in range(numbers.ndim):
        moved = np.moveaxis(numbers, axis, -1)
        size = 2
        while size <= moved.shape[-1]:
            groups = moved.reshape(*moved.shape[:-1], -1, size)
            if (np.diff(groups, axis=-1) != step).any():
                break
            found[axis, size] = int(np.gcd.reduce(groups[..., 0], axis=None))
            size *= 2
    return found


def _run(numbers: np.ndarray, axis: int) -> int:
    """The longest groups of a power of two of neighbours that are all equal."""
    size = numbers.shape[axis]
    moved = np.moveaxis(numbers, axis, -1)
    while size > 1:
        groups = moved.reshape(*moved.shape[:-1], -1, size)
        if (groups == groups[..., :1]).all():
            break
        size //= 2
    return size


# --- making claims --------------------------------------------------------------------------------


def _claim(entry: Entry, seen: dict[Op, Observed], rng: random.Random) -> None:
    swapped: dict[Value, Value] = {}
    added: set[Op] = set()
    for block in _blocks(entry.body):
        ops: list[Op] = []
        for op in block.ops:
            ops.append(op)
            found = seen.get(op)
            if found is None:
                continue
            _flag(op, found, rng)
            if found.low is not None:
                more = _about(op.results[0], found, rng)
                added.update(more)
                ops.extend(more)
                if more and more[-1].name == "assume":
                    swapped[op.results[0]] = more[-1].results[0]
        block.ops = ops
    for op in entry.body.walk():
        if op not in added:
            op.operands = replaced(op.operands, swapped)


def _blocks(region: Region) -> Iterator[Block]:
    """All blocks but those of reductions, which run on many elements in any order."""
    for block in region.blocks:
        yield block
        for op in block.ops:
            if op.name not in ("reduce", "scan"):
                for inner in op.regions:
                    yield from _blocks(inner)


def _flag(op: Op, found: Observed, rng: random.Random) -> None:
    if "overflow" in op.attrs and rng.random() < _RATE["flag"]:
        holds = [f for f, readings in _READINGS.items() if not found.overflows & {*readings}]
        if op.name == "negi":
            holds = [f for f in holds if f == "no_signed_wrap"]
        if holds:
            op.attrs["overflow"] = rng.choice(holds)
    claimed = op.attrs.get("inbounds")
    if claimed and found.inside and rng.random() < _RATE["inbounds"]:
        assert isinstance(claimed, tuple)
        op.attrs["inbounds"] = (True,) * len(claimed)


def _about(value: Value, found: Observed, rng: random.Random) -> list[Op]:
    """An assumption about a value, or an assertion."""
    choice = rng.random()
    if choice < _RATE["assume"]:
        predicate = _predicate(value, found, rng)
        if predicate is not None:
            return [make("assume", [value], [value.type], UNKNOWN, predicate=predicate)]
    elif choice < _RATE["assume"] + _RATE["assert"]:
        return _assertion(value, found)
    return []


def _predicate(value: Value, found: Observed, rng: random.Random) -> Predicate | None:
    type_ = value.type
    assert isinstance(type_, Tile)
    most = _POINTER_ALIGNMENT if isinstance(type_.element, Pointer) else 1 << 16
    if found.rising and rng.random() < 0.5:
        (axis, size), divisor = rng.choice(list(found.rising.items()))
        return DivBy(gcd(divisor, most), size, axis)
    if isinstance(type_.element, Pointer):
        return DivBy(gcd(found.divisor, _POINTER_ALIGNMENT))
    assert found.low is not None
    assert found.high is not None
    way = rng.choice(("bounded", "div_by", "same"))
    if way == "same" and found.runs:
        return SameElements(found.runs)
    if way == "div_by":
        power = found.divisor & -found.divisor
        return DivBy(min(power, 1 << 16) if power else 1 << rng.randint(0, 6))
    limit = 1 << (type_.element.width - 1)
    loose = rng.choice((0, 0, 1, 100))
    bounds = Bounded(max(found.low - loose, -limit), min(found.high + loose, limit - 1))
    return replace(bounds, **rng.choice(({}, {"lb": None}, {"ub": None})))


def _assertion(value: Value, found: Observed) -> list[Op]:
    """The value is at most what was seen."""
    type_ = value.type
    assert isinstance(type_, Tile)
    if isinstance(type_.element, Pointer):
        return []
    bound = make("constant", (), [type_], UNKNOWN, value=dense(type_, found.high))
    holds = make(
        "cmpi", (value, bound.results[0]), [Tile(type_.shape, I1)], UNKNOWN,
        comparison_predicate="less_than_or_equal", signedness="signed",
    )  # fmt: skip
    return [bound, holds, make("assert", (holds.results[0],), (), UNKNOWN, message="too large")]
