"""Which branches may change a tile in tensor memory: what threads read back is their own."""

from __future__ import annotations

import pytest
from support.functions import function
from tile_tileas.materialize.tensor_parts import change_of

HEAD = """
#s = #nv_tileas.layout<"register=[[0,1],[0,2],[0,4],[0,8]] lane=ROWS : 32x16">
#o = #nv_tileas.layout<"register=[[1,0],[0,2],[0,4],[0,8]] lane=OTHER : 32x16">
#m = #nv_tileas.layout<"lane=[[1],[2],[4],[8],[16]] : 32">
#v = #nv_tileas.layout<"lane=[[1,0],[2,0],[4,0],[8,0],[16,0]] : 32x1">
!s = tensor<32x16xf32, #s>
!o = tensor<32x16xf32, #o>
!m = tensor<32xf32, #m>
!v = tensor<32x1xf32, #v>
""".replace("ROWS", "[[1,0],[2,0],[4,0],[8,0],[16,0]]").replace(
    "OTHER", "[[0,1],[2,0],[4,0],[8,0],[16,0]]"
)

ADDED = "%given = arith.addf %tile, %mask : !s"
FOLDED = """
%sum = "nv_tileas.reduce"(OF) ({
^bb0(%x: f32, %y: f32):
%z = arith.addf %x, %y : f32
"nv_tileas.yield"(%z) : (f32) -> ()
}) {axis = 1 : i32, identities = [0.0 : f32]} : (!s) -> !m
%one = "nv_tileas.view"(%sum) : (!m) -> !v
%each = "nv_tileaa.broadcast"(%one) : (!v) -> !s
%given = arith.subf %tile, %each : !s
"""
CONVERTED = """
%other = "nv_tileas.convert_layout"(%tile) : (!s) -> !o
%back = "nv_tileas.convert_layout"(%other) : (!o) -> !s
%given = arith.addf %back, %mask : !s
"""
SPREAD = """
%each = "nv_tileaa.broadcast"(%row) : (!v) -> !s
%less = arith.cmpf olt, %tile, %each : !s
%given = arith.select %less, %tile, %mask : tensor<32x16xi1, #s>, !s
"""


def changed(arm: str, otherwise: str = "%tile", type_: str = "!s") -> str:
    return (
        f"{HEAD}func.func @f(%tile: !s, %mask: !s, %row: !v, %flag: i1) {{\n"
        f"%r = scf.if %flag -> ({type_}) {{\n{arm}\nscf.yield %given : {type_}\n"
        f"}} else {{\nscf.yield {otherwise} : {type_}\n}}\nreturn\n}}"
    )


@pytest.mark.parametrize("arm", [ADDED, SPREAD])
def test_each_element_by_itself_is_changed_in_place(arm: str) -> None:
    with function(changed(arm)) as made:
        tile = made.regions[0].blocks[0].arguments[0]
        change = change_of(tile)
        assert change is not None
        assert change.arm == 0
        assert change.problem(tile) is None


@pytest.mark.parametrize(
    ("arm", "name"),
    [
        (FOLDED.replace("OF", "%tile"), "nv_tileas.reduce"),
        (FOLDED.replace("OF", "%mask"), "nv_tileas.reduce"),
        (CONVERTED, "nv_tileas.convert_layout"),
    ],
)
def test_what_threads_do_together_is_not_done_in_place(arm: str, name: str) -> None:
    with function(changed(arm)) as made:
        tile = made.regions[0].blocks[0].arguments[0]
        change = change_of(tile)
        assert change is not None
        problem = change.problem(tile)
        assert problem is not None
        assert name in problem


def test_one_arm_leaves_the_tile() -> None:
    with function(changed(ADDED, "%mask")) as made:
        assert change_of(made.regions[0].blocks[0].arguments[0]) is None


def test_tiles_that_are_used_beside_the_branch_are_not_changed() -> None:
    text = changed(ADDED).replace("\nreturn", "\n%n = arith.negf %tile : !s\nreturn")
    with function(text) as made:
        assert change_of(made.regions[0].blocks[0].arguments[0]) is None
