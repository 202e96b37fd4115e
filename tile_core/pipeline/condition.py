"""The language of `when`: comparisons of options and target facts, with and, or, not.

    sm >= 90 and pipeline-strategy != 'none'
    not tensor-memory or num-ctas in (1, 2)

Names may contain dashes. Literals are integers, decimals, true, false and 'quoted' strings.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

Value = bool | int | float | str

_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d+(?:\.\d+)?)|(?P<string>'[^']*'|\"[^\"]*\")"
    r"|(?P<name>[A-Za-z_][A-Za-z0-9_-]*)|(?P<sign><=|>=|==|!=|<|>|\(|\)|,))"
)
_COMPARE: Mapping[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_WORDS = ("and", "or", "not", "in", "true", "false")


class ConditionError(ValueError):
    """A condition that cannot be read or makes no sense; `name` is an unknown name, if that."""

    def __init__(self, message: str, name: str | None = None) -> None:
        super().__init__(message)
        self.name = name


@dataclass(frozen=True)
class Condition:
    """A parsed condition."""

    text: str
    tree: tuple[Any, ...]

    def names(self) -> tuple[str, ...]:
        """The names it refers to, in order of appearance."""
        return tuple(dict.fromkeys(_names(self.tree)))

    def value(self, scope: Mapping[str, Value]) -> Value:
        """Its value with the names bound by `scope`.

        Raises:
            ConditionError: an unknown name, or values that cannot be compared.
        """
        return _evaluate(self.tree, scope)

    def holds(self, scope: Mapping[str, Value]) -> bool:
        """Whether it is true; 0 and '' count as false."""
        return bool(self.value(scope))


@lru_cache(maxsize=512)
def parse_condition(text: str) -> Condition:
    """The condition that `text` spells.

    Raises:
        ConditionError: it is not a condition.
    """
    parser = _Parser(_tokens(text))
    tree = parser.either()
    if parser.peek() is not None:
        raise ConditionError(f'unexpected {parser.peek()!r} in condition "{text}"')
    return Condition(text, tree)


def _tokens(text: str) -> list[str]:
    found: list[str] = []
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            raise ConditionError(f'cannot read {text[at:].strip()!r} in condition "{text}"')
        found.append(match[0].strip())
        at = match.end()
    return found


class _Parser:
    """Recursive descent: or < and < not < comparison < literal or name."""

    def __init__(self, tokens: list[str]) -> None:
        self._tokens = tokens
        self._at = 0

    def peek(self) -> str | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def take(self, wanted: str | None = None) -> str:
        token = self.peek()
        if token is None or (wanted is not None and token != wanted):
            expected = f"'{wanted}'" if wanted else "a value"
            raise ConditionError(f"expected {expected}, but found {token or 'the end'}")
        self._at += 1
        return token

    def either(self) -> tuple[Any, ...]:
        tree = self.both()
        while self.peek() == "or":
            self.take()
            tree = ("or", tree, self.both())
        return tree

    def both(self) -> tuple[Any, ...]:
        tree = self.negated()
        while self.peek() == "and":
            self.take()
            tree = ("and", tree, self.negated())
        return tree

    def negated(self) -> tuple[Any, ...]:
        if self.peek() == "not":
            self.take()
            return ("not", self.negated())
        return self.comparison()

    def comparison(self) -> tuple[Any, ...]:
        left = self.atom()
        sign = self.peek()
        if sign in _COMPARE:
            self.take()
            return ("compare", sign, left, self.atom())
        if sign == "in":
            self.take()
            self.take("(")
            members = [self.atom()]
            while self.peek() == ",":
                self.take()
                members.append(self.atom())
            self.take(")")
            return ("in", left, tuple(members))
        return left

    def atom(self) -> tuple[Any, ...]:
        token = self.take()
        if token == "(":
            tree = self.either()
            self.take(")")
            return tree
        if token in ("true", "false"):
            return ("literal", token == "true")
        if token[0] in "'\"":
            return ("literal", token[1:-1])
        if token[0].isdigit():
            return ("literal", float(token) if "." in token else int(token))
        if token in _WORDS or not (token[0].isalpha() or token[0] == "_"):
            raise ConditionError(f"expected a value, but found '{token}'")
        return ("name", token)


def _names(tree: tuple[Any, ...]) -> list[str]:
    if tree[0] == "name":
        return [tree[1]]
    if tree[0] == "in":
        return [n for part in (tree[1], *tree[2]) for n in _names(part)]
    return [n for part in tree[1:] if isinstance(part, tuple) for n in _names(part)]


def _evaluate(tree: tuple[Any, ...], scope: Mapping[str, Value]) -> Value:
    kind = tree[0]
    if kind == "literal":
        return tree[1]
    if kind == "name":
        if tree[1] not in scope:
            raise ConditionError(f"unknown name '{tree[1]}'", name=tree[1])
        return scope[tree[1]]
    if kind == "not":
        return not _evaluate(tree[1], scope)
    # Both sides are evaluated always, so that a wrong name is found whatever the values are.
    if kind in ("and", "or"):
        left, right = (bool(_evaluate(part, scope)) for part in tree[1:])
        return (left and right) if kind == "and" else (left or right)
    if kind == "in":
        members = [_evaluate(member, scope) for member in tree[2]]
        return any(_compare("==", _evaluate(tree[1], scope), member) for member in members)
    return _compare(tree[1], _evaluate(tree[2], scope), _evaluate(tree[3], scope))


def _compare(sign: str, left: Value, right: Value) -> bool:
    numbers = (int, float)
    alike = type(left) is type(right) or (
        not isinstance(left, bool)
        and not isinstance(right, bool)
        and isinstance(left, numbers)
        and isinstance(right, numbers)
    )
    ordered = sign in ("==", "!=") or (isinstance(left, numbers) and not isinstance(left, bool))
    if not alike or not ordered:
        raise ConditionError(f"cannot compare {left!r} {sign} {right!r}")
    return _COMPARE[sign](left, right)
