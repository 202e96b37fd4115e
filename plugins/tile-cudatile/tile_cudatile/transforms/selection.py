"""What a selection is known to be, for both forms of a program that transformations look at.

The folds see operations, the simplifier expressions; `Questions` is what both can answer.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

V = TypeVar("V", bound=Hashable)
Parts = tuple[V, V, V]  # condition, then, otherwise


@dataclass(frozen=True)
class Questions(Generic[V]):
    """What a form of the program can say of a value.

    Attributes:
        truth: the value of a constant of i1, the same everywhere.
        compared: predicate and both sides, if the value is a comparison of integers.
        selection: its parts, if the value is a selection.
    """

    truth: Callable[[V], bool | None]
    compared: Callable[[V], tuple[str, frozenset[V]] | None]
    selection: Callable[[V], Parts[V] | None]


def one_of_its_parts(parts: Parts[V], ask: Questions[V]) -> V | None:
    """select true x y => x, select c x x => x, select c true false => c, x == y ? x : y => y"""
    condition, then, other = parts
    if then is other:
        return then
    chosen = ask.truth(condition)
    if chosen is not None:
        return then if chosen else other
    if ask.truth(then) is True and ask.truth(other) is False:
        return condition
    compared = ask.compared(condition)
    if compared is None or compared[1] != {then, other}:
        return None
    return {"equal": other, "not_equal": then}.get(compared[0])


def nearer_arms(parts: Parts[V], ask: Questions[V]) -> tuple[V, V] | None:
    """select c (select c x y) z => select c x z, and in the other arm; None if it is neither"""
    condition, *arms = parts
    inner = [ask.selection(arm) for arm in arms]
    found = [
        arm if known is None or known[0] is not condition else known[at + 1]
        for at, (arm, known) in enumerate(zip(arms, inner, strict=True))
    ]
    return None if found == arms else (found[0], found[1])
