"""Reading assembly."""

from __future__ import annotations

import pytest
from tile_cudatile import parse_text, print_text, read_bytecode, verify, write_bytecode
from tile_cudatile import types as t
from tile_cudatile.attrs import Integer
from tile_cudatile.text.literals import number_bits, parse_type
from tile_cudatile.text.scanner import Scanner, TextError
from tile_cudatile.versions import SUPPORTED, Version
from unit.tile_cudatile import samples
from unit.tile_cudatile.everything import everything


@pytest.mark.parametrize("name", samples.NAMES)
def test_samples_there_and_back(name: str) -> None:
    module = read_bytecode(samples.sample(name))
    text = print_text(module)
    again = parse_text(text, version=module.version)
    verify(again)
    assert print_text(again) == text


@pytest.mark.parametrize("version", SUPPORTED, ids=str)
def test_every_operation_there_and_back(version: Version) -> None:
    module = everything(version)
    text = print_text(module)
    again = parse_text(text, version=version)
    assert print_text(again) == text
    assert again.producer == module.producer
    # Elements that are all alike are printed, and so read, as one: the second time
    # around nothing changes any more.
    third = parse_text(print_text(again), version=version)
    assert write_bytecode(third) == write_bytecode(again)


HEAD = "entry @k(%p: tile<ptr<f32>>, %n: tile<i32>) {\n"


@pytest.mark.parametrize(
    ("body", "place", "message"),
    [
        ("  %0 = addi %n, %m : tile<i32>\n", "2:17", "use of undeclared SSA value name '%m'"),
        ("  %0 = addi %n, %n tile<i32>\n", "2:20", "expected ':'"),
        ("  %0 = nothing %n : tile<i32>\n", "2:8", "unknown operation 'nothing'"),
        ("  %0 = iota : tile<5xi32>\n", "2:15", "all dimensions must be powers of two, got 5"),
        ("  %0 = iota : tile<4xi33>\n", "2:22", "unknown type: i33"),
        ("  %n = iota : tile<4xi32>\n", "2:3", "redefinition of SSA value '%n'"),
        (
            "  %0, %1 = iota : tile<4xi32>\n",
            "2:12",
            "operation defines 1 results but was provided 2 to bind",
        ),
        (
            "  %0 = constant <i8: 300> : tile<i8>\n",
            "2:22",
            "integer constant out of range for type",
        ),
        (
            "  %0 = constant <i8: [1, 2]> : tile<4xi8>\n",
            "2:22",
            "inferred shape of elements literal ([2]) does not match type ([4])",
        ),
        (
            "  %0 = addi %n, %n : tile<i64>\n",
            "2:8",
            "use of value expects different type than prior uses: '!cuda_tile.tile<i64>' vs "
            "'!cuda_tile.tile<i32>'",
        ),
        (
            "  %0, %1 = load_ptr_tko weak device %p : tile<ptr<f32>> -> tile<f32>, token\n",
            "2:30",
            'operation specifies weak memory ordering semantics, but then provides "device" scope, '
            "expected no memory scope.",
        ),
        (
            "  %0 = maxi %n, %n other : tile<i32>\n",
            "2:20",
            "expected signedness to be one of: {'signed', 'unsigned'}",
        ),
        (
            "  %0 = assume odd<1>, %n : tile<i32>\n",
            "2:15",
            "unknown assume predicate attribute: odd (expected 'div_by', 'same_elements', or "
            "'bounded')",
        ),
        ("  %0 = make_partition_view %n : tile<i32>\n", "2:8", "'cuda_tile.make_partition_view'"),
    ],
    ids=lambda v: str(v)[:30],
)
def test_mistakes_have_places(body: str, place: str, message: str) -> None:
    if message.startswith("'cuda_tile"):  # not a matter of syntax
        module = parse_text(f"{HEAD}{body}}}\n")
        with pytest.raises(Exception, match="operand #0 must be tensor view type"):
            verify(module)
        return
    with pytest.raises(TextError) as caught:
        parse_text(f"{HEAD}{body}}}\n", name="k.mlir")
    assert caught.value.message == message
    assert str(caught.value.where) == f"k.mlir:{place}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tile<?xf32>", "a tile has no dynamic dimensions"),
        ("tensor_view<4xf32>", "expected 'strides'"),
        ("tensor_view<4xf32, strides=[0]>", "expected strictly positive integer, got 0"),
        ("tensor_view<4xf32, strides=[a]>", "expected either 64-bit integer or question mark"),
        ("tensor_view<f32, strides=[]>", "strides must not be provided for 0-d tiles"),
        ("partition_view<tile=(4), tile<f32>>", "expected 'tensor_view' type, but got tile<f32>"),
        (
            "partition_view<tile=(4294967296), tensor_view<4xf32, strides=[1]>>",
            "tile dimension 0 exceeds i32 limitations (got 4294967296, expected strictly positive "
            "and less than or equal to 2147483647)",
        ),
        (
            "partition_view<tile=(4), padding_value = odd, tensor_view<4xf32, strides=[1]>>",
            'invalid padding_value attribute specification. Got "odd" but expect one of: zero, '
            "neg_zero, nan, pos_inf, neg_inf",
        ),
    ],
)
def test_mistakes_in_types(text: str, message: str) -> None:
    with pytest.raises(TextError) as caught:
        parse_type(Scanner(text, "t"))
    assert caught.value.message == message


def test_long_and_short_types() -> None:
    for text in ("tile<4x!cuda_tile.ptr<f32>>", "!cuda_tile.tile<4xptr<f32>>"):
        assert parse_type(Scanner(text, "t")) == t.Tile((4,), t.Pointer(t.F32))


@pytest.mark.parametrize(
    ("text", "element", "bits"),
    [
        ("-128", t.I8, 0x80),
        ("255", t.I8, 0xFF),
        ("256", t.I8, None),
        ("-129", t.I8, None),
        ("-1", t.I1, 1),
        ("true", t.I1, 1),
        ("2", t.I1, None),
        ("0xFF", t.I16, 0xFF),
        ("1.0", t.F16, 0x3C00),
        ("0x7E00", t.F16, 0x7E00),
        ("1e99", t.F16, None),
        ("6.0", t.F4E2M1FN, 7),
        ("-6.0", t.F4E2M1FN, 15),
        ("8.0", t.F4E2M1FN, None),
        ("-0.0", t.BF16, 0x8000),
        ("0.1", t.F32, 0x3DCCCCCD),
        ("-1.0", t.F8E8M0FNU, None),
    ],
)
def test_numbers(text: str, element: t.Scalar, bits: int | None) -> None:
    assert number_bits(text, element) == bits


def test_implied_terminators_and_a_module_around() -> None:
    module = parse_text(
        "cuda_tile.module @kernels {\n"
        "  entry @k(%c: !cuda_tile.tile<i1>) {\n"
        "    if %c { } else { return }\n"
        "  } // nothing after\n"
        "}\n"
    )
    verify(module)
    (branch, last) = module.entries[0].body.block.ops
    assert last.name == "return"
    assert branch.regions[0].block.ops[0].name == "yield"


def test_a_padding_value_without_a_mask() -> None:
    """Which of two optional operands is there, only its type tells."""
    text = """entry @k(%arg0: tile<ptr<f32>>, %arg1: tile<f32>, %arg2: tile<i1>) {
  %0, %1 = load_ptr_tko weak %arg0, %arg1 : tile<ptr<f32>>, tile<f32> -> tile<f32>, token
  %2, %3 = load_ptr_tko weak %arg0, %arg2 : tile<ptr<f32>>, tile<i1> -> tile<f32>, token
  return
}
"""
    first, second, _ = parse_text(text, version=(13, 5)).entries[0].body.block.ops
    assert first.group("mask") is None
    assert first.group("paddingValue") is not None
    assert second.group("mask") is not None
    assert second.group("paddingValue") is None


def test_numbers_in_arrays_have_64_bits_unless_told() -> None:
    text = """entry @k(%arg0: tile<i64>, %arg1: tile<f64>) {
  %0 = iota : tile<4xi64>
  %1 = reduce %0 dim=0 identities=[-1] : tile<4xi64> -> tile<i64>
  (%arg2: tile<i64>, %arg3: tile<i64>) {
    yield %arg2 : tile<i64>
  }
  %2 = reduce %0 dim=0 identities=[1 : i64] : tile<4xi64> -> tile<i64>
  (%arg2: tile<i64>, %arg3: tile<i64>) {
    yield %arg2 : tile<i64>
  }
  return
}
"""
    module = parse_text(text, version=(13, 5))
    found = [op.attrs["identities"] for op in module.entries[0].body.walk() if op.name == "reduce"]
    assert found == [(Integer(t.I64, (1 << 64) - 1),), (Integer(t.I64, 1),)]
    assert "identities=[-1] " in print_text(module)
    assert "identities=[1] " in print_text(module)
