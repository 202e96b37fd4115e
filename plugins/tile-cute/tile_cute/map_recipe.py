"""How a tensor map follows from a kernel's arguments: plain data, written in one line of JSON.

A recipe stands beside the code that uses the map, from MLIR to PTX. It is carried out by host code
in the cubin before a launch, or evaluated here; both do the same arithmetic, on integers of fixed
width that wrap around.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from tile_cute import tensor_map
from tile_cute.tensor_map import FIELDS


@dataclass(frozen=True)
class Argument:
    """The kernel's parameter `index`, counted from 0; `bits` of it, as an unsigned number."""

    index: int
    bits: int


@dataclass(frozen=True)
class Constant:
    """A number of 64 bits."""

    value: int


@dataclass(frozen=True)
class Apply:
    """An operation of `OPERATIONS` on operands of `bits`; conversions say what they come from."""

    name: str
    bits: int
    operands: tuple[Expression, ...]


Expression = Argument | Constant | Apply


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> bits - 1 & 1 else value


def _divide(a: int, b: int, bits: int) -> int:
    """Towards zero, and 0 where there is no quotient."""
    x, y = _signed(a, bits), _signed(b, bits)
    if y == 0 or (y == -1 and x == -(1 << bits - 1)):
        return 0
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def _shift(a: int, b: int, bits: int) -> int:
    return a << b if b < bits else 0


#: Name (of MLIR's `arith`) -> what it does to unsigned numbers of `bits`; results are truncated.
#: `extui` and `extsi` widen a number of `bits` to 64, `trunci` narrows to `bits`.
OPERATIONS: dict[str, Callable[..., int]] = {
    "addi": lambda a, b, bits: a + b,
    "subi": lambda a, b, bits: a - b,
    "muli": lambda a, b, bits: a * b,
    "divui": lambda a, b, bits: a // b if b else 0,
    "divsi": _divide,
    "minui": lambda a, b, bits: min(a, b),
    "maxui": lambda a, b, bits: max(a, b),
    "minsi": lambda a, b, bits: min(a, b, key=lambda v: _signed(v, bits)),
    "maxsi": lambda a, b, bits: max(a, b, key=lambda v: _signed(v, bits)),
    "andi": lambda a, b, bits: a & b,
    "ori": lambda a, b, bits: a | b,
    "xori": lambda a, b, bits: a ^ b,
    "shli": _shift,
    "shrui": lambda a, b, bits: a >> b if b < bits else 0,
    "extui": lambda a, bits: a,
    "extsi": _signed,
    "trunci": lambda a, bits: a,
}
#: Those whose result has 64 bits, whatever their operand has.
WIDENING = ("extui", "extsi")
_WORD = (1 << 64) - 1
#: Rows of a box are so many bytes, or several times as many.
_ROW_BYTES = 16


def evaluate(expression: Expression, argument: Callable[[Argument], int]) -> int:
    """The value, unsigned; `argument` gives those of the launch."""
    match expression:
        case Argument():
            return argument(expression) & ((1 << expression.bits) - 1)
        case Constant():
            return expression.value & _WORD
        case Apply():
            mask = (1 << expression.bits) - 1
            operands = [evaluate(operand, argument) & mask for operand in expression.operands]
            result = OPERATIONS[expression.name](*operands, expression.bits)
            return result & (_WORD if expression.name in WIDENING else mask)


def joined_problem(box: Sequence[int], joined: int, element_bits: int) -> str | None:
    """Why a box, innermost first, cannot be in rows along so many dimensions; None if it can."""
    if not 2 <= joined <= len(box):
        return f"expects 2 to {len(box)} dimensions to be joined, but got {joined}"
    run = prod(box[:joined])
    row = min(run, tensor_map.MAX_BOX)
    bits = row * element_bits
    if run % row or run // row > tensor_map.MAX_BOX or element_bits < 8 or bits % (8 * _ROW_BYTES):
        return (
            f"expects joined dimensions to have rows of {_ROW_BYTES} bytes, but got {run} elements"
        )
    return None


@dataclass(frozen=True)
class MapRecipe:
    """The tensor map that kernel `kernel` expects in its hidden parameter `parameter`.

    `dims` are extents in elements, innermost first; `strides` are bytes along dimension 1 and up;
    all of 64 bits, as is `address`. The rest is as in `tile_cute.tensor_map`.

    Along the first `joined` dimensions copies are at 0, but those that bring nothing, which begin
    before all rows. If the tensor of a launch has all of the box along each of them, without gaps
    between, and elements at all, their box is one run of memory: the map gets that run in rows of
    up to 256 elements. Engines copy it in less time than short rows, to the same place.
    """

    kernel: str
    parameter: int
    type: str
    address: Expression
    dims: tuple[Expression, ...]
    strides: tuple[Expression, ...]
    box: tuple[int, ...]
    swizzle: str = "none"
    atomicity: str = "16B"
    fill: str = "zero"
    l2_promotion: str = "128B"
    joined: int = 0

    def __post_init__(self) -> None:
        rank = len(self.dims)
        if not 1 <= rank <= tensor_map.MAX_RANK or len(self.strides) != rank - 1:
            raise ValueError(f"a tensor map of {rank} extents and {len(self.strides)} strides")
        if len(self.box) != rank or any(
            not 1 <= extent <= tensor_map.MAX_BOX for extent in self.box
        ):
            raise ValueError(f"box {self.box} needs {rank} extents of 1 to 256")
        if self.type not in tensor_map.TYPE_BY_NAME:
            raise ValueError(f"no element type {self.type!r} of tensor maps")
        problem = self.joined and joined_problem(self.box, self.joined, self.element_bits)
        if problem or (self.joined and self.swizzle != "none"):
            raise ValueError(problem or f"{self.joined} dimensions with swizzle {self.swizzle}")

    @property
    def _run(self) -> int:
        """Elements of the box along joined dimensions."""
        return prod(self.box[: self.joined])

    @property
    def joined_box(self) -> tuple[int, ...]:
        """The box along joined dimensions, and their extents, where they are one run."""
        row = min(self._run, tensor_map.MAX_BOX)
        return (row, self._run // row, *[1] * (self.joined - 2))

    @property
    def joined_strides(self) -> tuple[int, ...]:
        """Bytes along joined dimensions but the innermost, where they are one run."""
        row, run = (n * self.element_bits // 8 for n in (self.joined_box[0], self._run))
        return (row, *[run] * (self.joined - 2))

    @property
    def dense_strides(self) -> tuple[int, ...]:
        """Bytes along joined dimensions but the innermost in a tensor without gaps."""
        sizes = (prod(self.box[:n]) for n in range(1, self.joined))
        return tuple(size * self.element_bits // 8 for size in sizes)

    def _is_one_run(self, dims: Sequence[int], strides: Sequence[int]) -> bool:
        """Whether a launch with these extents and strides has joined dimensions in rows."""
        inside = all(have >= box for have, box in zip(dims, self.box[: self.joined], strict=False))
        dense = tuple(strides[: max(0, self.joined - 1)]) == self.dense_strides
        return self.joined > 0 and inside and dense and all(dims)

    def fixed_bits(self) -> int:
        """All that does not depend on the launch, in place; boxes of joined dimensions do."""
        kind = tensor_map.TYPE_BY_NAME[self.type]
        swizzle = tensor_map.SWIZZLES.index(self.swizzle)
        rank = len(self.dims)
        values = {
            "kind": tensor_map.KIND,
            "rank": rank,
            "elemtype": kind.code,
            "swizzle_mode": swizzle % 4,
            "swizzle_96B": swizzle // 4,
            "fill_mode": tensor_map.FILLS.index(self.fill),
            "tf32": int(kind.tf32),
            "l2_promotion": tensor_map.L2_PROMOTIONS.index(self.l2_promotion),
            "swizzle_atomicity": tensor_map.ATOMICITIES.index(self.atomicity),
            "element_stride": (1,) * rank,
            "box_dim": (*[1] * self.joined, *self.box[self.joined :]),
        }
        return int.from_bytes(tensor_map.pack(values, rank), "little")

    def words(self, argument: Callable[[Argument], int]) -> tuple[int, ...]:
        """The eight words that a launch with these arguments writes; the other eight are 0.

        Numbers are cut to their fields, and an extent of 0 becomes 2**32, as in NVIDIA's maps.
        """
        bits = self.fixed_bits()
        value = [evaluate(e, argument) for e in (self.address, *self.dims, *self.strides)]
        rank = len(self.dims)
        dims, strides = value[1 : 1 + rank], value[1 + rank :]
        box = self.box[: self.joined]
        if self._is_one_run(dims, strides):
            box = self.joined_box
            dims[: self.joined], strides[: self.joined - 1] = box, self.joined_strides
        for at, extent in enumerate(box):
            bits |= _cut("box_dim", extent - 1, at)
        bits |= _cut("global_address", value[0] >> 4)
        for at, extent in enumerate(dims):
            bits |= _cut("global_dim", extent - 1, at)
        for at, stride in enumerate(strides):
            bits |= _cut("stride_low", stride >> 4, at) | _cut("stride_high", stride >> 36, at)
        bits |= _cut("large", int(self.span(dims, strides) >= tensor_map.LARGE_BYTES))
        return tuple(bits >> 64 * word & _WORD for word in range(8))

    def span(self, dims: list[int], strides: list[int]) -> int:
        """Bytes from the first element to the end of the last, modulo 2**64."""
        outer = sum((n - 1) * step for n, step in zip(dims[1:], strides, strict=True))
        return (outer + (dims[0] * self.element_bits + 7 >> 3)) & _WORD

    @property
    def element_bits(self) -> int:
        return tensor_map.TYPE_BY_NAME[self.type].bits

    def to_json(self) -> str:
        """One line; `from_json` reads it."""
        fields: dict[str, Any] = {
            "kernel": self.kernel, "parameter": self.parameter, "type": self.type,
            "address": _plain(self.address), "dims": [_plain(e) for e in self.dims],
            "strides": [_plain(e) for e in self.strides], "box": list(self.box),
            "swizzle": self.swizzle, "atomicity": self.atomicity, "fill": self.fill,
            "l2_promotion": self.l2_promotion,
        }  # fmt: skip
        if self.joined:
            fields["joined"] = self.joined
        return json.dumps(fields, separators=(",", ":"))

    @staticmethod
    def from_json(text: str) -> MapRecipe:
        """Raises ValueError for text that is no recipe."""
        try:
            fields = json.loads(text)
            address, dims, strides = (fields.pop(name) for name in ("address", "dims", "strides"))
            return MapRecipe(
                address=_expression(address),
                dims=tuple(map(_expression, dims)),
                strides=tuple(map(_expression, strides)),
                **{**fields, "box": tuple(fields["box"])},
            )
        except (TypeError, KeyError, AttributeError, ValueError, RecursionError) as error:
            raise ValueError(f"no recipe of a tensor map: {error}") from error


def _cut(name: str, stored: int, index: int = 0) -> int:
    """What is stored in a field, cut to its width, in place."""
    field = FIELDS[name]
    return (stored & ((1 << field.width) - 1)) << field.position(index)


def _plain(expression: Expression) -> Any:
    match expression:
        case Argument(index, bits):
            return {"arg": index, "bits": bits}
        case Constant(value):
            return value
        case Apply(name, bits, operands):
            return [name, bits, *map(_plain, operands)]


def _expression(plain: Any) -> Expression:
    match plain:
        case bool():
            raise ValueError(f"{plain} is no expression")
        case int():
            return Constant(plain)
        case {"arg": int(index), "bits": 1 | 8 | 16 | 32 | 64 as bits} if index >= 0:
            return Argument(index, bits)
        case [str(name), 8 | 16 | 32 | 64 as bits, *operands] if name in OPERATIONS:
            arity = 1 if name in (*WIDENING, "trunci") else 2
            if len(operands) == arity:
                return Apply(name, bits, tuple(map(_expression, operands)))
    raise ValueError(f"{plain!r} is no expression")


#: What stands before a recipe in comments of LLVM IR and PTX.
MARK = "tensor-map "


def recipes_in(text: str, comment: str) -> dict[str, list[MapRecipe]]:
    """Kernel -> its recipes, from lines of `text` that begin with `comment` and the mark.

    Raises ValueError, naming the line, for one that cannot be read.
    """
    found: dict[str, list[MapRecipe]] = {}
    start = comment + MARK
    if start not in text:
        return found
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(start):
            try:
                recipe = MapRecipe.from_json(line.removeprefix(start))
            except ValueError as error:
                raise ValueError(f"line {number}: {error}") from error
            found.setdefault(recipe.kernel, []).append(recipe)
    return found
