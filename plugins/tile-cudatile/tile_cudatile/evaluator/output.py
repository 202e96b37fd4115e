"""Printing and assertions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from tile_cudatile.evaluator.formats import Array, element_of
from tile_cudatile.evaluator.integers import signed, unsigned
from tile_cudatile.evaluator.registry import handles
from tile_cudatile.evaluator.rounding import widen
from tile_cudatile.print_format import CONVERSION, shows_value
from tile_cudatile.tree import Op, Value
from tile_cudatile.types import Scalar, Tile

if TYPE_CHECKING:
    from tile_cudatile.evaluator.machine import Running

_LENGTHS = re.compile(r"[hlLqjzt]+")


@handles("assert")
def assert_(run: Running, op: Op, condition: Array) -> None:
    """Notes the message once for every element that is false; the program goes on."""
    condition = np.asarray(condition)
    for index in np.argwhere(~condition):
        place = ", ".join(str(int(i)) for i in index)
        run.shared.outcome.failed.append(f"{op.attrs['message']} at [{place}]")


@handles("print_tko")
def print_(run: Running, op: Op, arguments: tuple[Array, ...], token: Any) -> None:
    """C's printf; the elements of a tile are written like a nested list."""
    sources = op.operands[0]
    assert isinstance(sources, tuple)
    values = iter(zip(sources, arguments, strict=True))

    def convert(match: re.Match[str]) -> str:
        if not shows_value(match):
            return "%"
        source, value = next(values)
        return _nested(np.asarray(value), source, f"%{_LENGTHS.sub('', match[1])}", match[2])

    run.shared.outcome.printed.append(CONVERSION.sub(convert, str(op.attrs["str"])))


def _nested(value: Array, source: Value, flags: str, letter: str) -> str:
    if value.ndim:
        inner = ", ".join(_nested(v, source, flags, letter) for v in value)
        return f"[{inner}]"
    type_ = source.type
    assert isinstance(type_, Tile)
    if not isinstance(type_.element, Scalar):
        return f"{int(value):#x}"
    element = element_of(type_)
    if element.is_float:
        kind = letter if letter in "eEfFgG" else "f"
        return f"{flags}{kind}" % float(widen(value))
    if letter in "oxX" or letter == "u" or element.width == 1:
        return f"{flags}{letter if letter in 'oxX' else 'd'}" % int(unsigned(value, element))
    return f"{flags}d" % int(signed(value, element))
