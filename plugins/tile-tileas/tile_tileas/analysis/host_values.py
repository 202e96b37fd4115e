"""Values that follow from a kernel's arguments alone, so that a launch can compute them."""

from __future__ import annotations

from tile_cute.map_recipe import OPERATIONS, WIDENING, Apply, Argument, Constant, Expression
from tile_tileaa.dialect.types import bits_of

from tile_core.mlir import ir

_POINTER_BITS = 64
#: Widths that recipes know.
_WIDTHS = (8, 16, 32, 64)
#: Operations that only say something of their operand.
_TRANSPARENT = ("nv_tileaa.assume",)
#: A chain of operations longer than this is left to the kernel.
_DEPTH = 64


class NotOnHost(Exception):
    """The value depends on more than arguments, or on operations that recipes do not have."""


def host_expression(value: ir.Value, kernel: ir.Operation) -> Expression:
    """How `value` follows from the arguments of `kernel`, as an unsigned number.

    Raises:
        NotOnHost: it does not; with the reason.
    """
    return _Reader(kernel).read(value, 0)


class _Reader:
    def __init__(self, kernel: ir.Operation) -> None:
        self._entry = kernel.regions[0].blocks[0]

    def read(self, value: ir.Value, depth: int) -> Expression:
        """The expression of a value; more than `depth` operations lie behind it."""
        if depth > _DEPTH:
            raise NotOnHost(f"it takes more than {_DEPTH} operations")
        if isinstance(value, ir.BlockArgument):
            if value.owner != self._entry:
                raise NotOnHost("it changes in a loop")
            return Argument(value.arg_number, _width(value.type))
        op = value.owner
        assert not isinstance(op, ir.Block)
        operands = [op.operands[at] for at in range(len(op.operands))]
        name = op.name
        if name in _TRANSPARENT:
            return self.read(operands[0], depth + 1)
        if name == "arith.constant":
            return _constant(op)
        short = name.removeprefix("arith.")
        if short == name or short not in OPERATIONS:
            raise NotOnHost(f"it depends on {name}")
        return self._applied(short, value, operands, depth)

    def _applied(self, name: str, value: ir.Value, operands: list[ir.Value], depth: int) -> Apply:
        read = tuple(self.read(operand, depth + 1) for operand in operands)
        bits = _width(value.type)
        if name not in WIDENING:
            return Apply(name, bits, read)
        widened = Apply(name, _width(operands[0].type), read)
        return widened if bits == _POINTER_BITS else Apply("trunci", bits, (widened,))


def _constant(op: ir.OpView | ir.Operation) -> Constant:
    attribute = op.attributes["value"]
    if not isinstance(attribute, ir.IntegerAttr):
        raise NotOnHost("it depends on a constant that is no integer")
    return Constant(attribute.value)


def _width(type_: ir.Type) -> int:
    bits = bits_of(type_) if isinstance(type_, ir.IntegerType) else _POINTER_BITS
    if isinstance(type_, ir.RankedTensorType | ir.FloatType) or bits not in _WIDTHS:
        raise NotOnHost(f"it depends on a value of type {type_}")
    return bits
