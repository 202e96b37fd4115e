"""Which numbers of a program are multiples of a power of two, whatever they wrap around to."""

from __future__ import annotations

from tile_cudatile.attrs import DivBy
from tile_cudatile.transforms.rewrite import number_of
from tile_cudatile.tree import Op, Value

#: Operations behind one another that are looked through.
_DEEPEST = 8
#: Whose result is a multiple of what both of their operands, or those from the second on, are.
_OF_BOTH = {"addi": 0, "subi": 0, "mini": 0, "maxi": 0, "select": 1}


def is_power_of_two(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


def is_multiple(value: Value, of: int, deep: int = _DEEPEST) -> bool:
    """Whether a scalar is known to be a multiple of `of`, a power of two."""
    number, owner = number_of(value), value.owner
    if of == 1:
        return True
    if number is not None:
        return number % of == 0
    if not isinstance(owner, Op) or deep == 0:
        return False
    operands = owner.values()
    if owner.name == "muli":
        return any(is_multiple(operand, of, deep - 1) for operand in operands)
    if owner.name in _OF_BOTH:
        return all(is_multiple(one, of, deep - 1) for one in operands[_OF_BOTH[owner.name] :])
    if owner.name != "assume":
        return False
    said = owner.attrs.get("predicate")
    divides = isinstance(said, DivBy) and said.divisor % of == 0
    return divides or is_multiple(operands[0], of, deep - 1)
