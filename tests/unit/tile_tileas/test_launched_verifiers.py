"""What operations of launch control refuse, in their words."""

from __future__ import annotations

import re

import pytest
from support.functions import function

from tile_core.diagnostics import InputError

HEAD = """
#a = #nv_tileas.layout<"offset=[[1],[2]] : 4">
#one = #nv_tileas.layout<": 1">
!answer = !nv_tileas.buffer<tensor<4xi32, #a>, "shared", 1 : i32>
!two = !nv_tileas.buffer<tensor<4xi32, #a>, "shared", 2 : i32>
!floats = !nv_tileas.buffer<tensor<4xf32, #a>, "shared", 1 : i32>
!bar = !nv_tileas.barrier<1 : i32, 1 : i32>
!bars = !nv_tileas.barrier<1 : i32, 2 : i32>
"""
ARGUMENTS = (
    "%answer: !answer, %two: !two, %floats: !floats, %bar: !bar, %bars: !bars, %i: i32, %l: i64"
)


def ask(
    answer: str = "answer", barrier: str = "%bar", stage: str = "%i", types: str = "!bar, i32",
    ctas: str = "",
) -> str:  # fmt: skip
    operands, name = f"%{answer}, {barrier}, {stage}", "nv_tileas.async_cancel_next_program_id"
    return f'"{name}"({operands}) {ctas} : (!{answer}, {types}) -> ()'


def take(
    answers: str = "two", read: str = "bars", results: str = "i1, i32, i32, i32", ctas: str = ""
) -> str:
    operands, types = f"%{answers}, %bars, %{read}", f"!{answers}, !bars, !{read}"
    return f'%t:4 = "nv_tileas.take_program_id"({operands}) {ctas} : ({types}) -> ({results})'


def blocks(count: int) -> str:
    return f"{{ctas = {count} : i32}}"


def valid(result: str) -> str:
    return f'%v = "nv_tileas.is_valid_program_id"(%answer) : (!answer) -> {result}'


def following(axis: int, result: str = "i32") -> str:
    name, axis_ = "nv_tileas.next_program_id", f"{{axis = {axis} : i32}}"
    return f'%n = "{name}"(%answer) {axis_} : (!answer) -> {result}'


def whole(body: str) -> str:
    return f"{HEAD}func.func @f({ARGUMENTS}) {{\n{body}\nreturn\n}}"


def test_what_is_right_is_taken() -> None:
    lines = [ask(), valid("i1"), *(following(axis).replace("%n", f"%n{axis}") for axis in range(3))]
    lines += [take(), ask(ctas=blocks(2)), take(ctas=blocks(16)).replace("%t:", "%more:")]
    with function(whole("\n".join(lines))):
        pass


@pytest.mark.parametrize(
    ("line", "name", "message"),
    [
        (ask("two"), "async_cancel_next_program_id", "expects a buffer of 4 i32 in shared memory"),
        (ask("floats"), "async_cancel_next_program_id", "expects a buffer of 4 i32 in shared"),
        (
            ask(barrier="%i", types="i32, i32"), "async_cancel_next_program_id",
            "expects a barrier, but got i32",
        ),
        (
            ask(stage="%l", types="!bar, i64"), "async_cancel_next_program_id",
            "expects stage to be i32, but got i64",
        ),
        (valid("i32"), "is_valid_program_id", "expects an i1, but got i32"),
        (following(0, "i64"), "next_program_id", "expects an i32, but got i64"),
        (following(3), "next_program_id", "expects an axis of 0 to 2, but got 3"),
        (ask(ctas=blocks(17)), "async_cancel_next_program_id", "expects 2 to 16 blocks"),
        (take("floats"), "take_program_id", "expects a buffer of 4 i32 in shared memory"),
        (take("answer"), "take_program_id", "expects barriers of 1 stages, but got 2"),
        (take(read="bar"), "take_program_id", "expects barriers of 2 stages, but got 1"),
        (take(results="i32, i32, i32, i32"), "take_program_id", "expects an i1, but got i32"),
        (take(results="i1, i32, i64, i32"), "take_program_id", "expects an i32, but got i64"),
        (take(ctas=blocks(1)), "take_program_id", "expects 2 to 16 blocks, but got 1"),
    ],
)  # fmt: skip
def test_refusals(line: str, name: str, message: str) -> None:
    with pytest.raises(InputError) as caught, function(whole(line)):
        pass
    assert re.match(re.escape(f"'nv_tileas.{name}' op {message}"), caught.value.message)
