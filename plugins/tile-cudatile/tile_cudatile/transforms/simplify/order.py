"""Comparisons, minima, maxima and selections."""

from __future__ import annotations

from dataclasses import replace

from tile_cudatile.transforms.selection import Questions, nearer_arms, one_of_its_parts
from tile_cudatile.transforms.simplify.constants import COMPARE
from tile_cudatile.transforms.simplify.expressions import (
    Expr,
    Space,
    as_number,
    claims,
    element_type,
    fits,
    inverse_of,
    is_integer,
    is_truth,
    known,
    limits,
    signed,
)
from tile_cudatile.transforms.simplify.registry import simplifies
from tile_cudatile.types import Scalar, Tile

_HOLDS_FOR_EQUALS = ("equal", "less_than_or_equal", "greater_than_or_equal")
_EXTREMUM = {
    "less_than": "mini",
    "less_than_or_equal": "mini",
    "greater_than": "maxi",
    "greater_than_or_equal": "maxi",
}


@simplifies("cmpi")
def compared_with_itself(space: Space, expr: Expr) -> Expr | None:
    """x == x => true, x < x => false"""
    left, right = expr.operands
    return space.number(expr, int(expr.attrs[0] in _HOLDS_FOR_EQUALS)) if left is right else None


@simplifies("cmpi")
def compared_with_a_limit(space: Space, expr: Expr) -> Expr | None:
    """x < smallest => false, x >= smallest => true; likewise with the largest number"""
    predicate, signedness = str(expr.attrs[0]), expr.attrs[1]
    number = as_number(expr.operands[1], signedness)
    if number is None or predicate in ("equal", "not_equal"):
        return None
    ends = {COMPARE[predicate](x, number) for x in limits(expr.operands[0].width, signedness)}
    # All of the four grow or fall with x, hence what both ends give, all give.
    return space.number(expr, int(ends.pop())) if len(ends) == 1 else None


@simplifies("cmpi")
def truth_compared(space: Space, expr: Expr) -> Expr | None:
    """b == true => b, b == false => not b, and with !="""
    left, right = expr.operands
    number, predicate = known(right), expr.attrs[0]
    if not is_truth(left.type) or number is None or predicate not in ("equal", "not_equal"):
        return None
    return left if bool(number) == (predicate == "equal") else space.inverted(left)


@simplifies("cmpi")
def equality_of_sums(space: Space, expr: Expr) -> Expr | None:
    """x + c1 == c2 => x == c2 - c1, x + z == y + z => x == y, -x == -y => x == y, ~x == ~y"""
    predicate = expr.attrs[0]
    if predicate not in ("equal", "not_equal"):
        return None
    left, right = expr.operands

    def compared(x: Expr, y: Expr) -> Expr:
        return space.like(expr, "cmpi", x, y, attrs=expr.attrs)

    number = known(right)
    if number is not None and left.named("addi", "subi", "xori"):
        inner = known(left.operands[1])
        if inner is not None:
            undone = {"addi": number - inner, "subi": number + inner, "xori": number ^ inner}
            return compared(left.operands[0], space.number(left, undone[left.name]))
    if left.name == right.name and left.named("addi", "subi", "xori", "negi"):
        for i, x in enumerate(left.operands):
            for j, y in enumerate(right.operands):
                if x is y and len(left.operands) == 2 and (i == j or left.name != "subi"):
                    return compared(left.operands[1 - i], right.operands[1 - j])
        if left.name == "negi":
            return compared(left.operands[0], right.operands[0])
    return None


@simplifies("cmpi")
def order_of_sums(space: Space, expr: Expr) -> Expr | None:
    """x + c1 < c2 => x < c2 - c1, if the sum does not overflow"""
    left, signedness = expr.operands[0], expr.attrs[1]
    number = as_number(expr.operands[1], signedness)
    if number is None or not left.named("addi", "subi"):
        return None
    inner = as_number(left.operands[1], signedness)
    if inner is None or not claims(left)[signedness == "unsigned"]:
        return None
    bound = number - inner if left.name == "addi" else number + inner
    if not fits(bound, left.width, signedness):
        return None
    return space.like(expr, "cmpi", left.operands[0], space.number(left, bound), attrs=expr.attrs)


@simplifies("cmpi")
def compared_extension(space: Space, expr: Expr) -> Expr | None:
    """ext x == ext y => x == y, ext x == c => x == trunc c, or known if x cannot be c

    Extended numbers compare like those they come from: zero extended ones as unsigned numbers,
    signed ones either way, as the negative numbers of both widths are the largest unsigned ones.
    """
    predicate, signedness = str(expr.attrs[0]), expr.attrs[1]
    left, right = expr.operands
    if left.name != "exti" or not is_integer(left.operands[0].type):
        return None
    source, reading = left.operands[0], left.attrs[0]
    attrs = (predicate, signedness if reading == "signed" else reading)
    if right.name == "exti":
        same = right.attrs == left.attrs and right.operands[0].type == source.type
        return space.like(expr, "cmpi", source, right.operands[0], attrs=attrs) if same else None
    number = as_number(right, reading if reading == "signed" else signedness)
    if number is None:
        return None
    if fits(number, source.width, reading):
        return space.like(expr, "cmpi", source, space.number(source, number), attrs=attrs)
    if predicate in ("equal", "not_equal"):
        return space.number(expr, int(predicate == "not_equal"))
    if reading == "signed" != signedness:
        return None  # between the numbers that are not negative and those that are
    low, _ = limits(source.width, reading)
    return space.number(expr, int(COMPARE[predicate](low, number)))


@simplifies("cmpi")
def compared_motion(space: Space, expr: Expr) -> Expr | None:
    """moved (ext x) == moved (ext y) => moved (x) == moved (y), of broadcasts and reshapes"""
    left, right = (_before_extension(space, operand) for operand in expr.operands)
    if left is None or right is None or left[1:] != right[1:]:
        return None
    signedness = expr.attrs[1] if left[1] == "signed" else left[1]
    return space.like(expr, "cmpi", left[0], right[0], attrs=(expr.attrs[0], signedness))


def _before_extension(space: Space, value: Expr) -> tuple[Expr, object, Scalar] | None:
    """What was extended and then moved, moved as it was; how it was, and of which type."""
    moves: list[Expr] = []
    while value.named("broadcast", "reshape"):
        moves.append(value)
        value = value.operands[0]
    if value.name != "exti" or not is_integer(value.operands[0].type):
        return None
    (moved,) = value.operands
    element = element_type(moved.type)
    for move in reversed(moves):
        assert isinstance(move.type, Tile)
        moved = space.make(move.name, replace(move.type, element=element), [moved], move.attrs)
    return moved, value.attrs[0], element


@simplifies("cmpi")
def compared_selection(space: Space, expr: Expr) -> Expr | None:
    """(select b c1 c2) == c => b, not b, true or false"""
    left, right = expr.operands
    predicate, signedness = expr.attrs
    condition = left.operands[0] if left.name == "select" else None
    if condition is None or condition.type != expr.type:
        return None
    numbers = [as_number(e, signedness) for e in (*left.operands[1:], right)]
    if None in numbers:
        return None
    then, other = (COMPARE[str(predicate)](n, numbers[2]) for n in numbers[:2])  # type: ignore
    if then == other:
        return space.number(expr, int(then))
    return condition if then else space.inverted(condition)


@simplifies("maxi", "mini")
def obvious_extremum(space: Space, expr: Expr) -> Expr | None:
    """min x x => x, min x smallest => smallest, min x largest => x, and max"""
    left, right = expr.operands
    if left is right:
        return left
    number = as_number(right, expr.attrs[0])
    if number is None:
        return None
    low, high = limits(expr.width, expr.attrs[0])
    final, neutral = (low, high) if expr.name == "mini" else (high, low)
    return right if number == final else left if number == neutral else None


@simplifies("maxi", "mini")
def nested_extrema(space: Space, expr: Expr) -> Expr | None:
    """min (min x y) x => min x y, min (max x y) x => x, min (min x c1) c2 => min x (min c1 c2)"""
    for inner, x in (expr.operands, expr.operands[::-1]):
        if not inner.named("mini", "maxi") or inner.attrs != expr.attrs:
            continue
        if x in inner.operands:
            return inner if inner.name == expr.name else x
    inner, outer = expr.operands
    if inner.name != expr.name or inner.attrs != expr.attrs:
        return None
    numbers = [as_number(e, expr.attrs[0]) for e in (inner.operands[1], outer)]
    if None in numbers:
        return None
    best = (min if expr.name == "mini" else max)(numbers)  # type: ignore[type-var]
    bound = space.number(expr, best)  # type: ignore[arg-type]
    return space.like(expr, expr.name, inner.operands[0], bound, attrs=expr.attrs)


def _truth(expr: Expr) -> bool | None:
    bits = known(expr) if is_truth(expr.type) else None
    return None if bits is None else bool(bits)


def _compared(expr: Expr) -> tuple[str, frozenset[Expr]] | None:
    return (str(expr.attrs[0]), frozenset(expr.operands)) if expr.name == "cmpi" else None


def _parts(expr: Expr) -> tuple[Expr, Expr, Expr]:
    condition, then, other = expr.operands
    return condition, then, other


def _selection(expr: Expr) -> tuple[Expr, Expr, Expr] | None:
    return _parts(expr) if expr.name == "select" else None


_ASK = Questions(_truth, _compared, _selection)


@simplifies("select")
def known_selection(_: Space, expr: Expr) -> Expr | None:
    """select true x y => x, select c x x => x, select c true false => c, and x == y ? x : y => y"""
    return one_of_its_parts(_parts(expr), _ASK)


@simplifies("select")
def turned_selection(space: Space, expr: Expr) -> Expr | None:
    """select (not c) x y => select c y x"""
    condition, then, other = expr.operands
    plain = inverse_of(condition)
    return None if plain is None else space.like(expr, "select", plain, other, then)


@simplifies("select")
def repeated_selection(space: Space, expr: Expr) -> Expr | None:
    """select c (select c x y) z => select c x z, and in the other arm"""
    nearer = nearer_arms(_parts(expr), _ASK)
    return None if nearer is None else space.like(expr, "select", expr.operands[0], *nearer)


@simplifies("select")
def selected_extremum(space: Space, expr: Expr) -> Expr | None:
    """select (x < y) x y => min x y, and with every order"""
    condition, then, other = expr.operands
    if condition.name != "cmpi" or not is_integer(expr.type):
        return None
    name = _EXTREMUM.get(str(condition.attrs[0]))
    if name is None or set(condition.operands) != {then, other}:
        return None
    if condition.operands[0] is not then:
        name = "maxi" if name == "mini" else "mini"
    return space.like(expr, name, then, other, attrs=condition.attrs[1:])


@simplifies("select")
def selected_truth(space: Space, expr: Expr) -> Expr | None:
    """select c false true => not c, select c 1 0 => ext c, select c -1 0 => sext c"""
    condition, then, other = expr.operands
    numbers = (known(then), known(other))
    if None in numbers:
        return None
    if is_truth(expr.type):
        return space.inverted(condition) if numbers == (0, 1) else None
    if numbers[1] != 0 or signed(numbers[0] or 0, expr.width) not in (1, -1):
        return None
    reading = "unsigned" if numbers[0] == 1 else "signed"
    return space.like(expr, "exti", condition, attrs=(reading,))
