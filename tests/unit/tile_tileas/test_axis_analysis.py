"""Soundness of the axis analysis: every claim about a random program is compared with its values.

Programs are straight lines of 16-bit arithmetic on small tiles, evaluated with NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import gcd

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.functions import function
from support.tiles import tile
from tile_tileas.analysis.axis import AxisAnalysis
from tile_tileas.analysis.axis_info import AxisInfo, unknown

SHAPES = ((), (16,), (8, 4), (1, 8), (8, 1))
#: Values of arith.CmpIPredicate -> what they compute on signed (first six) or unsigned values.
PREDICATES = (
    np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal,
    np.less, np.less_equal, np.greater, np.greater_equal,
)  # fmt: skip
FIRST_UNSIGNED = 6


def wrapped(values: np.ndarray, bits: int) -> np.ndarray:
    """The signed numbers that `bits` bits hold."""
    half = 1 << (bits - 1)
    return (values.astype(np.int64) + half) % (1 << bits) - half


@dataclass
class Value:
    """A value of the program, and what it holds; `exact` while nothing was widened."""

    name: str
    bits: int
    values: np.ndarray
    exact: bool = True

    @property
    def type(self) -> str:
        return tile(self.values.shape, f"i{self.bits}")


@dataclass
class Program:
    """Lines of a function and the values that they define, in order."""

    arguments: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)

    def emit(self, text: str, result: np.ndarray, bits: int, exact: bool = True) -> Value:
        value = Value(f"%v{len(self.values)}", bits, wrapped(result, bits), exact)
        self.lines.append(f"{value.name} = {text}{value.type}")
        self.values.append(value)
        return value

    def text(self) -> str:
        body = "\n".join(self.lines)
        return f"func.func @f({', '.join(self.arguments)}) {{\n{body}\nreturn\n}}"


@st.composite
def programs(draw: st.DrawFn) -> Program:
    program = Program()
    program.emit('"nv_tileaa.make_range"() : () -> ', np.arange(16), 16)
    for _ in range(draw(st.integers(1, 3))):
        leaf(draw, program)
    for _ in range(draw(st.integers(1, 8))):
        STEPS[draw(st.sampled_from([*sorted(STEPS), "compare", "compare"]))](draw, program)
    return program


def leaf(draw: st.DrawFn, program: Program) -> None:
    kind = draw(st.sampled_from(["argument", "constant", "range", "splat"]))
    shape = draw(st.sampled_from(SHAPES))
    divisor = 1 << draw(st.integers(0, 6))
    number = divisor * draw(st.integers(-40, 40))
    if kind == "range":
        (extent,) = draw(st.sampled_from([(16,), (8,), (1,)]))
        program.emit('"nv_tileaa.make_range"() : () -> ', np.arange(extent), 16)
    elif kind == "constant":
        dense = f"dense<{number}>" if shape else str(number)
        program.emit(f"arith.constant {dense} : ", np.full(shape, number), 16)
    else:
        name = f"%a{len(program.arguments)}"
        program.arguments.append(f"{name}: i16")
        assumed = program.emit(
            f'"nv_tileaa.assume"({name}) {{predicate = {{kind = "div_by", divisor = {divisor} : '
            "i64}} : (i16) -> ",
            np.array(number),
            16,
        )
        if kind == "splat" and shape:
            program.emit(
                f'"nv_tileaa.splat"({assumed.name}) : (i16) -> ', np.full(shape, number), 16
            )


def pair(draw: st.DrawFn, program: Program) -> tuple[Value, Value]:
    left = draw(st.sampled_from(program.values))
    same = [v for v in program.values if v.type == left.type]
    return left, draw(st.sampled_from(same))


def binary(name: str, compute):
    def step(draw: st.DrawFn, program: Program) -> None:
        left, right = pair(draw, program)
        result = compute(left.values, right.values)
        exact = left.exact and right.exact
        program.emit(f"{name} {left.name}, {right.name} : ", result, left.bits, exact)

    return step


def compare(draw: st.DrawFn, program: Program) -> None:
    left, right = pair(draw, program)
    if left.values.ndim and left.bits > 1 and draw(st.booleans()):  # a bound that cuts the tile
        bound = int(draw(st.sampled_from(sorted(left.values.flat)))) & -draw(
            st.sampled_from([1, 4])
        )
        shape = left.values.shape
        text = f"arith.constant dense<{bound}> : "
        right = program.emit(text, np.full(shape, bound), left.bits)
    predicate = draw(st.integers(0, len(PREDICATES) - 1))
    a, b = left.values, right.values
    if predicate >= FIRST_UNSIGNED:
        a, b = a % (1 << left.bits), b % (1 << left.bits)
    result = PREDICATES[predicate](a, b)
    types = f"{left.type}, {left.type}"
    attribute = f"{{predicate = {predicate} : i64}}"
    program.emit(f'"arith.cmpi"({left.name}, {right.name}) {attribute} : ({types}) -> ', result, 1)


def widen(draw: st.DrawFn, program: Program) -> None:
    value = draw(st.sampled_from(program.values))
    name = draw(st.sampled_from(["extsi", "extui"]))
    if value.bits == 16:
        result = value.values if name == "extsi" else value.values % (1 << 16)
        program.emit(f"arith.{name} {value.name} : {value.type} to ", result, 32, exact=False)


def broadcast(draw: st.DrawFn, program: Program) -> None:
    value = draw(st.sampled_from(program.values))
    if value.values.ndim == 2 and 1 in value.values.shape:
        shape = tuple(4 if extent == 1 else extent for extent in value.values.shape)
        result = np.broadcast_to(value.values, shape)
        text = f'"nv_tileaa.broadcast"({value.name}) : ({value.type}) -> '
        program.emit(text, result, value.bits, value.exact)


def view(draw: st.DrawFn, program: Program) -> None:
    value = draw(st.sampled_from(program.values))
    shapes = {16: [(16,), (1, 16), (16, 1)], 8: [(8,), (1, 8), (8, 1), (2, 4)], 1: [(1,), (1, 1)]}
    if value.values.ndim and value.values.size in shapes:
        result = value.values.reshape(draw(st.sampled_from(shapes[value.values.size])))
        text = f'"nv_tileaa.view"({value.name}) : ({value.type}) -> '
        program.emit(text, result, value.bits, value.exact)


def assume(draw: st.DrawFn, program: Program) -> None:
    """What happens to be true of a tile: its divisor, or the divisor of groups' starts."""
    value = draw(st.sampled_from(program.values))
    values = value.values
    if value.bits == 1:
        return
    every, extra = 1, ""
    if values.ndim and draw(st.booleans()):
        along = draw(st.integers(0, values.ndim - 1))
        every = rising(values, along, value.bits)
        values = np.take(values, np.arange(0, values.shape[along], every), axis=along)
        extra = f", every = {every} : i64, along = {along} : i64"
    divisor = gcd(1 << 10, *(int(number) for number in values.flat))
    predicate = f'{{kind = "div_by", divisor = {divisor} : i64{extra}}}'
    text = f'"nv_tileaa.assume"({value.name}) {{predicate = {predicate}}} : ({value.type}) -> '
    program.emit(text, value.values, value.bits, value.exact)


def rising(values: np.ndarray, along: int, bits: int) -> int:
    """The longest groups along an axis whose elements rise by one."""
    every = values.shape[along]
    while every > 1 and not rises(groups(values, along, every), bits):
        every //= 2
    return every


STEPS = {
    "addi": binary("arith.addi", np.add),
    "andi": binary("arith.andi", np.bitwise_and),
    "assume": assume,
    "broadcast": broadcast,
    "compare": compare,
    "muli": binary("arith.muli", np.multiply),
    "view": view,
    "widen": widen,
}


def groups(values: np.ndarray, axis: int, size: int) -> np.ndarray:
    """Aligned groups of `size` elements along `axis`, as rows."""
    moved = np.moveaxis(values, axis, -1)
    return moved.reshape(-1, size)


def rises(rows: np.ndarray, bits: int) -> bool:
    return bool((np.diff(rows, axis=1) % (1 << bits) == 1 % (1 << bits)).all())


def check(value: Value, info: AxisInfo) -> None:
    """Compare what is claimed with what is there.

    A run that passes the largest number of its width is cut there once it is widened, at a
    multiple of every power of two, so then only runs up to the divisor are promised.
    """
    assert info.rank == value.values.ndim
    if not info.rank:
        assert divisible(value.values, info.scalar), (value, info)
        return
    for axis, extent in enumerate(value.values.shape):
        run, divisor = info.contiguity[axis], info.divisibility[axis]
        assert extent % run == 0
        assert divisible(groups(value.values, axis, run)[:, 0], divisor), (value, info)
        if not value.exact:
            run = min(run, divisor)
        assert rises(groups(value.values, axis, run), value.bits), (value, info)
        same = groups(value.values, axis, info.constancy[axis])
        assert (same == same[:, :1]).all(), (value, info)


def divisible(values: np.ndarray, divisor: int) -> bool:
    return not (values % divisor).any()


@settings(max_examples=250, deadline=None)
@given(programs())
def test_claims_hold(program: Program) -> None:
    with function(program.text()) as func:
        known = AxisAnalysis(func.operation)
        ops = list(func.regions[0].blocks[0].operations)[:-1]
        for op, value in zip(ops, program.values, strict=True):
            check(value, known[op.results[0]])


def analysed(body: str, arguments: str = "") -> AxisInfo:
    """What is known of the last value of `body`."""
    with function(f"func.func @f({arguments}) {{\n{body}\nreturn\n}}") as func:
        known = AxisAnalysis(func.operation)
        return known[list(func.regions[0].blocks[0].operations)[-2].results[0]]


PTR = "!nv_tileaa.ptr<f32, 1 : i32>"
OFFSETS = f"""
  %p = "nv_tileaa.assume"(%q) {{predicate = {{kind = "div_by", divisor = 64 : i64}}}} : ({PTR}) -> {PTR}
  %i = "nv_tileaa.make_range"() : () -> tensor<128xi32>
  %c = arith.constant dense<8> : tensor<128xi32>
  %s = "nv_tileaa.splat"(%p) : ({PTR}) -> tensor<128x{PTR}>
  %o = arith.addi %i, %c : tensor<128xi32>
  %a = "nv_tileaa.addptr"(%s, %o) : (tensor<128x{PTR}>, tensor<128xi32>) -> tensor<128x{PTR}>
"""  # noqa: E501


def test_pointers_count_bytes() -> None:
    info = analysed(OFFSETS, f"%q: {PTR}")
    assert info == AxisInfo((128,), (32,), (1,))  # 64-byte base, 8 elements of 4 bytes further on


def test_guesses_are_not_useless() -> None:
    """The analysis would be sound if it knew nothing; these are what vectors come from."""
    mask = '%n = "nv_tileaa.assume"(%m) {predicate = {kind = "div_by", divisor = 16 : i64}}'
    body = f"""
      {mask} : (i32) -> i32
      %b = "nv_tileaa.splat"(%n) : (i32) -> tensor<128xi32>
      %i = "nv_tileaa.make_range"() : () -> tensor<128xi32>
      %k = arith.cmpi slt, %i, %b : tensor<128xi32>
    """
    assert analysed(body, "%m: i32").constancy == (16,)
    rows = """
      %i = "nv_tileaa.make_range"() : () -> tensor<8xi32>
      %v = "nv_tileaa.view"(%i) : (tensor<8xi32>) -> tensor<8x1xi32>
      %b = "nv_tileaa.broadcast"(%v) : (tensor<8x1xi32>) -> tensor<8x32xi32>
      %c = arith.constant dense<64> : tensor<8x32xi32>
      %m = arith.muli %b, %c : tensor<8x32xi32>
    """
    assert analysed(rows) == AxisInfo((1, 1), (64, 64), (1, 32))


@pytest.mark.parametrize(("lower", "step", "divisor"), [(0, 8, 8), (4, 8, 4), (16, 16, 16)])
def test_induction_variables(lower: int, step: int, divisor: int) -> None:
    text = f"""func.func @f(%n: i32) {{
      %l = arith.constant {lower} : i32
      %s = arith.constant {step} : i32
      scf.for %i = %l to %n step %s : i32 {{ }}
      return
    }}"""
    with function(text) as func:
        known = AxisAnalysis(func.operation)
        loop = func.regions[0].blocks[0].operations[2]
        assert known[loop.regions[0].blocks[0].arguments[0]].scalar == divisor


def test_nothing_is_known_of_what_is_read_from_a_buffer() -> None:
    lines = (
        '%p = "nv_tileas.extract_slice"(%b, %i, %i) : (!b, i32, i32) -> tensor<8x1xi32>\n'
        '%v = "nv_tileaa.view"(%p) : (tensor<8x1xi32>) -> tensor<8xi32>\n'
        '%w = "nv_tileas.insert_slice"(%b, %t, %i, %i) : '
        "(!b, tensor<16x8xi32>, i32, i32) -> tensor<16x8xi32>\n"
    )
    text = (
        '!b = !nv_tileas.buffer<tensor<8x8xi32>, "shared", 1 : i32>\n'
        f"func.func @f(%b: !b, %i: i32, %t: tensor<16x8xi32>) {{\n{lines}return\n}}\n"
    )
    with function(text) as op:
        _, view, inserted = list(op.regions[0].blocks[0].operations)[:3]
        known = AxisAnalysis(op)
        assert known[view.results[0]] == unknown((8,))
        assert known[inserted.results[0]] == unknown((16, 8))
