"""How many warps a kernel gets, and the estimate behind it."""

import re

import pytest
from support.functions import function
from support.tiles import Kernel
from tile_tileas.analysis.pressure import peak_registers

ELEMENTS = "f16", "f16", "f32"


def product(m: int, n: int, k: int, num_warps: int = 0, hints: str = "") -> str:
    """PTX of a product of f16 into f32; 0 warps leave the number to the compiler."""
    kernel = Kernel(num_warps)
    shapes = (m, k), (k, n), (m, n)
    for name, shape, element in zip("abc", shapes, ELEMENTS, strict=True):
        kernel.load(f"%{name}", shape, element)
    pairs = zip(shapes, ELEMENTS, strict=True)
    types = [f"tensor<{rows}x{columns}x{element}>" for (rows, columns), element in pairs]
    kernel.op(
        '%d = "nv_tileaa.dot"(%a, %b, %c) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : '
        f"({', '.join(types)}) -> {types[2]}"
    )
    kernel.store("%d", shapes[2], "f32")
    return kernel.ptx("sm_80", 1)


def warps(ptx: str) -> int:
    """Warps of a block."""
    (threads,) = re.findall(r"\.reqntid (\d+)", ptx)
    return int(threads) // 32


def test_four_warps_unless_registers_run_out():
    assert warps(product(64, 64, 32)) == 4
    assert warps(product(128, 128, 32)) == 4
    assert warps(product(128, 128, 64)) == 8


@pytest.mark.parametrize("number", [1, 2, 8])
def test_what_the_module_says_wins(number):
    assert warps(product(32, 32, 32, number)) == number


def peak(body: str, num_warps: int = 4) -> int:
    """The estimate for a function of %x and %y, tiles of 16 registers with four warps."""
    text = (
        "func.func @f(%x: tensor<2048xf32>, %y: tensor<2048xf32>, %n: i32, %o: i32) "
        f"-> tensor<2048xf32> {{\n{body}}}"
    )
    with function(text) as func:
        return peak_registers(func, num_warps)


ADD = "%{} = arith.addf %{}, %{} : tensor<2048xf32>\n"
USE = "return %{} : tensor<2048xf32>\n"


def test_tiles_count_while_they_live():
    assert peak(ADD.format("a", "x", "y") + USE.format("a")) == 32
    assert peak(ADD.format("a", "x", "y") + USE.format("a"), 8) == 16
    # x, y and a are wanted at once
    three = ADD.format("a", "x", "y") + ADD.format("b", "x", "a") + ADD.format("c", "b", "y")
    assert peak(three + USE.format("c")) == 48


def test_constants_are_free():
    constant = "%k = arith.constant dense<1.0> : tensor<2048xf32>\n"
    assert peak(constant + ADD.format("a", "x", "k") + USE.format("a")) == 16


def test_a_loop_keeps_what_its_next_turn_needs():
    loop = (
        "%r = scf.for %i = %o to %n step %n iter_args(%t = %x) -> (tensor<2048xf32>) : i32 {\n"
        + ADD.format("u", "t", "y")
        + "scf.yield %u : tensor<2048xf32>\n}\n"
    )
    assert peak(loop + USE.format("r")) == 32
    inside = loop.replace("scf.yield %u", ADD.format("v", "u", "x") + "scf.yield %v")
    assert peak(inside + USE.format("r")) == 48  # x and y for the next turn, and u


def test_small_integers_are_packed_only_while_they_move():
    text = "func.func @f(%x: tensor<2048xi8>) {{\n%a = {} : tensor<2048xi8>\nreturn\n}}"
    with function(text.format("arith.addi %x, %x")) as func:
        assert peak_registers(func, 4) == 16
    types = "(tensor<2048xi8>) -> tensor<2048xi8>"
    moved = f'"nv_tileaa.permute"(%x) {{permutation = array<i32: 0>}} : {types}'
    with function(f"func.func @f(%x: tensor<2048xi8>) {{\n{moved}\nreturn\n}}") as func:
        assert peak_registers(func, 4) == 4


def test_places_of_ranges_are_a_few_registers_and_distances():
    def loaded(place: str) -> str:
        return (
            "func.func @f(%p: !nv_tileaa.ptr<f32, 1 : i32>, %n: i32, %i: tensor<2048xi32>) {\n"
            '%r = "nv_tileaa.make_range"() : () -> tensor<2048xi32>\n'
            '%s = "nv_tileaa.splat"(%n) : (i32) -> tensor<2048xi32>\n'
            f"{place}"
            "%w = arith.extsi %o : tensor<2048xi32> to tensor<2048xi64>\n"
            "%v = arith.addi %w, %w : tensor<2048xi64>\nreturn\n}"
        )

    with function(loaded("%o = arith.muli %r, %s : tensor<2048xi32>\n")) as func:
        assert peak_registers(func, 4, with_places=False) == 0
        assert peak_registers(func, 4) == 32
    with function(loaded("%o = arith.muli %r, %i : tensor<2048xi32>\n")) as func:
        assert (
            peak_registers(func, 4, with_places=False) == 32
        )  # of what comes from elsewhere, two words each
