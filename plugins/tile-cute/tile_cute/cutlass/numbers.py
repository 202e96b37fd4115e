"""Arithmetic that formulas are written in once, for Python's numbers and for generated code."""

from __future__ import annotations

from typing import Protocol, TypeVar

N = TypeVar("N")


class Numbers(Protocol[N]):
    """Unsigned arithmetic; conditions are numbers, too: 1 or 0."""

    def constant(self, value: int) -> N: ...

    def add(self, left: N, right: N) -> N: ...

    def sub(self, left: N, right: N) -> N: ...

    def mul(self, left: N, right: N) -> N: ...

    def div(self, left: N, right: N) -> N: ...

    def rem(self, left: N, right: N) -> N: ...

    def xor(self, left: N, right: N) -> N: ...

    def least(self, left: N, right: N) -> N: ...

    def most(self, left: N, right: N) -> N: ...

    def less(self, left: N, right: N) -> N: ...

    def equal(self, left: N, right: N) -> N: ...

    def select(self, condition: N, then: N, otherwise: N) -> N: ...


class Integers:
    """`Numbers` of Python."""

    def constant(self, value: int) -> int:
        return value

    def add(self, left: int, right: int) -> int:
        return left + right

    def sub(self, left: int, right: int) -> int:
        return left - right

    def mul(self, left: int, right: int) -> int:
        return left * right

    def div(self, left: int, right: int) -> int:
        return left // right

    def rem(self, left: int, right: int) -> int:
        return left % right

    def xor(self, left: int, right: int) -> int:
        return left ^ right

    def least(self, left: int, right: int) -> int:
        return min(left, right)

    def most(self, left: int, right: int) -> int:
        return max(left, right)

    def less(self, left: int, right: int) -> int:
        return int(left < right)

    def equal(self, left: int, right: int) -> int:
        return int(left == right)

    def select(self, condition: int, then: int, otherwise: int) -> int:
        return then if condition else otherwise
