"""Which tiles may be worked on in parts, along their last axis."""

from __future__ import annotations

import pytest
from support.functions import function
from tile_tileas.pipelining.sliced import Dependents, Part
from tile_tileas.pipelining.writer import Writer

from tile_core.mlir import ir

HEAD = """
#s = #nv_tileas.layout<"register=[[0,1],[0,2],[0,4],[0,8]] lane=ROWS : 32x16">
#m = #nv_tileas.layout<"lane=[[1],[2],[4],[8],[16]] : 32">
#v = #nv_tileas.layout<"lane=[[1,0],[2,0],[4,0],[8,0],[16,0]] : 32x1">
#n = #nv_tileas.layout<"register=[[1],[2],[4],[8]] lane=[[0],[0],[0],[0],[0]] : 16">
!s = tensor<32x16xf32, #s>
!m = tensor<32xf32, #m>
!v = tensor<32x1xf32, #v>
!n = tensor<16xf32, #n>
""".replace("ROWS", "[[1,0],[2,0],[4,0],[8,0],[16,0]]")


def fold(name: str, of: str, axis: int, by: str) -> str:
    return (
        f'%{name} = "nv_tileas.reduce"(%{of}) ({{\n^bb0(%x: f32, %y: f32):\n'
        f'%z = arith.{by} %x, %y : f32\n"nv_tileas.yield"(%z) : (f32) -> ()\n}}) '
        f"{{axis = {axis} : i32, identities = [0.0 : f32]}} : (!s) -> !{'nm'[axis]}"
    )


BODY = f"""
{fold("most", "tile", 1, "maxnumf")}
%one = "nv_tileas.view"(%most) : (!m) -> !v
%each = "nv_tileaa.broadcast"(%one) : (!v) -> !s
%less = arith.subf %tile, %each : !s
SUM
%result = arith.negf %less : !s
%end = arith.negf %result : !s
"""


@pytest.mark.parametrize(("axis", "divisible"), [(1, True), (0, False)])
def test_folds_of_parts_are_along_what_is_cut(axis: int, divisible: bool) -> None:
    """Sums of columns are not those of one half and of the other one added up."""
    body = BODY.replace("SUM", fold("sum", "less", axis, "addf"))
    with function(f"{HEAD}func.func @f(%tile: !s) {{\n{body}\nreturn\n}}") as made:
        ops = list(made.regions[0].blocks[0].operations)
        tile = made.regions[0].blocks[0].arguments[0]
        result, end = (op for op in ops if op.operation.name == "arith.negf")
        known = Dependents(tile, result.results[0], end)
        assert len(known.folds) == 1
        assert known.is_divisible(8) == divisible


@pytest.mark.parametrize(("ends", "reached"), [("%result, %all", True), ("%result, %each", False)])
def test_what_needs_a_fold_of_all_parts_is_reached_by_it(ends: str, reached: bool) -> None:
    """It cannot begin with the first part."""
    spread = '%of = "nv_tileas.view"(%sum) : (!m) -> !v\n'
    spread += '%all = "nv_tileaa.broadcast"(%of) : (!v) -> !s'
    body = BODY.replace("SUM", f"{fold('sum', 'less', 1, 'addf')}\n{spread}")
    body = body.replace("%end = arith.negf %result", f"%end = arith.mulf {ends}")
    with function(f"{HEAD}func.func @f(%tile: !s) {{\n{body}\nreturn\n}}") as made:
        ops = list(made.regions[0].blocks[0].operations)
        (result,) = (op for op in ops if op.operation.name == "arith.negf")
        (end,) = (op for op in ops if op.operation.name == "arith.mulf")
        known = Dependents(made.regions[0].blocks[0].arguments[0], result.results[0], end)
        assert known.folds_reach(end) == reached


@pytest.mark.parametrize(
    ("change", "made_again"),
    [("arith.addf %tile, %tile", 2), ("arith.divf %tile, %other", 0)],
)
def test_parts_are_made_of_what_a_fold_sees_where_that_takes_long(
    change: str, made_again: int
) -> None:
    """`%score` is whole for the largest one, and once more for each part where it is cheap."""
    body = (
        BODY.replace("SUM", "")
        .replace('"(%tile) ({', '"(%score) ({')
        .replace("%less = arith.subf %tile", "%less = arith.subf %score")
    )
    text = (
        f"{HEAD}func.func @f(%tile: !s, %other: !s) {{\n%score = {change} : !s\n{body}\nreturn\n}}"
    )
    with function(text) as made:
        block = made.regions[0].blocks[0]
        ops = list(block.operations)
        result, end = (op for op in ops if op.operation.name == "arith.negf")
        known = Dependents(block.arguments[0], result.results[0], end)
        assert known.is_divisible(8)
        score = ops[0].results[0]
        assert known.kept == (set() if made_again else {score})
        at = Writer(end.location)
        at.move(ir.InsertionPoint(end))
        for number in range(2):
            Part(at, known, number, 8, known.tile).of(result.results[0])
        kind = change.split()[0]
        assert sum(op.operation.name == kind for op in block.operations) == 1 + made_again


def test_all_is_made_in_parts_where_nothing_is_folded() -> None:
    """Weights of a sigmoid: each by itself."""
    text = f"{HEAD}func.func @f(%tile: !s) {{\n%a = math.exp %tile : !s\n"
    text += "%b = arith.negf %a : !s\n%end = arith.negf %b : !s\nreturn\n}"
    with function(text) as made:
        block = made.regions[0].blocks[0]
        first, last, end = list(block.operations)[:3]
        known = Dependents(block.arguments[0], last.results[0], end)
        assert known.is_divisible(8)
        assert [op.operation for op in known.late] == [first.operation, last.operation]
