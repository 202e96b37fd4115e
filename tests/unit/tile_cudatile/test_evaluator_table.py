"""Every elementwise operation on every type it has, with all attributes, against exact numbers.

The combinations come from the tables of operations: an operation that nothing here knows fails.
"""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tile_cudatile import read_bytecode
from tile_cudatile import types as t
from tile_cudatile.evaluator import EvaluationError
from tile_cudatile.ops import BODY_OPS
from tile_cudatile.ops.spec import OpSpec
from unit.tile_cudatile import exact_floats as x
from unit.tile_cudatile import exact_functions, samples
from unit.tile_cudatile.exact_floats import FORMATS, INF, NAN, Number
from unit.tile_cudatile.integer_terms import Term, Undefined, edges, meaning, number
from unit.tile_cudatile.raw_runs import run
from unit.tile_cudatile.rule_support import complaint

#: What is no elementwise arithmetic, and where it is tested.
ELSEWHERE = {
    "test_evaluator_shapes": (
        "broadcast", "cat", "constant", "extract", "insert", "iota", "pack", "permute", "reshape",
        "select", "unpack", "offset", "int_to_ptr", "ptr_to_int", "ptr_to_ptr",
    ),
    "test_evaluator_products": ("mmaf", "mmai", "mmaf_scaled", "reduce", "scan", "atomic_rmw_tko",
                                "atomic_cas_tko", "atomic_red_view_tko"),
    "test_evaluator_control": (
        "get_num_tile_blocks", "get_tensor_shape", "alloca", "gdc_launch_dependents_tko",
        "gdc_wait_tko", "memory_fence_alias_tko", "multimem_load_reduce_view_tko",
        "multimem_reduce_view_tko", "multimem_store_view_tko", "get_global", "make_token",
        "get_index_space_shape", "get_tile_block_id", "join_tokens", "load_ptr_tko",
        "store_ptr_tko", "make_tensor_view", "make_partition_view",
    ),
    "test_evaluator_programs": (
        "assert", "assume", "for", "if", "load_view_tko", "loop", "print_tko", "store_view_tko",
        "make_strided_view", "make_gather_scatter_view", "break", "continue", "yield", "return",
    ),
}  # fmt: skip
OTHERS = {name for names in ELSEWHERE.values() for name in names}
ELEMENTWISE = [spec for spec in BODY_OPS if spec.name not in OTHERS]

_SIGNS = {"absf", "negf"}
_EXACT = {"addf", "subf", "mulf", "divf", "sqrt", "fma", "remf"}
_INTEGER = {
    "absi", "negi", "mulhii", "addi", "andi", "maxi", "mini", "muli", "ori", "remi", "shli", "shri",
    "subi", "xori", "divi", "cmpi", "exti", "trunci",
}  # fmt: skip
_CASTS = {"ftof", "itof", "ftoi", "bitcast"}
_ORDER = {"maxf", "minf", "cmpf", "ceil", "floor"}
KNOWN = _SIGNS | _EXACT | _INTEGER | _CASTS | _ORDER | exact_functions.NAMES


def test_every_operation_is_compared_somewhere() -> None:
    assert {spec.name for spec in ELEMENTWISE} == KNOWN
    assert not OTHERS & KNOWN
    assert {spec.name for spec in BODY_OPS} == OTHERS | KNOWN


@pytest.mark.parametrize("module", ELSEWHERE)
def test_what_is_tested_elsewhere_is(module: str) -> None:
    """By name, or in the sample kernels that the programs are."""
    text = (Path(__file__).parent / f"{module}.py").read_text(encoding="utf-8")
    known = set(re.findall(r"\w+", text)) | {"make_strided_view", "make_gather_scatter_view"}
    if module == "test_evaluator_programs":
        programs = [read_bytecode(samples.sample(name)) for name in samples.NAMES]
        known |= {op.name for m in programs for entry in m.entries for op in entry.body.walk()}
    assert set(ELSEWHERE[module]) <= known, set(ELSEWHERE[module]) - known


Combination = tuple[tuple[t.Scalar, ...], t.Scalar, dict[str, Any]]


def combinations(spec: OpSpec) -> Iterator[Combination]:
    """All element types and attributes that the verifier accepts."""
    names = [o.name for o in spec.operands] + ["result" if len(spec.results) == 1 else ""]
    names[-1] = spec.results[0].name
    same = next((set(which) for kind, which in spec.rules if kind == "type"), set())
    choices = [
        sorted(o.constraint.elements or (), key=str) for o in (*spec.operands, *spec.results)
    ]
    values: list[list[Any]] = []
    for attr in spec.attrs:
        values.append([None, True] if attr.kind == "unit" else list(attr.values))
    for elements in itertools.product(*choices):
        chosen = {e for name, e in zip(names, elements, strict=True) if name in same}
        if len(chosen) > 1:
            continue
        for attributes in itertools.product(*values):
            attrs = {
                a.name: v for a, v in zip(spec.attrs, attributes, strict=True) if v is not None
            }
            tiles: list[Any] = [t.Tile((2,), e) for e in elements]
            if not complaint(spec.name, tiles[:-1], tiles[-1:], **attrs):
                yield elements[:-1], elements[-1], attrs


@cache
def probes(element: t.Scalar, count: int) -> list[int]:
    """Patterns: edges, and random ones."""
    rng = random.Random(count)
    if element.is_float:
        found = FORMATS[element.name].edges()
    else:
        found = edges(element) if element.width > 4 else list(range(1 << element.width))
    return found + [
        rng.getrandbits(element.width) for _ in range(count if element.width > 8 else 0)
    ]


def rows(elements: tuple[t.Scalar, ...], most: int) -> list[tuple[int, ...]]:
    """Operands: all pairs of edges, or as many as allowed, drawn at random."""
    lists = [probes(e, 24) for e in elements]
    size = 1
    for values in lists:
        size *= len(values)
    if size <= most:
        return list(itertools.product(*lists))
    rng = random.Random(size)
    return [tuple(map(rng.choice, lists)) for _ in range(most)]


# What is expected: a pattern, NAN, None (not specified), or the bounds of an approximation.


def flushed(number_: Number, attrs: dict[str, Any]) -> Number:
    tiny = isinstance(number_[1], Fraction) and number_[1] < Fraction(2) ** -126
    return (number_[0], Fraction(0)) if attrs.get("flush_to_zero") and tiny else number_


def expected(
    name: str, inputs: tuple[t.Scalar, ...], result: t.Scalar, attrs: dict, row: tuple[int, ...]
):
    """The result of an operation on patterns."""
    if name in _INTEGER:
        operands = tuple(number(v, e) for v, e in zip(row, inputs, strict=True))
        return meaning(Term(name, result, operands, tuple(attrs.items())), {})
    if name in _CASTS:
        return cast(name, inputs[0], result, attrs, row[0])
    width = inputs[0].width
    if name in _SIGNS:
        return row[0] & ~(1 << width - 1) if name == "absf" else row[0] ^ 1 << width - 1
    numbers = [flushed(FORMATS[e.name].decode(v), attrs) for v, e in zip(row, inputs, strict=False)
               if e.is_float]  # fmt: skip
    if name in _EXACT:
        return rounded(arithmetic(name, numbers, attrs), result, attrs)
    return order(name, numbers, result, attrs)


def arithmetic(name: str, numbers: list[Number], attrs: dict[str, Any]) -> Number:
    mode = attrs.get("rounding_mode", "")
    if name in ("addf", "subf"):
        return x.add(numbers[0], x.minus(numbers[1]) if name == "subf" else numbers[1], mode)
    if name == "fma":
        return x.add(x.mul(numbers[0], numbers[1]), numbers[2], mode)
    return {"mulf": x.mul, "divf": x.div, "remf": x.rem, "sqrt": x.sqrt}[name](*numbers)


def rounded(exact: Number, result: t.Scalar, attrs: dict[str, Any]) -> int | str:
    mode = attrs.get("rounding_mode", "nearest_even")
    mode = "nearest_even" if mode in ("approx", "full") else mode
    format_ = FORMATS[result.name]
    return format_.encode(flushed(format_.round(exact, mode), attrs))


def order(name: str, numbers: list[Number], result: t.Scalar, attrs: dict[str, Any]):
    if name in ("ceil", "floor"):
        (value,) = numbers
        if isinstance(value[1], Fraction):
            whole = -(-value[1] // 1) if (name == "ceil") != value[0] else value[1] // 1
            value = value[0], Fraction(whole)
        return FORMATS[result.name].encode(value)
    left, right = numbers
    sign = x.compare(left, right)
    if name == "cmpf":
        if sign is None:
            return int(attrs["comparison_ordering"] == "unordered")
        return int({"equal": sign == 0, "not_equal": sign != 0, "less_than": sign < 0,
                    "less_than_or_equal": sign <= 0, "greater_than": sign > 0,
                    "greater_than_or_equal": sign >= 0}[attrs["comparison_predicate"]])  # fmt: skip
    if sign is None:
        if attrs.get("propagate_nan") or left[1] == right[1]:
            return NAN
        return FORMATS[result.name].encode(right if left[1] == NAN else left)
    ahead = sign if name == "maxf" else -sign
    if sign == 0 and left[0] != right[0]:
        ahead = 1 if (left[0] == (name == "minf")) else -1
    return FORMATS[result.name].encode(left if ahead >= 0 else right)


def cast(name: str, source: t.Scalar, result: t.Scalar, attrs: dict[str, Any], bits: int):
    if name == "bitcast":
        return bits
    signedness = attrs.get("signedness")
    if name == "itof":
        value = (
            bits - (1 << source.width)
            if signedness == "signed" and bits >> source.width - 1
            else bits
        )
        return FORMATS[result.name].encode(FORMATS[result.name].round(x.of(Fraction(value))))
    exact = FORMATS[source.name].decode(bits)
    if name == "ftof":
        target = FORMATS[result.name]
        return target.encode(
            target.round(exact, attrs["rounding_mode"], saturate=target.width <= 8)
        )
    if result == t.I1:
        return int(exact[1] != 0)
    low, high = (-(1 << result.width - 1), (1 << result.width - 1) - 1)
    if signedness == "unsigned":
        low, high = 0, (1 << result.width) - 1
    if exact[1] == NAN:
        value = 0
    elif exact[1] == INF:
        value = low if exact[0] else high
    else:
        whole = int(exact[1])  # type: ignore[arg-type]
        value = max(low, min(high, -whole if exact[0] else whole))
    return value & (1 << result.width) - 1


def agrees(found: int, wanted: int | str | None, result: t.Scalar) -> bool:
    if wanted is None:
        return True
    if wanted == NAN:
        return FORMATS[result.name].decode(found)[1] == NAN
    return found == wanted


def close(
    name: str, inputs: tuple[t.Scalar, ...], result: t.Scalar, attrs: dict, row: tuple, found: int
):
    """Whether a function's result is within 0.51 units in the last place."""
    numbers: list[Number] = []
    for bits, element in zip(row, inputs, strict=True):
        if element.is_float:
            numbers.append(flushed(FORMATS[element.name].decode(bits), attrs))
        else:
            value = bits - (1 << element.width) if bits >> element.width - 1 else bits
            numbers.append(x.of(Fraction(value)))
    exact = exact_functions.function(name, *numbers)
    format_ = FORMATS[result.name]
    got = format_.decode(found)
    if not isinstance(exact[1], Fraction):
        return got == exact if exact[1] == INF else got[1] == NAN
    wanted = flushed(format_.round(exact), attrs)
    if got == wanted:
        return True
    if not isinstance(got[1], Fraction) or got[0] != exact[0]:
        return False
    return abs(got[1] - exact[1]) <= Fraction(51, 100) * format_.step(exact[1])


CASES: list[tuple[str, tuple[t.Scalar, ...], t.Scalar, dict[str, Any]]] = [
    (spec.name, *combination) for spec in ELEMENTWISE for combination in combinations(spec)
]


def _label(case: tuple) -> str:
    name, inputs, result, attrs = case
    parts = [name, *map(str, inputs), str(result), *(str(v) for v in attrs.values())]
    return "-".join(parts)


def past_the_width(row: tuple[int, ...], inputs: tuple[t.Scalar, ...]) -> bool:
    """Whether a shift's amount leaves its result open."""
    return row[1] >= inputs[0].width


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_operation(name: str) -> None:
    """All combinations of one operation."""
    cases = [case for case in CASES if case[0] == name]
    assert cases
    for case in cases:
        _, inputs, result, attrs = case
        functions = name in exact_functions.NAMES
        most = 40 if functions and len(inputs) > 1 else 220
        defined: list[tuple[int, ...]] = []
        wanted: list[Any] = []
        undefined: list[tuple[int, ...]] = []
        for row in rows(inputs, most):
            try:
                value = None if functions else expected(name, inputs, result, attrs, row)
            except Undefined:
                undefined.append(row)
                continue
            if value is None and name in _INTEGER and attrs.get("overflow", "none") != "none":
                if name != "shli" or not past_the_width(row, inputs):
                    undefined.append(row)
                continue
            defined.append(row)
            wanted.append(value)
        operands = [(e, [row[i] for row in defined]) for i, e in enumerate(inputs)]
        found = run(name, operands, result, **attrs)
        for row, got, want in zip(defined, found, wanted, strict=True):
            if functions:
                assert close(name, inputs, result, attrs, row, got), (_label(case), row, got)
            else:
                assert agrees(got, want, result), (_label(case), row, got, want)
        for row in undefined[:3]:
            with pytest.raises(EvaluationError):
                run(name, [(e, [v]) for e, v in zip(inputs, row, strict=True)], result, **attrs)
