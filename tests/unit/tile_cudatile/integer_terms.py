"""Integer expressions for tests: written down, as kernels, and what they mean exactly.

The meaning is computed with Python's integers, by nothing of the package. A value is a number
(unsigned pattern), or `POISON`: what a broken promise about overflow gives. Poison spreads to
whatever depends on it, and a selection depends on the arm it takes only. `Undefined` is raised for
what must not happen at all: dividing by zero.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tile_cudatile import types as t
from tile_cudatile.attrs import Dense
from tile_cudatile.tree import Module, Op, Value
from unit.tile_cudatile.apply import operation, program

POISON = None
TYPES = {"b": t.I1, "s": t.I8, "h": t.I16, "i": t.I32, "q": t.I64}
#: Variables by name; the letter gives the type.
VARIABLES = {letter + str(i): type_ for letter, type_ in TYPES.items() for i in range(3)}


class Undefined(Exception):
    """The program has no meaning."""


@dataclass(frozen=True)
class Term:
    """An operation, a variable (`name` alone) or a number (`name` is its decimal text)."""

    name: str
    element: t.Scalar
    operands: tuple[Term, ...] = ()
    attrs: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        if not self.operands:
            return self.name
        plain = {"none", "signed", "zero"}
        shown = [value for _, value in self.attrs if value not in plain]
        return f"{self.name}({', '.join([*map(str, self.operands), *shown])})"


def number(value: int, element: t.Scalar) -> Term:
    """A constant, modulo the width."""
    return Term(str(value & (1 << element.width) - 1), element)


def variable(name: str) -> Term:
    """One of `VARIABLES`."""
    return Term(name, VARIABLES[name])


def make(name: str, *operands: Term | int, to: t.Scalar | None = None, **attrs: str) -> Term:
    """An operation; integers get the type of the other operands."""
    typed = next(o.element for o in reversed(operands) if isinstance(o, Term))
    terms = tuple(number(o, typed) if isinstance(o, int) else o for o in operands)
    element = to or (t.I1 if name == "cmpi" else typed)
    return Term(name, element, terms, tuple(sorted(attrs.items())))


# As kernels.


def emitted(term: Term, ops: list[Op], variables: Mapping[str, Value]) -> Value:
    """Appends the operations of a term; the same term again is computed again."""
    if not term.operands:
        if term.name in variables:
            return variables[term.name]
        tile = t.Tile((), term.element)
        bits = int(term.name)
        size = max(term.element.width // 8, 1)
        data = (
            (b"\xff" if bits else b"\x00")
            if term.element == t.I1
            else bits.to_bytes(size, "little")
        )
        ops.append(operation("constant", [], [tile], value=Dense(tile, data)))
        return ops[-1].result
    operands = [emitted(o, ops, variables) for o in term.operands]
    ops.append(operation(term.name, operands, [t.Tile((), term.element)], **dict(term.attrs)))
    return ops[-1].result


def kernel(*terms: Term) -> Module:
    """A kernel that has all `VARIABLES` as arguments and prints the terms."""

    def build(ops: list[Op], *args: Value) -> None:
        variables = dict(zip(VARIABLES, args, strict=True))
        for term in terms:
            value = emitted(term, ops, variables)
            ops.append(operation("print_tko", [(value,)], [t.TOKEN], str="%u\n"))

    return program(build, [t.Tile((), element) for element in VARIABLES.values()])


def printed(module: Module) -> list[Term]:
    """The terms that a kernel prints."""
    block = module.entries[0].body.block
    known = {arg: variable(name) for arg, name in zip(block.args, VARIABLES, strict=True)}
    found = []
    for op in block.ops:
        if op.name == "print_tko":
            found.append(known[op.values()[0]])
        elif op.results:
            known[op.result] = _term(op, known)
    return found


def _term(op: Op, known: Mapping[Value, Term]) -> Term:
    element = op.result.type.element  # type: ignore[union-attr]
    value = op.attrs.get("value")
    if isinstance(value, Dense):
        bits = int.from_bytes(value.data, "little")
        return number(bits & 1 if element == t.I1 else bits, element)  # type: ignore[arg-type]
    operands = tuple(known[v] for v in op.values())
    return Term(op.name, element, operands, tuple(sorted(op.attrs.items())))  # type: ignore[arg-type]


# What they mean.


def signed(bits: int, width: int) -> int:
    return bits - (1 << width) if bits >> width - 1 else bits


def _divided(a: int, b: int, rounding: str) -> int:
    whole, rest = divmod(abs(a), abs(b))
    negative = (a < 0) != (b < 0)
    away = {"positive_inf": not negative, "negative_inf": negative, "zero": False}[rounding]
    if rest and away:
        whole += 1
    return -whole if negative else whole


def _division(a: int, b: int, width: int, attrs: Mapping[str, str]) -> tuple[int, int]:
    if attrs["signedness"] == "signed":
        a, b = signed(a, width), signed(b, width)
    if b == 0:
        raise Undefined
    quotient = _divided(a, b, attrs.get("rounding", "zero"))
    return quotient, a - quotient * b


_SUMS: dict[str, Callable[..., int]] = {
    "addi": lambda a, b: a + b,
    "subi": lambda a, b: a - b,
    "muli": lambda a, b: a * b,
    "negi": lambda a: -a,
    "shli": lambda a, b: a << b,
}
_BITS: dict[str, Callable[[int, int], int]] = {
    "andi": lambda a, b: a & b,
    "ori": lambda a, b: a | b,
    "xori": lambda a, b: a ^ b,
}
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
    "less_than": lambda a, b: a < b,
    "less_than_or_equal": lambda a, b: a <= b,
    "greater_than": lambda a, b: a > b,
    "greater_than_or_equal": lambda a, b: a >= b,
}


def _promised(exact: dict[str, int], width: int, promise: str) -> bool:
    ranges = {"signed": (-(1 << width - 1), 1 << width - 1), "unsigned": (0, 1 << width)}
    readings = {"none": (), "no_wrap": ("signed", "unsigned")}.get(promise, (promise[3:-5],))
    return all(ranges[r][0] <= exact[r] < ranges[r][1] for r in readings)


def _sum(term: Term, values: list[int]) -> int | None:
    width, promise = term.operands[0].element.width, dict(term.attrs)["overflow"]
    if term.name == "shli" and values[1] >= width:
        return POISON
    exact = {"unsigned": _SUMS[term.name](*values)}
    readable = [signed(v, width) for v in values]
    if term.name == "shli":
        readable[1] = values[1]
    exact["signed"] = _SUMS[term.name](*readable)
    return exact["unsigned"] if _promised(exact, width, promise) else POISON


def _cast(term: Term, value: int) -> int | None:
    width, attrs = term.operands[0].element.width, dict(term.attrs)
    exact = {"unsigned": value, "signed": signed(value, width)}
    if term.name == "exti":
        return exact[attrs["signedness"]]
    return value if _promised(exact, term.element.width, attrs["overflow"]) else POISON


def _plain(term: Term, values: list[int]) -> int | None:
    """The result before it is taken modulo the width."""
    name, attrs, width = term.name, dict(term.attrs), term.operands[0].element.width
    numbers = [signed(v, width) for v in values] if attrs.get("signedness") == "signed" else values
    if name in _SUMS:
        return _sum(term, values)
    if name in _BITS:
        return _BITS[name](*values)
    if name in ("exti", "trunci"):
        return _cast(term, values[0])
    if name in ("maxi", "mini"):
        return (max if name == "maxi" else min)(numbers)
    if name == "cmpi":
        return int(_COMPARE[attrs["comparison_predicate"]](*numbers))
    if name in ("divi", "remi"):
        quotient, rest = _division(*values, width, attrs)  # type: ignore[misc]
        if name == "remi":
            return rest
        lowest = attrs["signedness"] == "signed" and quotient == 1 << width - 1
        if lowest:
            raise Undefined
        return quotient
    if name == "shri":
        return POISON if values[1] >= width else numbers[0] >> values[1]
    if name == "mulhii":
        return values[0] * values[1] >> width
    assert name == "absi"
    return abs(signed(values[0], width))


def meaning(term: Term, variables: Mapping[str, int]) -> int | None:
    """The value of a term; raises `Undefined`."""
    return _meaning(term, variables, {})


def _meaning(term: Term, variables: Mapping[str, int], memo: dict[Term, Any]) -> int | None:
    if not term.operands:
        return variables[term.name] if term.name in variables else int(term.name)
    if term in memo:
        return memo[term]
    values = [_meaning(o, variables, memo) for o in term.operands]
    if term.name == "select":
        found = POISON if values[0] is POISON else values[1 if values[0] else 2]
    elif POISON in values:
        if term.name in ("divi", "remi"):
            _poisoned_division(values[1], term)
        found = POISON
    else:
        found = _plain(term, values)  # type: ignore[arg-type]
    memo[term] = None if found is None else found & (1 << term.element.width) - 1
    return memo[term]


def _poisoned_division(divisor: int | None, term: Term) -> None:
    """Poison may be any number: zero below, or above -1 the smallest one."""
    all_ones = (1 << term.element.width) - 1
    overflows = dict(term.attrs)["signedness"] == "signed" and divisor == all_ones
    if not divisor or (overflows and term.name == "divi"):
        raise Undefined


# Random ones.

PROMISES = ("none", "no_signed_wrap", "no_unsigned_wrap", "no_wrap")
PREDICATES = tuple(_COMPARE)
_SIGNS = ("signed", "unsigned")


def edges(element: t.Scalar) -> list[int]:
    """Numbers at which something happens, as patterns."""
    width = element.width
    near = (0, 1, 2, 3, 7, -1, -2, -3, width - 1, width, 1 << width - 1, (1 << width - 1) - 1)
    return sorted({n & (1 << width) - 1 for n in (*near, 1 << width // 2, 100)})


class Random:
    """Random terms over few variables, so that much is alike."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._wild = self._random.random() < 0.3  # many promises about overflow

    def term(self, element: t.Scalar, depth: int) -> Term:
        """A term of a type."""
        pick = self._random
        if depth == 0 or pick.random() < 0.1:
            if pick.random() < 0.4:
                return number(pick.choice(edges(element)), element)
            letter = next(k for k, v in TYPES.items() if v == element)
            return variable(f"{letter}{pick.randrange(2)}")
        choices = [self._binary, self._binary, self._division, self._unary, self._select]
        if element != t.I1:
            choices += [self._extension]
        else:
            choices += [self._comparison] * 3
        if element != t.I64:
            choices += [self._truncation]
        return pick.choice(choices)(element, depth - 1)

    def _promise(self) -> str:
        return self._random.choice(PROMISES) if self._wild else "none"

    def _again(self, inside: Term, element: t.Scalar, depth: int) -> Term:
        """A part of a term, or another term: much that simplifies repeats itself."""
        parts = [p for p in _parts(inside) if p.element == element]
        if parts and self._random.random() < 0.5:
            return self._random.choice(parts)
        return self.term(element, depth)

    def _pair(self, element: t.Scalar, depth: int) -> tuple[Term, Term]:
        first = self.term(element, depth)
        second = self._again(first, element, depth)
        return (first, second) if self._random.random() < 0.6 else (second, first)

    def _binary(self, element: t.Scalar, depth: int) -> Term:
        name = self._random.choice(
            ("addi", "subi", "muli", "andi", "ori", "xori", "mulhii", "maxi", "mini", "shli",
             "shri", "addi", "subi", "andi", "ori")
        )  # fmt: skip
        attrs = {}
        if name in ("addi", "subi", "muli", "shli"):
            attrs["overflow"] = self._promise()
        if name in ("maxi", "mini", "shri"):
            attrs["signedness"] = self._random.choice(_SIGNS)
        left, right = self._pair(element, depth)
        if name in ("shli", "shri") and self._random.random() < 0.8:
            right = number(self._random.randrange(element.width), element)
        if name == "xori" and self._random.random() < 0.5:
            right = number(-1, element)
        return make(name, left, right, **attrs)

    def _division(self, element: t.Scalar, depth: int) -> Term:
        left, right = self._pair(element, depth)
        if self._random.random() < 0.6:
            values = [e for e in edges(element) if e] or [1]
            right = number(self._random.choice(values), element)
        sign = self._random.choice(_SIGNS)
        if self._random.random() < 0.5:
            return make("remi", left, right, signedness=sign)
        modes = ("zero", "positive_inf") if sign == "unsigned" else (
            "zero", "positive_inf", "negative_inf"
        )  # fmt: skip
        return make("divi", left, right, signedness=sign, rounding=self._random.choice(modes))

    def _unary(self, element: t.Scalar, depth: int) -> Term:
        source = self.term(element, depth)
        if self._random.random() < 0.3:
            return make("absi", source)
        if self._random.random() < 0.4:
            return make("xori", source, -1)
        promise = "no_signed_wrap" if self._promise() != "none" else "none"
        return make("negi", source, overflow=promise)

    def _select(self, element: t.Scalar, depth: int) -> Term:
        condition = self.term(t.I1, depth)
        then = self._again(condition, element, depth)
        return make("select", condition, then, self._again(condition, element, depth))

    def _comparison(self, element: t.Scalar, depth: int) -> Term:
        source = self._random.choice(list(TYPES.values()))
        left, right = self._pair(source, depth)
        return make(
            "cmpi",
            left,
            right,
            comparison_predicate=self._random.choice(PREDICATES),
            signedness=self._random.choice(_SIGNS),
        )

    def _extension(self, element: t.Scalar, depth: int) -> Term:
        narrower = [e for e in TYPES.values() if e.width < element.width]
        source = self.term(self._random.choice(narrower), depth)
        return make("exti", source, to=element, signedness=self._random.choice(_SIGNS))

    def _truncation(self, element: t.Scalar, depth: int) -> Term:
        wider = [e for e in TYPES.values() if e.width > element.width]
        source = self.term(self._random.choice(wider), depth)
        return make("trunci", source, to=element, overflow=self._promise())

    def inputs(self, count: int) -> Iterator[dict[str, int]]:
        """Values for the variables."""
        for _ in range(count):
            yield {name: self._random.choice(edges(e)) for name, e in VARIABLES.items()}


def _parts(term: Term) -> Iterator[Term]:
    yield term
    for operand in term.operands:
        yield from _parts(operand)
