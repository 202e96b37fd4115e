"""Rules of operations with regions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tile_cudatile import types as t
from tile_cudatile.attrs import Float, Integer
from tile_cudatile.tree import Region, Value
from tile_cudatile.versions import V13_5
from unit.tile_cudatile.maker import Maker
from unit.tile_cudatile.rule_support import SCALAR, TENSOR, TRUTH, VIEW, F4x4, verify_ops


def _kernel(build: Callable[[Maker], None]) -> str:
    maker = Maker(V13_5)
    build(maker)
    return verify_ops(maker.ops)


ZERO = (Float(t.F32, 0),)


def _aggregate(
    m: Maker,
    *,
    args: list[t.Type],
    yields: list[t.Type],
    dim: int = 0,
    name: str = "reduce",
    results: list[t.Type] | None = None,
    identities: Any = ZERO,
    inner: str | None = None,
) -> None:
    x = m.constant(F4x4)

    def body(*values: Value) -> tuple[str, list[Value]]:
        if inner:
            m.emit(inner, [], t.TOKEN)
        return "yield", [m.constant(y) if isinstance(y, t.Tile) else values[0] for y in yields]

    extra = {"reverse": False} if name == "scan" else {}
    default: list[t.Type] = [F4x4 if name == "scan" else t.Tile((4,), t.F32)]
    m.with_regions(
        name,
        [(x,)],
        default if results is None else results,
        [m.region(args, body)],
        dim=dim,
        identities=identities,
        **extra,
    )


F = t.Tile((), t.F32)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, ""),
        ({"dim": 2}, "dimension (2) is out of bound [0, 2)"),
        (
            {"identities": ()},
            "expect identities to match the number of operands but got: 1 "
            "operands and 0 identities",
        ),
        (
            {"identities": (Integer(t.I32, 0),)},
            "expect same type for operand at index: 0 and "
            "identity at index: 0 but got: 'f32' and 'i32'",
        ),
        ({"results": []}, "expect same number of operands and results"),
        (
            {"name": "scan", "results": [t.Tile((4,), t.F32)]},
            "expect same type for operand at index: 0 and result at index: 0",
        ),
        ({"args": [F]}, "expect 2 block arguments but got: 1"),
        (
            {"args": [F, F4x4]},
            "expect 0-rank tile type at index: 1 but got: '!cuda_tile.tile<4x4xf32>'",
        ),
        (
            {"args": [F, SCALAR]},
            "expect same element type for block argument at index: 0 and 1 but "
            "got: 'f32' and 'i32'",
        ),
        (
            {"args": [SCALAR, SCALAR]},
            "expect same type for operand at index: 0 and block argument "
            "at index: 0 but got: 'f32' and 'i32'",
        ),
        (
            {"yields": []},
            "expect number of terminators operands (0) to match number of operands (1)",
        ),
        (
            {"yields": [SCALAR]},
            "expect same type for operand at index: 0 and terminator argument "
            "at index: 0 but got: 'f32' and 'i32'",
        ),
        (
            {"inner": "gdc_wait_tko"},
            "only memory-effect-free operations are allowed inside 'cuda_tile.reduce'",
        ),
    ],
)
def test_reductions(options: dict[str, Any], text: str) -> None:
    settings = {"args": [F, F], "yields": [F], **options}
    found = _kernel(lambda m: _aggregate(m, **settings))
    assert found.split(" op ", 1)[-1] == text


def _if(m: Maker, results: list[t.Type], then: list[t.Tile] | None, other: Any) -> None:
    condition = m.constant(TRUTH)
    branches = [
        Region()
        if types is None
        else m.region([], lambda types=types: ("yield", [m.constant(y) for y in types]))
        for types in (then, other)
    ]
    m.with_regions("if", [condition], results, branches)


@pytest.mark.parametrize(
    ("results", "then", "other", "text"),
    [
        ([], [], None, ""),
        (
            [F],
            [],
            [F],
            "has return type of '!cuda_tile.tile<f32>' but then branch does not yield anything",
        ),
        ([], [F], None, "does not return a value, but then branch yields '!cuda_tile.tile<f32>'"),
        (
            [F],
            [SCALAR],
            [F],
            "type does not match yield type, then branch yields "
            "'!cuda_tile.tile<i32>' but op result type is '!cuda_tile.tile<f32>'",
        ),
        (
            [F],
            [F],
            [SCALAR],
            "type does not match yield type, else branch yields "
            "'!cuda_tile.tile<i32>' but op result type is '!cuda_tile.tile<f32>'",
        ),
        ([F], [F], None, "has non-empty return type, must define else branch"),
        ([TENSOR], [F], [F], "result type 0 is a tensor_view, which is not supported"),
        ([VIEW], [F], [F], "result type 0 is a tile view, which is not supported"),
        (
            [],
            None,
            None,
            "region #0 ('thenRegion') failed to verify constraint: region with 1 blocks",
        ),
    ],
)
def test_branches(results: list[t.Type], then: Any, other: Any, text: str) -> None:
    found = _kernel(lambda m: _if(m, results, then, other))
    assert found.split(" op ", 1)[-1] == text


def _loop(
    m: Maker,
    name: str,
    args: list[t.Type],
    end: str,
    carried: list[t.Tile],
    results: list[t.Type],
    init: list[t.Tile],
) -> None:
    starts = tuple(m.constant(i) for i in init)
    bounds = [m.constant(SCALAR) for _ in range(3)] if name == "for" else []
    region = m.region(args, lambda *_: (end, [m.constant(c) for c in carried]))
    m.with_regions(name, [*bounds, starts], results, [region])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("for", [SCALAR, F], "continue", [F], [F], [F]), ""),
        (("loop", [F], "break", [], [], [F]), ""),
        (
            ("for", [], "continue", [], [], []),
            "expected at least one block argument for induction variable",
        ),
        (
            ("for", [F], "continue", [], [], []),
            "expected induction variable to be same type as "
            "bounds and step: '!cuda_tile.tile<f32>' vs '!cuda_tile.tile<i32>'",
        ),
        (
            ("for", [SCALAR], "continue", [F], [F], [F]),
            "mismatch in number of region iterator values and loop iterator inits: 0 vs 1",
        ),
        (
            ("loop", [SCALAR], "continue", [F], [], [F]),
            "init value 0 and region iter_value 0 have "
            "different type: '!cuda_tile.tile<f32>' != '!cuda_tile.tile<i32>'",
        ),
        (
            ("loop", [TENSOR], "continue", [F], [], [F]),
            "loop-carried value 0 is a tensor_view, which is not supported",
        ),
        (
            ("loop", [VIEW], "continue", [F], [], [F]),
            "loop-carried value 0 is a tile view, which is not supported",
        ),
        (
            ("for", [SCALAR], "break", [], [], []),
            "expects parent op to be one of 'cuda_tile.if, cuda_tile.loop'",
        ),
        (
            ("for", [SCALAR], "yield", [], [], []),
            "expects parent op to be one of 'cuda_tile.if, cuda_tile.reduce, cuda_tile.scan'",
        ),
        (
            ("loop", [], "break", [F], [], []),
            "operand types must correspond to the parent loop "
            "result types: ('!cuda_tile.tile<f32>') vs ()",
        ),
        (
            ("loop", [], "continue", [F], [], []),
            "`loop` is missing a valid terminator. `continue` "
            "op should have operand types that match the parent loop iter_values: (), but found: "
            "('!cuda_tile.tile<f32>')",
        ),
        (
            ("for", [SCALAR], "continue", [F], [], []),
            "`for` is missing a valid terminator. "
            "`continue` op should have operand types that match the parent loop return types: (), "
            "but found: ('!cuda_tile.tile<f32>')",
        ),
        (
            ("loop", [], "return", [], [], []),
            "",
        ),
    ],
)
def test_loops(arguments: tuple[Any, ...], text: str) -> None:
    found = _kernel(lambda m: _loop(m, *arguments))
    assert (found if found.startswith("`") else found.split(" op ", 1)[-1]) == text


def test_exits_need_a_loop() -> None:
    def build(m: Maker) -> None:
        region = m.region([], lambda: ("break", []))
        m.with_regions("if", [m.constant(TRUTH)], [], [region, Region()])

    assert _kernel(build) == (
        "'cuda_tile.break' op can only be nested within a ancestor chain of 'cuda_tile.loop', "
        "'cuda_tile.if' operations"
    )


# Modules, kernels and debug information.
