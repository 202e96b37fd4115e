"""Soundness of the axis and bounds analyses on random programs with loops and branches.

Every claim about a value is compared with all that the value ever held when the program ran.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.functions import function
from support.integers import Held, element_width, execute
from support.tiles import tile
from tile_tileas.analysis import ranges
from tile_tileas.analysis.axis import AxisAnalysis
from tile_tileas.analysis.axis_info import AxisInfo
from tile_tileas.analysis.bounds import BoundsAnalysis
from tile_tileas.analysis.ranges import Range

from tile_core.mlir import ir

SHAPES = ((), (), (16,), (256,), (4, 8), (1, 8))
WIDTHS = (1, 8, 16, 32)
BINARY = (
    "addi", "andi", "ceildivsi", "divsi", "divui", "floordivsi", "maxsi", "maxui", "minsi",
    "minui", "muli", "ori", "remsi", "remui", "shli", "shrsi", "shrui", "subi", "xori",
)  # fmt: skip
#: What makes an operation worth looking at as its second operand.
INTERESTING = (0, 1, 2, 3, 4, 8, 16, 64, -1, -8, 100, 127, -128)


@dataclass(frozen=True)
class Value:
    """An SSA value of the text."""

    name: str
    shape: tuple[int, ...]
    width: int

    @property
    def type(self) -> str:
        return tile(self.shape, f"i{self.width}")


@dataclass
class Maker:
    """Writes a function, one operation after the other; `scope` is what may be used."""

    draw: st.DrawFn
    arguments: list[str] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    scope: list[Value] = field(default_factory=list)
    count: int = 0

    def name(self) -> str:
        self.count += 1
        return f"%v{self.count}"

    def emit(self, text: str, shape: tuple[int, ...], width: int) -> Value:
        value = Value(self.name(), shape, width)
        self.lines.append(f"{value.name} = {text.replace('RESULT', value.type)}")
        self.scope.append(value)
        return value

    def pick(self, *, width: int | None = None, shape: tuple[int, ...] | None = None) -> Value:
        """A value in scope of that kind, or a new constant."""
        found = [
            v
            for v in self.scope
            if width in (None, v.width) and (shape is None or shape == v.shape)
        ]
        if found and self.draw(st.integers(0, 4)):
            return self.draw(st.sampled_from(found))
        if width is None:
            width = self.draw(st.sampled_from(WIDTHS))
        return self.constant(self.draw(st.sampled_from(SHAPES)) if shape is None else shape, width)

    def constant(self, shape: tuple[int, ...], width: int) -> Value:
        number = self.draw(st.sampled_from(INTERESTING)) % (1 << width)
        if shape and self.draw(st.integers(0, 3)) == 0 and len(shape) == 1:
            start = number - self.draw(st.integers(0, 3))
            values = [(start + at) % (1 << width) for at in range(shape[0])]
            spelt = ", ".join("true" if width == 1 and v else str(v) for v in values)
            spelt = spelt.replace("0", "false") if width == 1 else spelt
            return self.emit(f"arith.constant dense<[{spelt}]> : RESULT", shape, width)
        spelt = str(number) if width > 1 else str(bool(number)).lower()
        if shape:
            return self.emit(f"arith.constant dense<{spelt}> : RESULT", shape, width)
        typed = f"arith.constant {spelt}" + (" : RESULT" if width > 1 else "")
        return self.emit(typed, (), width)

    def argument(self) -> None:
        width = self.draw(st.sampled_from(WIDTHS[1:]))
        divisor = 1 << self.draw(st.integers(0, 6))
        number = divisor * self.draw(st.integers(-40, 40))
        half = 1 << (width - 1)
        number = (number + half) % (1 << width) - half
        name = f"%a{len(self.arguments)}"
        self.arguments.append(f"{name}: i{width}")
        self.numbers.append(number)
        low = max(number - self.draw(st.integers(0, 3)), -half)
        high = min(number + self.draw(st.integers(0, 3)), half - 1)
        predicate = self.draw(
            st.sampled_from(
                [
                    f'kind = "div_by", divisor = {divisor} : i64',
                    f'kind = "bounded", lb = {low} : i64, ub = {high} : i64',
                ]
            )
        )
        self.emit(
            f'"nv_tileaa.assume"({name}) {{predicate = {{{predicate}}}}} : (i{width}) -> RESULT',
            (),
            width,
        )

    def step(self, depth: int) -> None:
        kinds = ["binary"] * 5 + ["compare", "select", "cast", "cast", "shape", "shape", "range"]
        if depth:
            kinds += ["for", "while", "if"]
        kind = self.draw(st.sampled_from(kinds))
        if kind in ("for", "while", "if"):
            getattr(self, f"{kind}_")(depth - 1)
        else:
            getattr(self, kind)()

    def binary(self) -> None:
        left = self.pick()
        right = self.pick(width=left.width, shape=left.shape)
        name = self.draw(st.sampled_from(BINARY))
        self.emit(f"arith.{name} {left.name}, {right.name} : RESULT", left.shape, left.width)

    def compare(self) -> Value:
        left = self.pick()
        right = self.pick(width=left.width, shape=left.shape)
        predicate = self.draw(st.integers(0, 9))
        return self.emit(
            f'"arith.cmpi"({left.name}, {right.name}) {{predicate = {predicate} : i64}} : '
            f"({left.type}, {left.type}) -> RESULT",
            left.shape,
            1,
        )

    def select(self) -> None:
        left = self.pick()
        right = self.pick(width=left.width, shape=left.shape)
        condition = self.pick(width=1, shape=self.draw(st.sampled_from([(), left.shape])))
        self.emit(
            f'"arith.select"({condition.name}, {left.name}, {right.name}) : '
            f"({condition.type}, {left.type}, {left.type}) -> RESULT",
            left.shape,
            left.width,
        )

    def cast(self) -> None:
        value = self.pick()
        width = self.draw(st.sampled_from([w for w in WIDTHS if w != value.width]))
        name = "trunci" if width < value.width else self.draw(st.sampled_from(["extsi", "extui"]))
        self.emit(f"arith.{name} {value.name} : {value.type} to RESULT", value.shape, width)

    def range(self) -> None:
        shape = self.draw(st.sampled_from([(16,), (256,)]))
        width = self.draw(st.sampled_from(WIDTHS))
        self.emit('"nv_tileaa.make_range"() : () -> RESULT', shape, width)

    def shape(self) -> None:
        value = self.pick()
        shapes = {
            (): [((16,), "splat"), ((4, 8), "splat")],
            (16,): [((1, 16), "view"), ((16, 1), "view"), ((4, 4), "view"), ((8,), "slice")],
            (256,): [((16,), "slice"), ((1, 256), "view")],
            (4, 8): [((8, 4), "permute"), ((32,), "view"), ((4, 16), "cat"), ((2, 4), "slice")],
            (1, 8): [((4, 8), "broadcast"), ((8,), "view"), ((8, 1), "permute")],
        }
        found = shapes.get(value.shape)
        if not found:
            return
        shape, kind = self.draw(st.sampled_from(found))
        operands, extra, name = [value], "", kind  # of one operand, unless said otherwise
        if kind == "permute":
            extra = " {permutation = array<i32: 1, 0>}"
        elif kind == "cat":
            operands = [value, self.pick(width=value.width, shape=value.shape)]
            extra = " {axis = 1 : i32}"
        elif kind == "slice":
            name = "extract_slice"
            operands += [self.pick(width=32, shape=()) for _ in shape]
        names, types = (
            ", ".join(parts) for parts in zip(*((o.name, o.type) for o in operands), strict=True)
        )
        self.emit(f'"nv_tileaa.{name}"({names}){extra} : ({types}) -> RESULT', shape, value.width)

    def body(self, depth: int, inner: list[Value], wanted: list[Value]) -> list[Value]:
        """Steps with `inner` in scope as well, and values of the types of `wanted`."""
        outside = list(self.scope)
        self.scope += inner
        for _ in range(self.draw(st.integers(0, 3))):
            self.step(depth)
        found = [self.pick(width=w.width, shape=w.shape) for w in wanted]
        self.scope = outside
        return found

    def carried(self) -> tuple[list[Value], list[Value]]:
        start = [self.pick() for _ in range(self.draw(st.integers(1, 3)))]
        return start, [Value(self.name(), v.shape, v.width) for v in start]

    def for_(self, depth: int) -> None:
        bounds = [self.pick(width=32, shape=()) for _ in range(3)]
        start, inner = self.carried()
        new = [Value(self.name(), v.shape, v.width) for v in start]
        variable = Value(self.name(), (), 32)
        pairs = ", ".join(f"{i.name} = {s.name}" for i, s in zip(inner, start, strict=True))
        types = ", ".join(v.type for v in start)
        low, high, step = (b.name for b in bounds)
        self.lines.append(
            f"{', '.join(v.name for v in new)} = scf.for {variable.name} = {low} to {high} step "
            f"{step} iter_args({pairs}) -> ({types}) : i32 {{"
        )
        back = self.body(depth, [variable, *inner], start)
        self.lines.append(f"scf.yield {', '.join(v.name for v in back)} : {types}\n}}")
        self.scope += new

    def while_(self, depth: int) -> None:
        start, inner = self.carried()
        new = [Value(self.name(), v.shape, v.width) for v in start]
        other = [Value(self.name(), v.shape, v.width) for v in start]
        pairs = ", ".join(f"{i.name} = {s.name}" for i, s in zip(inner, start, strict=True))
        types = ", ".join(v.type for v in start)
        self.lines.append(
            f"{', '.join(v.name for v in new)} = scf.while ({pairs}) : ({types}) -> ({types}) {{"
        )
        bit = Value("", (), 1)
        condition, *passed = self.body(depth, inner, [bit, *start])
        names = ", ".join(v.name for v in passed)
        self.lines.append(f"scf.condition({condition.name}) {names} : {types}\n}} do {{")
        self.lines.append(f"^bb0({', '.join(f'{o.name}: {o.type}' for o in other)}):")
        back = self.body(depth, other, start)
        self.lines.append(f"scf.yield {', '.join(v.name for v in back)} : {types}\n}}")
        self.scope += new

    def if_(self, depth: int) -> None:
        condition = self.pick(width=1, shape=())
        like = [self.pick() for _ in range(self.draw(st.integers(1, 2)))]
        new = [Value(self.name(), v.shape, v.width) for v in like]
        types = ", ".join(v.type for v in like)
        self.lines.append(
            f"{', '.join(v.name for v in new)} = scf.if {condition.name} -> ({types}) {{"
        )
        for end in ("} else {", "}"):
            back = self.body(depth, [], like)
            self.lines.append(f"scf.yield {', '.join(v.name for v in back)} : {types}\n{end}")
        self.scope += new

    def text(self) -> str:
        body = "\n".join(self.lines)
        return f"func.func @f({', '.join(self.arguments)}) {{\n{body}\nreturn\n}}"


@st.composite
def programs(draw: st.DrawFn) -> tuple[str, list[int]]:
    maker = Maker(draw)
    for _ in range(draw(st.integers(1, 3))):
        maker.argument()
    maker.range()
    for _ in range(draw(st.integers(1, 9))):
        maker.step(depth=2)
    return maker.text(), maker.numbers


def groups(values: np.ndarray, axis: int, size: int) -> np.ndarray:
    """Aligned groups of `size` elements along `axis`, as rows."""
    return np.moveaxis(values, axis, -1).reshape(-1, size)


def check_axis(held: Held, width: int, info: AxisInfo) -> None:
    values = held.numbers
    assert info.rank == values.ndim
    if not info.rank:
        assert not (values % info.scalar).any()
        return
    for axis in range(info.rank):
        run, divisor = info.contiguity[axis], info.divisibility[axis]
        assert not (groups(values, axis, run)[:, 0] % divisor).any()
        if not held.exact:  # runs may be cut where they were widened
            run = min(run, divisor)
        steps = np.diff(groups(values, axis, run), axis=1)
        assert (steps % (1 << width) == 1 % (1 << width)).all()
        same = groups(values, axis, info.constancy[axis])
        assert (same == same[:, :1]).all()


def check(text: str, arguments: list[int]) -> None:
    with function(text) as func:
        axis, bounds = AxisAnalysis(func.operation), BoundsAnalysis(func.operation)
        for value, held in execute(func, arguments):
            check_axis(held, element_width(value.type), axis[value])
            claim = bounds[value]
            assert claim.lo <= held.numbers.min(), (str(value), claim)
            assert held.numbers.max() <= claim.hi, (str(value), claim)


@settings(max_examples=300, deadline=None)
@given(programs())
def test_claims_hold(program: tuple[str, list[int]]) -> None:
    check(*program)


@pytest.mark.slow
@settings(max_examples=4000, deadline=None)
@given(programs())
def test_claims_hold_for_long(program: tuple[str, list[int]]) -> None:
    check(*program)


RUNS = """
  %r = "nv_tileaa.make_range"() : () -> tensor<1024xi32>
  %s = "nv_tileaa.splat"(%a) : (i32) -> tensor<1024xi32>
  %c = arith.constant dense<{number}> : tensor<1024xi32>
  %x = arith.addi %r, %s : tensor<1024xi32>
"""
NARROW = [
    line.replace("WIDE", wide)
    for line in (
        "%n = arith.trunci %x : tensor<1024xi32> to tensor<1024xi8>\n"
        "%y = arith.WIDE %n : tensor<1024xi8> to tensor<1024xi32>",
        "%n = arith.trunci %x : tensor<1024xi32> to tensor<1024xi1>\n"
        "%y = arith.WIDE %n : tensor<1024xi1> to tensor<1024xi32>",
        '%n = "nv_tileaa.make_range"() : () -> tensor<1024xi8>\n'
        "%y = arith.WIDE %n : tensor<1024xi8> to tensor<1024xi32>",
    )
    for wide in ("extsi", "extui")
]
BY_NUMBERS = [
    f"%y = arith.{name} %x, %c : tensor<1024xi32>"
    for name in (
        "divsi", "divui", "floordivsi", "ceildivsi", "remsi", "remui", "andi", "shli", "shrsi",
        "shrui", "subi", "muli", "minsi", "ori",
    )
]  # fmt: skip


@pytest.mark.parametrize("start", [0, 3, -8, -1024, (1 << 31) - 512, (1 << 31) - 7])
@pytest.mark.parametrize("body", [*NARROW, *BY_NUMBERS])
def test_runs_that_are_cut(body: str, start: int) -> None:
    """Runs of consecutive numbers, over the ends of types and through what breaks them up."""
    compared = "\n%k = arith.cmpi slt, %y, %c : tensor<1024xi32>"
    for number in (16, 8, 3, 1, -8, -(1 << 31)):
        head = RUNS.format(number=number)
        check(f"func.func @f(%a: i32) {{{head}{body}{compared}\nreturn\n}}", [start])
        known = head.replace('splat"(%a)', 'splat"(%b)')
        assume = '%b = "nv_tileaa.assume"(%a) {predicate = {kind = "div_by", divisor = 8 : i64}} '
        if start % 8 == 0:
            text = f"func.func @f(%a: i32) {{{assume}: (i32) -> i32{known}{body}{compared}"
            check(text + "\nreturn\n}", [start])


BITS = 4
NUMBERS = range(-(1 << (BITS - 1)), 1 << (BITS - 1))


def intervals() -> list[Range]:
    return [Range(lo, hi) for lo in NUMBERS for hi in NUMBERS if lo <= hi]


def _wrap(value: int) -> int:
    half = 1 << (BITS - 1)
    return (value + half) % (1 << BITS) - half


def _low(value: int) -> int:
    return value % (1 << BITS)


EXACT = {
    "add": (lambda a, b: ranges.add(a, b, BITS), lambda x, y: _wrap(x + y)),
    "subtract": (lambda a, b: ranges.subtract(a, b, BITS), lambda x, y: _wrap(x - y)),
    "multiply": (lambda a, b: ranges.multiply(a, b, BITS), lambda x, y: _wrap(x * y)),
    "and": (lambda a, b: ranges.bit_and(a, b, BITS), lambda x, y: x & y),
    "or": (lambda a, b: ranges.bit_or(a, b, BITS), lambda x, y: x | y),
    "xor": (lambda a, b: ranges.bit_xor(a, b, BITS), lambda x, y: x ^ y),
    "smaller": (ranges.smaller, min),
    "larger": (ranges.larger, max),
    "down": (lambda a, b: ranges.divide(a, b, BITS, "down"), lambda x, y: _wrap(x // y)),
    "up": (lambda a, b: ranges.divide(a, b, BITS, "up"), lambda x, y: _wrap(-(-x // y))),
    "unsigned": (
        lambda a, b: ranges.divide_unsigned(a, b, BITS, "zero"),
        lambda x, y: _wrap(_low(x) // _low(y)),
    ),
    "remainder": (
        lambda a, b: ranges.remainder(a, b, BITS),
        lambda x, y: int(np.fmod(x, y)),
    ),
    "remainder_unsigned": (
        lambda a, b: ranges.remainder_unsigned(a, b, BITS),
        lambda x, y: _wrap(_low(x) % _low(y)),
    ),
}


@pytest.mark.parametrize("name", EXACT)
def test_ranges_of_four_bits(name: str) -> None:
    """Every pair of intervals of four-bit numbers, by brute force."""
    claim, compute = EXACT[name]
    divides = name in ("down", "up", "unsigned", "remainder", "remainder_unsigned")
    table = {(x, y): compute(x, y) for x in NUMBERS for y in NUMBERS if y or not divides}
    for a in intervals()[::3]:
        for b in intervals()[::2]:
            found = claim(a, b)
            for x in range(a.lo, a.hi + 1):
                for y in range(b.lo, b.hi + 1):
                    if (x, y) in table:
                        assert found.lo <= table[x, y] <= found.hi, (name, a, b, x, y)


@pytest.mark.parametrize("predicate", ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "uge"])
def test_comparisons_of_four_bits(predicate: str) -> None:
    compute = {
        "eq": lambda x, y: x == y, "ne": lambda x, y: x != y, "slt": lambda x, y: x < y,
        "sle": lambda x, y: x <= y, "sgt": lambda x, y: x > y, "sge": lambda x, y: x >= y,
        "ult": lambda x, y: _low(x) < _low(y), "uge": lambda x, y: _low(x) >= _low(y),
    }[predicate]  # fmt: skip
    for a in intervals()[::3]:
        for b in intervals()[::2]:
            found = ranges.compare(predicate, a, b, BITS)
            outcomes = {
                int(compute(x, y)) for x in range(a.lo, a.hi + 1) for y in range(b.lo, b.hi + 1)
            }
            assert all(found.lo <= outcome <= found.hi for outcome in outcomes)


def last(text: str) -> tuple[AxisInfo, Range]:
    """What is known of the last value that the function defines."""
    with function(text) as func:
        ops = list(func.regions[0].blocks[0].operations)
        value = list(ops[-2].results)[-1]
        return AxisAnalysis(func.operation)[value], BoundsAnalysis(func.operation)[value]


LOOP = """func.func @f(%n: i32) {{
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %end = arith.constant 10 : i32
  %start = arith.constant 64 : i32
  %step = arith.constant {step} : i32
  %r = scf.for %i = %zero to %end step %one iter_args(%x = %start) -> (i32) : i32 {{
    %y = {body}
    scf.yield %y : i32
  }}
  return
}}"""


def test_loops_reach_a_fixpoint() -> None:
    """Not useless: what goes round keeps its divisor."""
    assert last(LOOP.format(step=16, body="arith.addi %x, %step : i32"))[0].scalar == 16
    assert last(LOOP.format(step=24, body="arith.addi %x, %step : i32"))[0].scalar == 8
    smaller = last(LOOP.format(step=24, body="arith.minsi %x, %i : i32"))
    assert smaller[1] == Range(0, 64)
    # What grows in every turn ends up unknown, and does end.
    assert last(LOOP.format(step=24, body="arith.addi %x, %step : i32"))[1] == ranges.full(32)


@pytest.mark.parametrize(
    ("lower", "upper", "step", "found"),
    [
        (0, 10, 1, Range(0, 9)),
        (3, 10, 4, Range(3, 9)),
        (5, 2, 1, Range(5, 5)),  # never runs
        (0, (1 << 31) - 1, 1, Range(0, (1 << 31) - 2)),
        (0, (1 << 31) - 1, 2, ranges.full(32)),  # the last step wraps around, and it goes on
    ],
)
def test_induction_variables(lower: int, upper: int, step: int, found: Range) -> None:
    text = f"""func.func @f() {{
      %l = arith.constant {lower} : i32
      %u = arith.constant {upper} : i32
      %s = arith.constant {step} : i32
      scf.for %i = %l to %u step %s : i32 {{ }}
      return
    }}"""
    with function(text) as func:
        known = BoundsAnalysis(func.operation)
        loop = func.regions[0].blocks[0].operations[3]
        assert known[loop.regions[0].blocks[0].arguments[0]] == found


def test_a_type_that_is_no_integer_is_left_alone() -> None:
    with function("func.func @f(%x: f32) { %y = arith.negf %x : f32 return }") as func:
        assert not BoundsAnalysis(func.operation).tracks(ir.F32Type.get())


def test_a_slice_of_a_buffer_may_be_anything() -> None:
    held = '#nv_tileas.layout<"offset=[[1],[2],[4]] : 8">'
    own = '#nv_tileas.layout<"lane=[[0],[0],[0],[0],[0]] : 1">'
    text = f"""func.func @f() {{
      %at = arith.constant 0 : i32
      %buffer = "nv_tileas.alloc_tensor"() {{alignment = 16 : i32}}
        : () -> !nv_tileas.buffer<tensor<8xi64, {held}>, "shared", 1>
      %slice = "nv_tileas.extract_slice"(%buffer, %at)
        : (!nv_tileas.buffer<tensor<8xi64, {held}>, "shared", 1>, i32) -> tensor<1xi64, {own}>
      return
    }}"""
    with function(text) as func:
        slice_ = func.regions[0].blocks[0].operations[2].results[0]
        assert BoundsAnalysis(func.operation)[slice_] == ranges.full(64)


def test_a_tile_with_a_part_from_a_buffer_may_hold_anything() -> None:
    held = '#nv_tileas.layout<"offset=[[1],[2]] : 4">'
    own = '#nv_tileas.layout<"register=[[1],[2],[4]] lane=[[0],[0],[0],[0],[0]] : 8">'
    text = f"""func.func @f(%whole: tensor<8xi64, {own}>) {{
      %at = arith.constant 0 : i32
      %buffer = "nv_tileas.alloc_tensor"() {{alignment = 16 : i32}}
        : () -> !nv_tileas.buffer<tensor<4xi64, {held}>, "shared", 1>
      %tile = "nv_tileas.insert_slice"(%buffer, %whole, %at)
        : (!nv_tileas.buffer<tensor<4xi64, {held}>, "shared", 1>, tensor<8xi64, {own}>, i32)
        -> tensor<8xi64, {own}>
      return
    }}"""
    with function(text) as func:
        tile_ = func.regions[0].blocks[0].operations[2].results[0]
        assert BoundsAnalysis(func.operation)[tile_] == ranges.full(64)
