"""Runs functions of integer operations on NumPy arrays, and notes every value that each SSA value
ever had: what analyses claim is compared with that.

Numbers are int64 arrays that hold the signed number of the type's width; one bit is 0 or 1.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tile_core.mlir import ir

#: Turns after which a loop is left; what was seen up to there still counts.
TURNS = 12


class Undefined(Exception):
    """The program did what the language leaves undefined, or ran on for too long."""


@dataclass(frozen=True)
class Held:
    """What a value holds; `exact` unless it was widened, where runs may have been cut."""

    numbers: np.ndarray
    exact: bool = True


@dataclass
class Run:
    """One execution of a function's body."""

    seen: list[tuple[ir.Value, Held]] = field(default_factory=list)
    held: dict[ir.Value, Held] = field(default_factory=dict)

    def define(self, value: ir.Value, held: Held) -> None:
        width = element_width(value.type)
        numbers = wrapped(np.broadcast_to(held.numbers, shape_of(value.type)), width)
        self.held[value] = Held(numbers, held.exact)
        self.seen.append((value, self.held[value]))

    def block(self, block: ir.Block) -> list[Held]:
        """Run a block; what its last operation hands on."""
        ops = list(block.operations)
        for op in ops[:-1]:
            self.operation(op)
        return [self.held[value] for value in ops[-1].operands]

    def operation(self, op: ir.OpView) -> None:
        name = op.operation.name
        if name in _CONTROL:
            _CONTROL[name](self, op)
            return
        operands = [self.held[value] for value in op.operands]
        exact = all(o.exact for o in operands) and not name.startswith("arith.ext")
        with np.errstate(all="ignore"):
            numbers = OPERATIONS[name](op, *(o.numbers for o in operands))
        self.define(op.results[0], Held(np.asarray(numbers), exact))

    def _for(self, op: ir.OpView) -> None:
        lower, upper, step = (int(self.held[value].numbers) for value in list(op.operands)[:3])
        if step <= 0:
            raise Undefined("step")
        block = op.regions[0].blocks[0]
        variable, *carried = block.arguments
        state = [self.held[value] for value in list(op.operands)[3:]]
        width, turns = element_width(variable.type), 0
        while lower < upper:
            turns += 1
            if turns > TURNS:
                raise Undefined("too long")
            self.define(variable, Held(np.array(lower)))
            for value, held in zip(carried, state, strict=True):
                self.define(value, held)
            state = self.block(block)
            lower = int(wrapped(np.array(lower + step), width))
        for value, held in zip(op.results, state, strict=True):
            self.define(value, held)

    def _while(self, op: ir.OpView) -> None:
        before, after = (region.blocks[0] for region in op.regions)
        state = [self.held[value] for value in op.operands]
        for _ in range(TURNS):
            for value, held in zip(before.arguments, state, strict=True):
                self.define(value, held)
            condition, *passed = self.block(before)
            if not int(condition.numbers):
                for value, held in zip(op.results, passed, strict=True):
                    self.define(value, held)
                return
            for value, held in zip(after.arguments, passed, strict=True):
                self.define(value, held)
            state = self.block(after)
        raise Undefined("too long")

    def _if(self, op: ir.OpView) -> None:
        taken = op.regions[0 if int(self.held[op.operands[0]].numbers) else 1]
        for value, held in zip(op.results, self.block(taken.blocks[0]), strict=True):
            self.define(value, held)


_CONTROL = {"scf.for": Run._for, "scf.while": Run._while, "scf.if": Run._if}


def element_width(type_: ir.Type) -> int:
    """Bits of an integer or of a tile's elements."""
    element = type_.element_type if isinstance(type_, ir.RankedTensorType) else type_
    return element.width


def shape_of(type_: ir.Type) -> tuple[int, ...]:
    """Extents; () for a scalar."""
    return tuple(type_.shape) if isinstance(type_, ir.RankedTensorType) else ()


def wrapped(values: np.ndarray, width: int) -> np.ndarray:
    """The signed numbers that `width` bits hold of `values`; one bit is 0 or 1."""
    if width == 1:
        return values.astype(np.int64) & 1
    half = 1 << (width - 1)
    return (values.astype(np.int64) + half) % (1 << width) - half


def _signed(op: ir.OpView, x: np.ndarray) -> np.ndarray:
    return -x if element_width(op.operands[0].type) == 1 else x


def _unsigned(op: ir.OpView, x: np.ndarray) -> np.ndarray:
    return x % (1 << element_width(op.operands[0].type))


def _divisor(y: np.ndarray) -> np.ndarray:
    if (y == 0).any():
        raise Undefined("division by zero")
    return y


def _toward_zero(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    quotient = np.abs(x) // np.abs(y)
    return np.where((x < 0) == (y < 0), quotient, -quotient)


def _amount(op: ir.OpView, y: np.ndarray) -> np.ndarray:
    if ((y < 0) | (y >= element_width(op.operands[0].type))).any():
        raise Undefined("shift")
    return y


def _constant(op: ir.OpView) -> np.ndarray:
    held = op.attributes["value"]
    if isinstance(held, ir.IntegerAttr | ir.BoolAttr):
        return np.array(int(held.value))
    numbers = np.array([int(number) for number in ir.DenseIntElementsAttr(held)])
    return numbers.reshape(shape_of(op.results[0].type))


_COMPARE = (np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal)


def _compare(op: ir.OpView, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    predicate = ir.IntegerAttr(op.attributes["predicate"]).value
    read = _signed if predicate < len(_COMPARE) else _unsigned
    at = predicate if predicate < len(_COMPARE) else predicate - 4
    return _COMPARE[at](read(op, x), read(op, y)).astype(np.int64)


def _assume(op: ir.OpView, x: np.ndarray) -> np.ndarray:
    predicate = ir.DictAttr(op.attributes["predicate"])
    if ir.StringAttr(predicate["kind"]).value == "bounded":
        low, high = (ir.IntegerAttr(predicate[key]).value for key in ("lb", "ub"))
        if (x < low).any() or (x > high).any():
            raise Undefined("a false assumption")
    else:
        if (x % ir.IntegerAttr(predicate["divisor"]).value).any():
            raise Undefined("a false assumption")
    return x


def _slice(op: ir.OpView, x: np.ndarray, *indices: np.ndarray) -> np.ndarray:
    for axis, (at, extent) in enumerate(zip(indices, shape_of(op.results[0].type), strict=True)):
        count = x.shape[axis] // extent
        x = np.take(x, range(int(at) % count * extent, (int(at) % count + 1) * extent), axis)
    return x


def _two(compute: Callable[[np.ndarray, np.ndarray], Any], read: Any = None) -> Any:
    def run(op: ir.OpView, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return compute(read(op, x), read(op, y)) if read else compute(x, y)

    return run


OPERATIONS: dict[str, Callable[..., np.ndarray]] = {
    "arith.addi": _two(np.add),
    "arith.andi": _two(np.bitwise_and),
    "arith.ceildivsi": _two(lambda x, y: -(-x // _divisor(y))),
    "arith.cmpi": _compare,
    "arith.constant": _constant,
    "arith.divsi": _two(lambda x, y: _toward_zero(x, _divisor(y))),
    "arith.divui": _two(lambda x, y: x // _divisor(y), _unsigned),
    "arith.extsi": _signed,
    "arith.extui": _unsigned,
    "arith.floordivsi": _two(lambda x, y: x // _divisor(y)),
    "arith.maxsi": _two(np.maximum, _signed),
    "arith.maxui": _two(np.maximum, _unsigned),
    "arith.minsi": _two(np.minimum, _signed),
    "arith.minui": _two(np.minimum, _unsigned),
    "arith.muli": _two(np.multiply),
    "arith.ori": _two(np.bitwise_or),
    "arith.remsi": _two(lambda x, y: x - _toward_zero(x, _divisor(y)) * y),
    "arith.remui": _two(lambda x, y: x % _divisor(y), _unsigned),
    "arith.select": lambda op, c, x, y: np.where(c != 0, x, y),
    "arith.shli": lambda op, x, y: x << _amount(op, y),
    "arith.shrsi": lambda op, x, y: _signed(op, x) >> _amount(op, y),
    "arith.shrui": lambda op, x, y: _unsigned(op, x) >> _amount(op, y),
    "arith.subi": _two(np.subtract),
    "arith.trunci": lambda op, x: x,
    "arith.xori": _two(np.bitwise_xor),
    "math.absi": lambda op, x: np.abs(_signed(op, x)),
    "nv_tileaa.assume": _assume,
    "nv_tileaa.broadcast": lambda op, x: x,
    "nv_tileaa.cat": lambda op, x, y: np.concatenate(
        [x, y], ir.IntegerAttr(op.attributes["axis"]).value
    ),
    "nv_tileaa.extract": lambda op, x: x.reshape(()),
    "nv_tileaa.extract_slice": _slice,
    "nv_tileaa.make_range": lambda op: np.arange(shape_of(op.results[0].type)[0]),
    "nv_tileaa.permute": lambda op, x: x.transpose(list(op.attributes["permutation"])),
    "nv_tileaa.splat": lambda op, x: x,
    "nv_tileaa.view": lambda op, x: x.reshape(shape_of(op.results[0].type)),
}


def execute(func: ir.OpView, arguments: list[int]) -> list[tuple[ir.Value, Held]]:
    """Every value that SSA values of `func` had, up to where it became undefined if it did."""
    run = Run()
    block = func.regions[0].blocks[0]
    for value, number in zip(block.arguments, arguments, strict=True):
        run.define(value, Held(np.array(number)))
    with suppress(Undefined):
        run.block(block)
    return run.seen
