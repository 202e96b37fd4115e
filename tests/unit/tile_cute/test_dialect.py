"""The cute and cute_nvgpu dialects: inferred types, diagnostics, folding."""

# ruff: noqa: E501  (tables of operation texts)

import pytest
from tile_cute.atoms.rules import TensorMmaFlags, check_tensor_mma
from tile_cute.dialect import load_nvgpu
from tile_cute.dialect.base import operand_of, type_of
from tile_cute.errors import LayoutError
from tile_cute.infer import RULES

from tile_core.mlir import ir
from tile_core.opt import OptJob, Selection, optimize
from tile_core.registry import default_registry

A = '!cute.layout<"(4,8):(1,4)">'
VIEW = '!cute.memref<f16, "smem", "(8,16):(16,1)">'
BASES = '!cute.memref<f16, "smem", "(4,8):(1@0,1@1)">'
COMPOSED = '!cute.memref<f16, "smem", "S<1,0,1> o 0 o (8,16):(16,1)">'
LINE = '!cute.memref<f16, "smem", "8:1">'
SUM = '!cute.memref<f32, "rmem", "(8,8):(8,1)">'
ATOM = '!cute_nvgpu.atom<"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32">'
WGMMA = '!cute_nvgpu.atom<"wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16">'
IN_REGISTERS = '!cute.memref<f16, "rmem", "(16,16):(16,1)">'
OPEN = '!cute.memref<f32, "rmem", "(?,8):(8,1)">'
PLANE = '!cute.memref<f16, "rmem", "(8,8):(8,1)">'
LINE3 = '!cute.memref<f16, "rmem", "(4,1,1):(1,4,4)">'
PTR = '!cute.ptr<f16, "gmem", 16 : i64>'


@pytest.fixture
def context():  # type: ignore[no-untyped-def]
    with ir.Context() as context, ir.Location.unknown():
        load_nvgpu()
        yield context


def op_text(name: str, types: list[str], result: str | None, attributes: str = "") -> str:
    """A module that applies one operation to values of the given types."""
    makers = "".join(f'  %{i} = "test.make"() : () -> {t}\n' for i, t in enumerate(types))
    names = ", ".join(f"%{i}" for i in range(len(types)))
    head = "%r = " if result else ""
    arrow = result or "()"
    use = f'  {head}"{name}"({names}) {attributes} : ({", ".join(types)}) -> {arrow}\n'
    return makers + use


def diagnostic(context: ir.Context, text: str) -> str:
    context.allow_unregistered_dialects = True
    with pytest.raises(ir.MLIRError) as error:
        ir.Module.parse(text)
    return str(error.value)


def accepted(context: ir.Context, text: str) -> None:
    context.allow_unregistered_dialects = True
    assert ir.Module.parse(text).operation.verify()


def L(text: str) -> str:  # noqa: N802
    return f'!cute.layout<"{text}">'


@pytest.mark.parametrize(
    ("name", "types", "result", "attributes"),
    [
        ("make_layout", ['!cute.shape<"(4,8)">'], A, ""),
        ("make_layout", ['!cute.shape<"4">', '!cute.stride<"2">'], L("4:2"), ""),
        ("make_ordered_layout", ['!cute.shape<"(4,8)">', '!cute.int_tuple<"(1,0)">'], L("(4,8):(8,1)"), ""),
        ("make_identity_layout", ['!cute.shape<"(4,8)">'], L("(4,8):(1@0,1@1)"), ""),
        ("coalesce", [A], L("32:1"), ""),
        ("composition", [L("20:2"), L("(5,4):(4,1)")], L("(5,4):(8,2)"), ""),
        ("complement", [L("4:2")], L("(2,3):(1,8)"), "{cotarget = 24 : i32}"),
        ("right_inverse", [L("(4,8):(8,1)")], L("(8,4):(4,1)"), ""),
        ("zipped_divide", [L("128:1"), L("32:1")], L("(32,4):(1,32)"), ""),
        ("tiled_divide", [L("(8,8):(1,8)"), '!cute.tile<"<4:1,2:1>">'], L("((4,2),2,4):((1,8),4,16)"), ""),
        ("blocked_product", [L("(2,5):(5,1)"), L("(3,4):(1,3)")], L("((2,3),(5,4)):((5,10),(1,30))"), ""),
        # Values of the specification's digest, or by hand from the definitions.
        ("flat_divide", [L("(128,128):(1,128)"), '!cute.tile<"<64:1,64:1>">'], L("(64,64,2,2):(1,128,64,8192)"), ""),
        ("logical_product", [L("128:1"), L("4:1")], L("(128,4):(1,128)"), ""),
        ("logical_product", [L("(2,2):(4,1)"), L("6:1")], L("((2,2),(2,3)):((4,1),(2,8))"), ""),
        ("raked_product", [L("(2,5):(5,1)"), L("(3,4):(1,3)")], L("((3,2),(4,5)):((10,5),(30,1))"), ""),
        ("zipped_product", [L("128:1"), L("4:1")], L("(128,4):(1,128)"), ""),
        ("tiled_product", [L("128:1"), L("4:1")], L("(128,4):(1,128)"), ""),
        ("flat_product", [L("128:1"), L("4:1")], L("(128,4):(1,128)"), ""),
        ("stencil_divide", [L("10:2")], L("(3,4):(2,4)"), "{window = 3 : i32, stride = 2 : i32}"),
        ("stencil_divide", [L("10:1")], L("(3,6):(2,1)"), "{window = 3 : i32, dilation = 2 : i32}"),
        ("left_inverse", [L("(4,8):(1,8)")], L("(4,2,8):(1,32,4)"), ""),
        ("filter", [L("(4,3):(1,0)")], L("4:1"), ""),
        ("dice", [A, '!cute.coord<"(_,2)">'], L("(8):(4)"), ""),
        ("tuple_sub", ['!cute.shape<"(4,8)">', '!cute.shape<"(1,2)">'], '!cute.shape<"(3,6)">', ""),
        ("tuple_mod", ['!cute.shape<"(4,8)">', '!cute.shape<"(3,5)">'], '!cute.shape<"(1,3)">', ""),
        ("recast_layout", [L("(8,4):(1,8)")], L("(4,4):(1,4)"), "{old_bits = 16 : i32, new_bits = 32 : i32}"),
        ("group_modes", [L("(2,3,4):(1,2,6)")], L("((2,3),4):((1,2),6)"), "{begin = 0 : i32, end = 2 : i32}"),
        ("select", [L("(2,3,4):(1,2,6)")], L("(4,2):(6,1)"), "{modes = array<i32: 2, 0>}"),
        ("get_layout", [VIEW], L("(8,16):(16,1)"), ""),
        ("make_identity_tensor", ['!cute.shape<"(4,8)">'], '!cute.coord_tensor<"(4,8):(1@0,1@1)">', ""),
        ("stencil_divide", [L("(10,6):(1,10)")], L("((3,2),(5,5)):((2,10),(2,10))"),
         "{window = array<i32: 3, 2>, dilation = array<i32: 2, 1>, stride = array<i32: 2, 1>,"
         " lower_padding = array<i32: 1, 0>, upper_padding = array<i32: 2, 0>}"),
        ("local_partition", [VIEW, L("(4,8):(8,1)"), "i32", '!cute.coord<"(0,_)">'],
         '!cute.memref<f16, "smem", "(2,16):(64,1)">', ""),
        ("partition", [VIEW, '!cute.tile<"<4:1,8:1>">', '!cute.coord<"(1,1)">'],
         '!cute.memref<f16, "smem", "(2,2):(64,8)">', ""),
        ("slice", [A, '!cute.coord<"(_,2)">'], L("(4):(1)"), ""),
        ("crd2idx", ['!cute.coord<"(1,2)">', A], '!cute.int_tuple<"9">', ""),
        ("tuple_mul", ['!cute.shape<"(4,8)">', '!cute.shape<"(2,2)">'], '!cute.shape<"(8,16)">', ""),
        (
            "make_composed_layout",
            ['!cute.swizzle<"S<3,4,3>">', '!cute.int_tuple<"0">', L("(8,64):(64,1)")],
            '!cute.composed_layout<"S<3,4,3> o 0 o (8,64):(64,1)">',
            "",
        ),
        (
            "local_tile",
            [VIEW, '!cute.tile<"<4:1,8:1>">', '!cute.coord<"(1,1)">'],
            '!cute.memref<f16, "smem", "(4,8):(16,1)">',
            "",
        ),
        ("local_partition", [VIEW, L("(4,8):(8,1)"), "i32"], '!cute.memref<f16, "smem", "(2,2):(64,8)">', ""),
        ("make_fragment_like", [VIEW], '!cute.memref<f16, "rmem", "(8,16):(16,1)">', ""),
        ("size", [A], "i32", ""),
        ("cosize", ['!cute.composed_layout<"S<1,0,1> o 0 o 4:1">'], "index", ""),
    ],
)  # fmt: skip
def test_inferred_types(
    context: ir.Context, name: str, types: list[str], result: str, attributes: str
) -> None:
    accepted(context, op_text(f"cute.{name}", types, result, attributes))
    wrong = L("7:3") if result != "i32" else "f32"
    if result == "index":
        wrong = "f32"
    text = diagnostic(context, op_text(f"cute.{name}", types, wrong, attributes))
    assert f"'cute.{name}' op" in text


@pytest.mark.parametrize(
    ("name", "types", "result", "attributes", "message"),
    [
        ("local_tile", [VIEW, "i32", "i32"], VIEW, "", "unexpected tiler type, got i32"),
        ("local_tile", [VIEW, L("4:1"), "i32"], VIEW, "", "unexpected coordinate type, got i32"),
        ("local_tile", [A, L("4:1"), '!cute.coord<"1">'], VIEW, "", "expected a view as an input but got"),
        (
            "local_tile", [VIEW, '!cute.tile<"<4:1,8:1>">', '!cute.coord<"(1,1,1)">'], VIEW, "",
            "expected a coordinate of rank 2 but got",
        ),
        ("local_partition", [VIEW, "i32", "i32"], VIEW, "", "expects LayoutType tiler, but got i32"),
        ("local_partition", [VIEW, L("(?,4):(1,8)"), "i32"], VIEW, "", "expects LayoutType tiler with static shape, but got"),
        ("right_inverse", [L("(?,4):(1,8)")], A, "", "expects an input with static shape, but got"),
        ("local_partition", ["i32", A, "i32"], VIEW, "", "expects `input` to be a layout or a view, got i32"),
        ("make_fragment_like", [A], VIEW, "", "expects `input` is CuteMemRefType or CuteLayoutTypeInterface, but got"),
        ("group_modes", [A], A, "{begin = 5 : i32, end = 1 : i32}",
         "expects begin in the range of [-rank , rank-1], but got begin [5] and rank [2]"),
        ("group_modes", [A], A, "{begin = 1 : i32, end = 1 : i32}",
         "expects begin < end, but got begin [1] ([1]) and end [1] ([1])"),
        ("size", ["f32"], "i32", "", "input type [f32] has invalid values."),
        ("size", [A], "i32", "{mode = array<i32: 4>}", "mode [4] has invalid values for input type"),
        ("cosize", ['!cute.shape<"(2,2)">'], "i32", "", "unable to compute cosize for input"),
        ("select", [A], A, "{modes = array<i32: 0, 0>}", "Invalid results for select(). Modes: [0, 0]"),
        ("tile_to_shape", [A, "i32"], A, "", "invalid input types for tile_to_shape, got"),
        ("tile_to_shape", [A, '!cute.shape<"(8,8)">', '!cute.int_tuple<"(0,1,2)">'], A, "",
         "expects target shape and order operands have same rank, but got"),
        ("logical_divide", [A, "i32"], A, "", "invalid tiler type, got i32"),
        ("logical_divide", ["i32", A], A, "", "invalid input type, got i32"),
        ("logical_divide", [L("128:1"), '!cute.tile<"<4:1,4:1>">'], A, "", "expects rank(tiler) <= rank(input), but got input="),
        ("logical_divide", [L("128:1"), L("40:1")], A, "", "failed to perform a valid division of 128:1 by 40:1"),
        ("logical_divide", [L("128:1"), L("32:1")], A, "", "failed to perform a valid division of"),
        ("recast_layout", ["i32"], A, "{old_bits = 8 : i32, new_bits = 16 : i32}",
         "expects `src` is LayoutTypeInterface, but got i32"),
        ("recast_layout", [L("3:1")], A, "{old_bits = 8 : i32, new_bits = 16 : i32}", "unable to recast layout"),
        ("recast_layout", [A], A, "", "needs attribute 'old_bits'"),
        ("right_inverse", ["i32"], A, "", "expects an input of type layout or composed layout, but got i32"),
        ("filter_zeros", [A, "i32"], A, "", "expects a ShapeType for the target profile, but got i32"),
        ("filter_zeros", [A, '!cute.shape<"(4,8,1)">'], A, "",
         "Expects target_profile has the same profile with the src, but src_profile is: (4,8) and target_profile is: (4,8,1)"),
        ("tuple_add", ['!cute.shape<"4">', '!cute.coord<"4">'], '!cute.shape<"8">', "", "has invalid values."),
        ("tuple_div", ['!cute.shape<"4">', '!cute.shape<"0">'], '!cute.shape<"8">', "", "zero divisor"),
        ("to_int_tuple", ['!cute.stride<"(1@0,2)">'], '!cute.int_tuple<"4">', "", "neither scaled bases nor underscores"),
        ("static", [], "i32", "", "expects a static result type, but got i32"),
        ("make_swizzle", [], A, "", "expects a result of kind swizzle, but got"),
        ("static", [], '!cute.layout<"(4">', "", "failed to parse layout"),
        ("memref_load", [VIEW, "index"], "f16", "", "expects 2 coordinates for (8,16):(16,1), but got 1"),
        ("memref_load", [VIEW, "index", "index"], "f32", "", "accesses elements of type f16, but the value is f32"),
        ("memref_load", ['!cute.memref<i1, "smem", "4:1">', "index"], "i1", "", "i1 elements are supported in rmem only"),
        ("memref_load_vec", [VIEW], "vector<4xf16>", "", "expects a vector of 128 elements"),
        ("make_view", ["i64", A], VIEW, "", "expects the layout of the result to be (8,16):(16,1)"),
        ("memref_alloca", [], VIEW, "", "allocates rmem, but the result is in smem"),
        ("copy", ["i32", VIEW, '!cute.memref<f16, "rmem", "8:1">'], None, "", "expects same size in rank 2 but got srcShape"),
        ("copy", ["i32", VIEW, VIEW, "i32"], None, "", "pred must be a CuteMemRefType"),
        ("copy", ["i32", VIEW, VIEW, '!cute.memref<i1, "tmem", "4:1">'], None, "", "pred memory space invalid"),
        ("coalesce", [A, '!cute.shape<"(1,1,1)">'], A, "", "unable to coalesce input of type !cute.layout<(4,8):(1,4)>"),
        ("filter_zeros", ["i32"], A, "", "unable to filter zeros for input i32"),
        ("local_partition", [VIEW, A, "i32", '!cute.shape<"(1,1)">'], VIEW, "",
         "expects `target_profile` be CoordType, but got !cute.shape<(1,1)>"),
        ("local_partition", [VIEW, A, "i32", '!cute.coord<"(_,_)">'], VIEW, "",
         "unable to construct a coordinate for local_partition"),
        ("group_modes", ["i32"], A, "{begin = 0 : i32, end = 1 : i32}",
         "expects view or layout type, but got i32"),
        ("tile_to_shape", [A, '!cute.shape<"(8,8)">', '!cute.int_tuple<"(0,?)">'], A, "",
         "expects only static order modes, but got !cute.int_tuple<(0,?)>"),
        ("stencil_divide", [A], A, "{window = array<i32: 3>}", "Target and kernel shapes must be congruent."),
        ("stencil_divide", [A], A, "{window = array<i32: 3, 3>, lower_padding = array<i32: 1>}",
         "Lower padding shape must be congruent with target shape"),
        ("stencil_divide", [A], A, "{window = array<i32: 3, 3>, upper_padding = array<i32: 1>}",
         "Upper padding shape must be congruent with target shape"),
        ("stencil_divide", [A], A, "{window = array<i32: 3, 3>, stride = 1 : i32}",
         "Traversal stride must be congruent with target shape"),
        ("stencil_divide", [A], A, "{window = array<i32: 5, 3>}", "4:1 is smaller than the window of 5"),
        ("cosize", ['!cute.shape<"(2,2)">'], "i32", "{mode = array<i32: 0>}",
         "unable to compute cosize for input !cute.shape<(2,2)> and mode [0]"),
        ("mma_atom_call", ["i32", SUM, VIEW, VIEW, SUM], None, "", "expects Mma atom layout of an instruction, but got i32"),
        ("mma_atom_call", [ATOM, SUM, "i32", VIEW, SUM], None, "", "expects all mma operands to have element type, but got i32"),
        ("mma_atom_call", [WGMMA, "i32", VIEW, VIEW, SUM], None, "", "expects memref for operand D, but gets D: i32."),
        ("mma_atom_call", [ATOM, SUM, IN_REGISTERS, IN_REGISTERS, OPEN], None, "",
         "expects static and no scaled basis layout for C"),
        ("mma_atom_call", [ATOM, SUM, IN_REGISTERS, IN_REGISTERS, SUM], None, "",
         "invalid layout of A/B/D. A: (16,16):(16,1), B: (16,16):(16,1), D: (8,8):(8,1)"),
        ("gemm", ["i32", PLANE, LINE3, LINE3, PLANE], None, "", "expects C to have rank 3, but got C:"),
        ("tiled_partition", ["i32", VIEW, "i32"], VIEW, '{operand = "E"}', "expects 'operand' to be S, D, A, B or C, but got 'E'"),
        ("mma_make_fragment", ["i32", VIEW], VIEW, "", "expects atom to be an atom, but got i32"),
        ("mma_make_fragment", [ATOM, VIEW], VIEW, '{operand = "D"}', "expects 'operand' to be A, B or C, but got 'D'"),
        ("mma_make_fragment", [ATOM, VIEW], VIEW, '{operand = "A"}', "expects at least 3 modes, (V, rest, rest), but got"),
        ("mma_make_fragment", [ATOM, '!cute.shape<"(?,1,1)">'], VIEW, '{operand = "A"}', "expects the mode of values to be static"),
        ("mma_make_fragment", [ATOM, '!cute.shape<"(4,1,1)">'], VIEW, '{operand = "A"}', "expects 8 values for A of"),
        ("mma_make_fragment", [ATOM, '!cute.shape<"(8,1,1)">'], VIEW, '{operand = "A"}', "makes !cute.memref<f16, rmem, (8,1,1):(1,8,8)>"),
        ("load_scaled_index", [PTR, "i32", "i32"], "f16", "", "expects an int tuple as stride, but got i32"),
        ("load_scaled_index", [PTR, "i32", '!cute.int_tuple<"4">'], "f32", "", "loads f16, but the result is f32"),
        ("load_scaled_index", [PTR.replace("f16", "i4"), "i32", '!cute.int_tuple<"4">'], "i4", "",
         "expects elements of 8, 16, 32 or 64 bits, but got i4"),
        ("load_scaled_index", [PTR, "i32", '!cute.int_tuple<"(4,2)">'], "f16", "", "expects a stride for each number of the index"),
        ("load_scaled_index", [PTR, "f32", '!cute.int_tuple<"4">'], "f16", "", "expects an integer or a coordinate as index"),
        ("get_layouts_from_tile", [A], A, "{mode = 0 : i32}", "expects a tile, but got"),
        ("get_layouts_from_tile", ['!cute.tile<"<4:1,_>">'], A, "{mode = 0 : i32}", "expects a layout for each mode of the tile"),
        ("get_layouts_from_tile", ['!cute.tile<"<4:1,8:1>">'], A, "{mode = 2 : i32}", "mode [2] is invalid for input type"),
        ("get_layouts_from_tile", ['!cute.tile<"<4:1,8:1>">'], A, "{mode = 1 : i32}", "makes !cute.layout<8:1>, but its type is"),
        ("derefine", [A], '!cute.shape<"(4,8)">', "", "expects a result of the same kind"),
        ("derefine", [A], L("(4,?,2):(1,4,1)"), "", "expects a result of the same profile"),
        ("derefine", [A], L("(4,?{div=3}):(1,4)"), "", "cannot know more than"),
        ("derefine", [L("(4,?):(1,4)")], A, "", "cannot know more than"),
        ("make_tensor", ["i64", A], VIEW, "", "expects iter to be a cute.ptr, but got i64"),
        ("partition", [VIEW, "i32", "i32"], VIEW, "", "unexpected tiler type, got i32"),
        ("partition", [VIEW, '!cute.tile<"<4:1,8:1>">', '!cute.coord<"(1,1,1)">'], VIEW, "", "expected a coordinate of rank 2 but got"),
        ("print_tma_desc_tiled", ["i32"], None, "", "expects a tma_descriptor_tiled, but got i32"),
        ("print_tma_desc_im2col", ["i32"], None, "", "expects a tma_descriptor_im2col, but got i32"),
        ("mma_atom_call", [ATOM, VIEW, VIEW, VIEW, VIEW], None, "", "expects operand c with element type f32, but get f16."),
        ("mma_atom_call", [ATOM, SUM, VIEW, VIEW, SUM], None, "", "expects rmem for input operands, but got A:"),
        ("dice", [A, '!cute.coord<"(1,2,3)">'], A, "", "Failed to dice (4,8):(1,4) with (1,2,3)"),
        ("local_tile", [VIEW, '!cute.tile<"<4:1,8:1>">', '!cute.coord<"(1@0,1)">'], VIEW, "",
         "failed to construct a valid coordinate from"),
        ("make_fragment_like", [BASES], VIEW, "", "unable to make fragment-like layout"),
        ("group_modes", [A], A, "{begin = 0 : i32, end = 5 : i32}",
         "expects end in the range of [-rank+1 , rank], but got end [5] and rank [2]"),
        ("size", ['!cute.stride<"(1@0,2)">'], "i32", "{mode = array<i32: 0>}",
         "unable to compute size for input !cute.stride<(1@0,2)> and mode [0]"),
        ("cosize", ['!cute.composed_layout<"S<1,0,1> o 0 o (4,2):(1,4)">'], "i32", "{mode = array<i32: 0>}",
         "mode [0] is invalid for input type"),
        ("right_inverse", [L("(4,8):(1@0,1@1)")], A, "", "unable to compute a right inverse for input"),
        ("gemm", ["i32", COMPOSED, VIEW, VIEW, VIEW], None, "", "doesn't support composed layout for A/B/D, but got: A:"),
        ("gemm", ["i32", VIEW, VIEW, LINE, VIEW], None, "", "expects A, B to have the same rank, but got A:"),
        ("gemm", ["i32", VIEW, VIEW, VIEW, LINE], None, "", "expects C, D to have the same rank, but got C:"),
        ("gemm", ["i32", VIEW, VIEW, VIEW, VIEW], None, "", "layoutA, layoutB and layoutD fail to form a gemm. A:"),
    ],
)  # fmt: skip
def test_diagnostics(
    context: ir.Context,
    name: str,
    types: list[str],
    result: str | None,
    attributes: str,
    message: str,
) -> None:
    text = diagnostic(context, op_text(f"cute.{name}", types, result, attributes))
    assert f"'cute.{name}' op" in text
    assert message in text


def test_earlier_gate_wins(context: ir.Context) -> None:
    """Two faults: the tiler is reported, not the source."""
    text = diagnostic(context, op_text("cute.local_tile", ["i32", "i32", "i32"], VIEW))
    assert "unexpected tiler type" in text


def test_gemm_accepts(context: ir.Context) -> None:
    def view(shape: str) -> str:
        return f'!cute.memref<f32, "rmem", "{shape}">'

    types = ["i32", view("(16,8):(1,16)"), view("(16,4):(1,16)"), view("(8,4):(1,8)")]
    accepted(context, op_text("cute.gemm", [*types, types[1]], None))


MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
SCALED = "mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32.row.col.f32.e4m3.e4m3.f32.ue8m0"


@pytest.mark.parametrize(
    ("name", "types", "result", "atom", "message"),
    [
        ("arch_mma_sm80", ["vector<8xf16>", "vector<4xf16>", "vector<4xf32>"], "vector<4xf32>", MMA, None),
        ("arch_mma_sm80", ["vector<8xf32>", "vector<4xf16>", "vector<4xf32>"], "vector<4xf32>", MMA,
         "expects operand a with element type f16, but get f32."),
        ("arch_mma_sm80", ["vector<8xf16>", "vector<8xf16>", "vector<4xf32>"], "vector<4xf32>", MMA,
         "has 4 elements per thread, but got vector<8xf16>"),
        ("arch_mma_sm80", ["i32", "vector<4xf16>", "vector<4xf32>"], "vector<4xf32>", MMA,
         "expects rmem for input operands, but got A: i32"),
        ("arch_mma_sm80", ["vector<8xf16>", "vector<4xf16>", "vector<4xf32>"], "vector<4xf32>", "mma.m7",
         "'mma.m7' is no MMA instruction of the registry"),
        ("arch_mma_sm90", ["vector<32xf32>", "i64", "i64", "i1"], "vector<32xf32>",
         "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16", None),
        ("arch_mma_sm90", ["vector<32xf32>", "f32", "i64", "i1"], "vector<32xf32>",
         "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16",
         "expects memref/smem_desc_view for operand A, but gets A:f32."),
        ("arch_mma_sm90", ["vector<32xf32>", "vector<8xf16>", "f32", "i1"], "vector<32xf32>",
         "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16",
         "expects smem_desc_view for operand B, but gets B: f32."),
        ("arch_mma_sm90_wait", ["vector<32xf32>"], "vector<32xf32>", "", None),
        ("arch_mma_sm90_wait", ["vector<32xf32>"], "vector<16xf32>", "", "expects the result to be vector<32xf32>"),
        ("arch_mma_sm90_wait", ["f32"], "f32", "", "expects a fragment of sums, but got f32"),
        ("arch_mma_sm90_wait", ["vector<8xf32>"], "vector<8xf32>", 'none", pending = 8 : i32, other = "', "expects 'pending' from 0 to 7"),
        ("arch_mma_sm120_block_scaled", ["vector<16xi8>", "vector<8xi8>", "vector<4xf16>", "i32", "i32"], "vector<4xf32>",
         SCALED, "expects c type to be Float32"),
        ("arch_mma_sm120_block_scaled", ["vector<16xi8>", "vector<8xi8>", "vector<4xf32>", "i32", "vector<4xi8>"], "vector<4xf32>",
         SCALED, "expects sfa/sfb element types to be the same"),
        ("arch_mma_sm120_block_scaled", ["vector<16xi8>", "vector<8xi8>", "vector<4xf32>", "i32", "i32"], "vector<4xf32>", SCALED, None),
        ("arch_copy_ldsm", ["i32"], "vector<8xf16>", "ldmatrix.sync.aligned.m8n8.x4.shared.b16", None),
        ("arch_copy_ldsm", ["i32"], "vector<4xf16>", "ldmatrix.sync.aligned.m8n8.x4.shared.b16",
         "expects 4 registers of 32 bits"),
        ("arch_copy_stsm", ["vector<8xf16>", "i32"], None, "ldmatrix.sync.aligned.m8n8.x4.shared.b16",
         "is no stmatrix instruction"),
        ("arch_copy_sm100_tmem_load", ["i32"], "vector<8xi32>", "tcgen05.ld.sync.aligned.32x32b.x8.b32", None),
        ("arch_mma_sm100_umma", ["i32", "i64", "i64", "i32", "i1"], None, "tcgen05.mma.cta_group::1.kind::f16", None),
        ("arch_mma_sm100_umma", ["i32", "vector<4xf16>", "i64", "i32", "i1"], None,
         "tcgen05.mma.cta_group::1.kind::f16", "for operand A"),
    ],
)  # fmt: skip
def test_instructions(
    context: ir.Context,
    name: str,
    types: list[str],
    result: str | None,
    atom: str,
    message: str | None,
) -> None:
    text = op_text(f"cute_nvgpu.{name}", types, result, f'{{atom = "{atom}"}}')
    if message is None:
        accepted(context, text)
    else:
        assert message in diagnostic(context, text)


@pytest.mark.parametrize(
    ("flags", "chip", "message"),
    [
        ({"kind": "i8"}, "sm_100f", "INT8 type is supported only on arch-conditional variants."),
        (
            {"kind": "mxf4", "sparse": True},
            "sm_100f",
            "MXF4 and MXF4NVF4 types with Sparsity are supported only on arch-conditional variants.",
        ),
        (
            {"kind": "mxf4", "scale_size": "2X"},
            "sm_100f",
            "Explicit scale vector size is supported only on arch-conditional variants.",
        ),
        (
            {"kind": "f16", "scale_input_accumulator": True},
            "sm_90a",
            "Scale input accumulator is not supported on this architecture.",
        ),
        (
            {"kind": "i8", "scale_input_accumulator": True},
            "sm_100a",
            "Scale input accumulator can only be used with f16 and tf32 types",
        ),
        (
            {"kind": "f16", "block_scale": True},
            "sm_100a",
            "Block scale is not supported for f16, tf32, f8f6f4, and i8 types",
        ),
        (
            {"kind": "mxf4", "block_scale": True, "ashift": True},
            "sm_100a",
            "ashift is not supported with tcgen05.mma.block_scale variants",
        ),
        (
            {"kind": "f16", "weight_stationary": True, "cta_group": 2},
            "sm_100a",
            "cta_group::2 is not supported with weight stationary",
        ),
        (
            {"kind": "mxf4", "weight_stationary": True},
            "sm_100a",
            "Cannot use weight stationary with mxf8f6f4 and fp4 types",
        ),
        (
            {"kind": "f16", "ashift": True, "collector": "fill"},
            "sm_100a",
            "Cannot use collector::a::use or colletor::a::fill with ashift",
        ),
        (
            {"kind": "mxf8f6f4", "scale_size": "2X"},
            "sm_100a",
            "Cannot use 2X or 4X as scale vector size for mxf8f6f4 type",
        ),
        (
            {"kind": "mxf4nvf4", "scale_size": "1X"},
            "sm_100a",
            "Cannot use 1X as scale vector size for mxf4nvf4 type",
        ),
        (
            {"kind": "mxf4", "scale_size": "4X"},
            "sm_100a",
            "Cannot use 1X or 4X as scale vector size for mxf4 type",
        ),
    ],
)
def test_kind_ladder(flags: dict[str, object], chip: str, message: str) -> None:
    with pytest.raises(LayoutError) as error:
        check_tensor_mma(TensorMmaFlags(**flags), chip)  # type: ignore[arg-type]
    assert str(error.value) == message


def test_kind_ladder_lets_legal_ones_pass() -> None:
    check_tensor_mma(TensorMmaFlags("f8f6f4", weight_stationary=True), "sm_100a")
    check_tensor_mma(TensorMmaFlags("mxf4nvf4", scale_size="4X", block_scale=True), "sm_100a")


def test_types_round_trip(context: ir.Context) -> None:
    for text in (
        A,
        VIEW,
        '!cute.tile<"<3:4,_>">',
        '!cute.coord<"(_,1)">',
        '!cute.swizzle<"S<3,4,3>">',
    ):
        type_ = ir.Type.parse(text)
        assert type_of(operand_of(type_)) == type_


def fold(text: str) -> str:
    job = OptJob(default_registry(frozenset()), Selection(passes="cute-fold-layouts"))
    return optimize(text, 0, job).text


def test_fold() -> None:
    text = f"""
func.func @f(%t: !cute.memref<f16, "smem", "(8,16):(16,1)">) -> (index, {L("(4,8):(16,1)")}) {{
  %l = "cute.get_layout"(%t) : ({VIEW}) -> {L("(8,16):(16,1)")}
  %tile = "cute.static"() : () -> !cute.tile<"<4:1,8:1>">
  %d = "cute.zipped_divide"(%l, %tile) : ({L("(8,16):(16,1)")}, !cute.tile<"<4:1,8:1>">) -> {L("((4,8),(2,2)):((16,1),(64,8))")}
  %s = "cute.slice"(%d, %c) : ({L("((4,8),(2,2)):((16,1),(64,8))")}, !cute.coord<"(_,(0,0))">) -> {L("((4,8)):((16,1))")}
  %g = "cute.static"() : () -> {L("(4,8):(16,1)")}
  %n = "cute.size"(%s) : ({L("((4,8)):((16,1))")}) -> index
  return %n, %g : index, {L("(4,8):(16,1)")}
}}
""".replace("%c) :", "%k) :").replace(
        "  %d =", '  %k = "cute.static"() : () -> !cute.coord<"(_,(0,0))">\n  %d ='
    )
    result = fold(text)
    assert "arith.constant 32 : index" in result
    for gone in ("zipped_divide", "cute.slice", "cute.size", "get_layout"):
        assert gone not in result
    assert result.count("cute.static") == 1


def test_fold_leaves_the_rest() -> None:
    """No change: nothing static to compute, and effects stay."""
    text = f"""
func.func @f(%t: {VIEW}, %i: index) -> f16 {{
  %v = "cute.memref_load"(%t, %i, %i) : ({VIEW}, index, index) -> f16
  return %v : f16
}}
"""
    assert fold(text).count("cute.memref_load") == 1
    assert fold(fold(text)) == fold(text)


def test_every_rule_has_an_operation() -> None:
    from tile_cute.dialect.algebra_ops import OPERATIONS

    assert set(RULES) == set(OPERATIONS)
