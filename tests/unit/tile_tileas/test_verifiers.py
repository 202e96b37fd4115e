"""What the operations of nv_tileas refuse, in their words."""

from __future__ import annotations

import pytest
from support.functions import function

from tile_core.diagnostics import InputError

HEAD = """
!p = !nv_tileaa.ptr<f32, 1 : i32>
!tok = !nv_tileaa.mem_token
!m = !nv_tileaa.memref<f32, array<i64: 64, 64>, array<i64: 64, 1>>
!v = !nv_tileaa.tiled_view<!m, array<i32: 4, 8>, array<i32: 0, 1>, "zero">
!t = tensor<4x8xf32>
#a = #nv_tileas.layout<"lane=[[1],[2],[4],[8],[16]] : 32">
#b = #nv_tileas.layout<"lane=[[2],[1],[4],[8],[16]] : 32">
"""
VIEW = """
%m = "nv_tileaa.make_memref"(%p) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!p) -> !m
%v = "nv_tileaa.block_tile"(%m) : (!m) -> !v
"""


def in_function(body: str) -> str:
    arguments = "%p: !p, %f: f32, %w: !v, %t: !t, %d: tensor<32xf32, #a>, %i: i32"
    return f"{HEAD}func.func @f({arguments}) {{\n{body}\nreturn\n}}"


def refusal(body: str) -> str:
    with pytest.raises(InputError) as caught, function(in_function(body)):
        pass
    assert caught.value.where is not None
    return caught.value.message


def tiled(
    name: str, view: str = "%v", count: int = 2, ordering: str = 'mem_semantic = "weak"'
) -> str:
    value, kind = (", %t", ", !t") if name == "tiled_store" else ("", "")
    sizes = f"array<i32: 1{', 1' if value else ''}, {count}, 0>"
    coords, kinds = ", %i" * count, ", i32" * count
    result = "!tok" if value else "(!t, !tok)"
    head = "%y" if value else "%y:2"
    return (
        f'{VIEW}{head} = "nv_tileas.{name}"({view}{value}{coords}) {{{ordering}, '
        f"operandSegmentSizes = {sizes}}} : (!v{kind}{kinds}) -> {result}"
    )


@pytest.mark.parametrize("name", ["tiled_load", "tiled_store"])
def test_tiled_accesses(name: str) -> None:
    with function(in_function(tiled(name))):
        pass
    assert refusal(tiled(name, view="%w")) == (
        f"'nv_tileas.{name}' op {name}'s tiled_view type must be produced by block_tile directly"
    )
    assert refusal(tiled(name, count=1)) == (
        f"'nv_tileas.{name}' op expects 2 coordinates, but got 1"
    )
    assert refusal(tiled(name, ordering='mem_semantic = "relaxed"')) == (
        f"'nv_tileas.{name}' op mem_scope required when mem_semantic is not weak"
    )


@pytest.mark.parametrize(
    ("name", "wrong"), [("tiled_load", "release"), ("tiled_store", "acquire"), ("tiled_load", "x")]
)
def test_kinds_of_ordering(name: str, wrong: str) -> None:
    ordering = f'mem_semantic = "{wrong}", mem_scope = "gpu"'
    assert refusal(tiled(name, ordering=ordering)) == (
        f"'nv_tileas.{name}' op unsupported mem_semantic: {wrong}"
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            '%x:2 = "nv_tileas.load"(%p) {mem_semantic = "weak", mem_scope = "gpu", '
            "operandSegmentSizes = array<i32: 1, 0, 0, 0>} : (!p) -> (f32, !tok)",
            "'nv_tileas.load' op weak memory ordering must not carry a scope",
        ),
        (
            '%x = "nv_tileas.store"(%p, %f) {mem_semantic = "acquire", mem_scope = "gpu", '
            "operandSegmentSizes = array<i32: 1, 1, 0, 0>} : (!p, f32) -> !tok",
            "'nv_tileas.store' op unsupported mem_semantic: acquire",
        ),
    ],
)
def test_pointer_accesses(line: str, message: str) -> None:
    assert refusal(line) == message


def test_layout_conversions_keep_shape_and_element() -> None:
    convert = '%x = "nv_tileas.convert_layout"(%d) : (tensor<32xf32, #a>) -> '
    with function(in_function(convert + "tensor<32xf32, #b>")):
        pass
    message = refusal(convert + "tensor<32xf16, #b>")
    assert message.startswith("'nv_tileas.convert_layout' op cannot convert tensor<32xf32, ")
    assert message.endswith(
        'to tensor<32xf16, #nv_tileas.layout<"lane=[[2],[1],[4],[8],[16]] : 32">>'
    )
