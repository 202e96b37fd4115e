"""What the operations of nv_tileaa refuse: (operation, what is said)."""

from __future__ import annotations

from unit.tile_tileaa.refused_accesses import ACCESSES, cast, same, sizes

MATH = [
    (same("addf", "%i", "i32", 2), "expects floats, but got i32"),
    (same("mulhiui", "%f", "f32", 2), "expects integers, but got f32"),
    (cast("fp_to_fp", "%t", "!t", "f16"), "cannot convert a tile of [8] to one of []"),
    (cast("fp_to_fp", "%i", "i32", "f32"), "fp_to_fp source element type is not supported"),
    (cast("fp_to_fp", "%f", "f32", "i32"), "fp_to_fp result element type is not supported"),
    (
        cast("fp_to_int", "%i", "i32", "i32", '{signedness = "signed"}'),
        "cannot round i32 to i32",
    ),
    (
        cast("fp_to_int", "%f", "f32", "i32", '{signedness = "both"}'),
        "expects signedness to be one of signed, unsigned, but got 'both'",
    ),
    (cast("bitcast", "%f", "f32", "i64"), "cannot take the bits of f32 for those of i64"),
    (
        cast("int_to_ptr", "%i", "i32", "!p"),
        "expects pointers and i64, but got i32 and !nv_tileaa.ptr<f32, 1 : i32>",
    ),
    (
        cast("ptr_to_int", "%p", "!p", "i32"),
        "expects pointers and i64, but got !nv_tileaa.ptr<f32, 1 : i32> and i32",
    ),
]

SHAPES = [
    (cast("view", "%t", "!t", "tensor<2x4xi32>"), "cannot make elements of i32 from f32"),
    (cast("splat", "%t", "!t", "!t"), "cannot splat tensor<8xf32> to tensor<8xf32>"),
    (
        cast("expand_dims", "%t", "!t", "tensor<8x1xf32>", "{axis = 0 : i32}"),
        "cannot insert axis 0 into [8] for [8, 1]",
    ),
    (cast("extract", "%t", "!t", "f32"), "expects a tile of one element"),
    (
        '%0 = "nv_tileaa.splat"(%f) : (f32) -> tensor<1xf32>\n'
        + cast("extract", "%0", "tensor<1xf32>", "tensor<1xf32>"),
        "expects a scalar result, but got tensor<1xf32>",
    ),
    (
        cast("permute", "%u", "tensor<4x8xf32>", "tensor<8x4xf32>",
              "{permutation = array<i32: 0, 1>}"),
        "cannot permute [4, 8] by [0, 1] to [8, 4]",
    ),
    (
        '%r = "nv_tileaa.cat"(%t, %t) {axis = 0 : i32} : (!t, !t) -> !t',
        "cannot join two tiles of [8] along 0 to [8]",
    ),
    (cast("extract_slice", "%t", "!t", "tensor<4xf32>"), "expects 1 indices, but got 0"),
    (
        '%r = "nv_tileaa.extract_slice"(%t, %i) : (!t, i32) -> tensor<16xf32>',
        "cannot cut [8] into tiles of [16]",
    ),
    (
        '%r = "nv_tileaa.make_range"() : () -> !t',
        "expects a tile of one axis of integers, but got tensor<8xf32>",
    ),
]  # fmt: skip


def _fold(name: str = "reduce", operands: str = "%t", types: str = "!t", results: str = "f32",
          arguments: str = "%e: f32, %z: f32", body: str = "", ends: str = "(%e) : (f32) -> ()",
          axis: int = 0, identities: str = "0.0 : f32", end: str = "nv_tileaa.yield",
          more: str = "") -> str:  # fmt: skip
    return (
        f'%r = "nv_tileaa.{name}"({operands}) ({{\n^bb0({arguments}):\n{body}\n"{end}"{ends}\n}}) '
        f"{{axis = {axis} : i32, identities = [{identities}]{more}}} : ({types}) -> {results}"
    )


FOLDS = [
    (_fold(axis=1), "expects an axis of at least 0 and below 1, but got 1"),
    (_fold(identities="0.0 : f32, 0.0 : f32"), "expects 1 identities, but got 2"),
    (
        _fold(operands="%t, %t", types="!t, !t", identities="0.0 : f32, 0.0 : f32"),
        "expects 2 results, but got 1",
    ),
    (_fold(results="!t"), "expects results of shape [], but got [8]"),
    (_fold(results="i32"), "expects a result of f32, but got i32"),
    (
        '%r = "nv_tileaa.reduce"(%t) ({\n^bb0(%e: f32, %z: f32):\ncf.br ^bb1\n^bb1:\n'
        '"nv_tileaa.yield"(%e) : (f32) -> ()\n}) {axis = 0 : i32, identities = [0.0 : f32]} : '
        "(!t) -> f32",
        "expects a region of one block, but got 2",
    ),
    (
        _fold(end="scf.yield"),
        "expects regions to end with 'nv_tileaa.yield'",
    ),
    (_fold(arguments="%e: f32, %z: i32"), "expects region arguments of [f32, f32]"),
    (
        _fold(body="%w = arith.fptosi %e : f32 to i32", ends="(%w) : (i32) -> ()"),
        "expects the region to yield [f32]",
    ),
    (
        _fold(body='"nv_tileaa.assert"(%c) {message = "m"} : (i1) -> ()'),
        "expects a region without effects, but it has 'nv_tileaa.assert'",
    ),
    (
        'scf.if %c {\n"nv_tileaa.yield"() : () -> ()\n}',
        "expects parent op to be one of 'nv_tileaa.reduce, nv_tileaa.scan, "
        "nv_tileaa.reduce_mixed, nv_tileaa.scan_mixed, nv_tileaa.generate, nv_tileaa.pragma, "
        "nv_tileaa.pragma_mixed'",
    ),
    (
        '%r:2 = "nv_tileaa.reduce_mixed"(%t, %u) ({\n^bb0(%e: f32, %z: f32, %y: f32, %w: f32):\n'
        '"nv_tileaa.yield"(%e, %y) : (f32, f32) -> ()\n}) {axis = 0 : i32, identities = '
        "[0.0 : f32, 0.0 : f32], operandSegmentSizes = array<i32: 1, 1" + ", 0" * 14 + ">, "
        "resultSegmentSizes = array<i32: 2" + ", 0" * 15 + ">} : (!t, tensor<4x8xf32>) -> "
        "(f32, f32)",
        "expects operands of one shape, but got [8] and [4, 8]",
    ),
]


def _memref(operands: str, types: str, result: str, groups: tuple[int, ...]) -> str:
    return f'%r = "nv_tileaa.make_memref"({operands}) {{{sizes(*groups)}}} : ({types}) -> {result}'


def _block(tile: str, axes: str, padding: str = "zero", memref: str = "!m", own: str = "%m") -> str:
    result = f'!nv_tileaa.tiled_view<{memref}, array<i32{tile}>, array<i32{axes}>, "{padding}">'
    return f'%r = "nv_tileaa.block_tile"({own}) : (!{own[1:]}) -> {result}'


MEMORY = [
    (
        _memref("%p", "!p", "!p", (1, 0, 0)),
        "expects a memref, but got !nv_tileaa.ptr<f32, 1 : i32>",
    ),
    (
        _memref("%h", "!h", "!m", (1, 0, 0)),
        "expects a pointer to f32, but got !nv_tileaa.ptr<f16, 1 : i32>",
    ),
    (
        _memref("%p", "!p", "!nv_tileaa.memref<f32, array<i64: 4>, array<i64: 4, 1>>", (1, 0, 0)),
        "expects as many strides as sizes, but got 2 and 1",
    ),
    (_memref("%p", "!p", "!d", (1, 0, 0)), "expects 1 operands for a size each, but got 0"),
    (
        _memref("%p, %i", "!p, i32", "!m", (1, 0, 1)),
        "expects 0 operands for a stride each, but got 1",
    ),
    (
        '%r = "nv_tileaa.block_tile"(%m) : (!m) -> !m',
        "expects a tiled view, but got !nv_tileaa.memref<f32, array<i64: 64, 64>, "
        "array<i64: 64, 1>>",
    ),
    (_block("", ": 0"), "expects non-empty tileSizes"),
    (_block(": 4", ""), "expects non-empty dimGroups"),
    (
        _block(": 4, 8", ": 0"),
        "expects rank of tileSizes be equal to rank of dimGroups, but got 2 vs 1",
    ),
    (_block(": 4, 0", ": 0, 1"), "expects all tile size bigger than zero"),
    (_block(": 4, 8", ": 1, 1"), "expects dim is being tiled only one time, but got 1"),
    (
        _block(": 4", ": 0", memref="!d"),
        "expects a view of !nv_tileaa.memref<f32, array<i64: 64, 64>, array<i64: 64, 1>>, but got "
        "one of !nv_tileaa.memref<f32, array<i64: -9223372036854775808>, array<i64: 1>>",
    ),
    (
        _block(": 4", ": 0", memref="f32", own="%f").replace("(!f)", "(f32)"),
        "expects a memref, but got f32",
    ),
    (_block(": 4", ": 2"), "expects axes of at least 0 and below 2, but got 2"),
    (
        _block(": 4, 8", ": 0, 1", "some"),
        "expects a padding of none, zero, neg_zero, nan, pos_inf, neg_inf, but got 'some'",
    ),
    (
        _block(": 4", ": 0", "nan", "!mi", "%mi"),
        "special padding values (nan, pos_inf, neg_inf, neg_zero) only for float-like element "
        "types",
    ),
    (
        '%r = "nv_tileaa.get_dim_size"(%f) {dim = 0 : i32} : (f32) -> i32',
        "expects a memref, but got f32",
    ),
    (
        '%r = "nv_tileaa.get_dim_size"(%m) {dim = 2 : i32} : (!m) -> i32',
        "expects a dim of at least 0 and below 2, but got 2",
    ),
    ('%r = "nv_tileaa.addptr"(%f, %i) : (f32, i32) -> f32', "expects pointers, but got f32"),
    (
        '%r = "nv_tileaa.addptr"(%p, %f) : (!p, f32) -> !p',
        "expects an offset of integers, but got f32",
    ),
    (
        '%r = "nv_tileaa.addptr"(%pp, %i) : (!pp, i32) -> !pp',
        "expects as many offsets as pointers, but got [] and [8]",
    ),
    (
        '%r = "nv_tileaa.get_program_id"() {axis = 3 : i32} : () -> i32',
        "expects an axis of 0, 1 or 2, but got 3",
    ),
]


def _assume(predicate: str, source: str = "%k", type_: str = "!k") -> str:
    return cast("assume", source, type_, type_, f"{{predicate = {{{predicate}}}}}")


_DIV = 'kind = "div_by", divisor = '
ASSUMPTIONS = [
    (
        _assume('kind = "odd"'),
        "expects a predicate of kind div_by, bounded, same_elements, but got odd",
    ),
    (_assume(_DIV + "0 : i64"), "'div_by' divisor must be a power of 2"),
    (_assume(_DIV + "6 : i64"), "'div_by' divisor must be a power of 2"),
    (
        _assume(_DIV + "4 : i64, every = 2 : i64"),
        "'div_by' 'every'/'along' must be used in combination",
    ),
    (_assume(f"{_DIV}{1 << 63} : i128"), "'div_by' divisor is too large"),
    (
        _assume(_DIV + "4 : i64", "%t", "!t"),
        "'div_by' requires an integer-, pointer-, or memref-like value",
    ),
    (
        _assume(_DIV + "4 : i64, every = 2 : i64, along = 0 : i64", "%i", "i32"),
        "'div_by' 'every'/'along' cannot be used on views or scalars",
    ),
    (
        _assume(_DIV + "4 : i64, every = 2 : i64, along = 1 : i64"),
        "'div_by' along (1) must be >= 0 and < tile rank (1)",
    ),
    (
        _assume(_DIV + "4 : i64, every = 0 : i64, along = 0 : i64"),
        "'div_by' every (0) must be > 0 and <= the axis' extent (8)",
    ),
    (
        _assume('kind = "bounded", lb = 0 : i64', "%t", "!t"),
        "'bounded' requires an integer-like element type",
    ),
    (
        _assume('kind = "bounded", ub = 128 : i64', "%k8", "tensor<8xi8>"),
        "'bounded' expects upper bound to be within [-128, 127]",
    ),
    (
        _assume('kind = "bounded", lb = 2 : i64, ub = 1 : i64'),
        "'bounded' expects lower bound to be less than or equal to upper bound",
    ),
    (
        _assume('kind = "same_elements", values = array<i64: 1, 1>'),
        "expected number of values in 'same_elements' (2) to match rank of constrained tile (1)",
    ),
    (
        _assume('kind = "same_elements", values = array<i64: 9>'),
        "expected 'same_elements' value 0 to be within 0 and the size of the respective dimension "
        "(8)",
    ),
]

HOST = [
    (
        '%r = "nv_tileaa.get_global"() {symbol = @g} : () -> i64',
        "expects a pointer, but got i64",
    ),
    (
        '"nv_tileaa.assert"(%f) {message = "m"} : (f32) -> ()',
        "expects a condition of i1, but got f32",
    ),
    (
        '%r = "nv_tileaa.print"(%f) {format = "", ' + sizes(*[0] * 16, 1) + "} : (f32) -> !tok",
        "expects a memory token, but got f32",
    ),
    (
        '"nv_tileaa.global"() {sym_name = "g", value = dense<1> : tensor<2x2xi32>, '
        'alignment = 4 : i64, symbol_visibility = "public"} : () -> ()',
        "expects a dense constant of rank 1",
    ),
    (
        '"nv_tileaa.global"() {sym_name = "g", value = dense<1> : tensor<2xi32>, '
        'alignment = 3 : i64, symbol_visibility = "public"} : () -> ()',
        "expects an alignment that is 0 or a power of two, but got 3",
    ),
]


def _dot(a: str, b: str, c: str, more: str = "", scales: str = "", groups: str = "0, 0") -> str:
    values = [value.split(": ") for value in (a, b, c, *([scales] if scales else []))]
    more = f"{more}, " if more else ""
    return (
        f'%r = "nv_tileaa.dot"({", ".join(v[0] for v in values)}) {{{more}operandSegmentSizes = '
        f"array<i32: 1, 1, 1, {groups}>}} : ({', '.join(v[1] for v in values)}) -> {values[2][1]}"
    )


_A8, _C32 = "%a8: tensor<16x16xi8>", "%c32: tensor<16x16xi32>"
_AH, _AF, _A16 = "%ah: tensor<16x16xf16>", "%af: tensor<16x16xf32>", "%a16: tensor<16x16xi16>"
_SIGNS = 'signedness_a = "signed", signedness_b = "signed"'
DOT = [
    (
        _dot(_AH, _AH, _C32),
        "expected the element types of A, B, C, and D to be either all integers or all floats.",
    ),
    (_dot(_A8, _A16, _C32), "expects #A and #B have same bit width but got 8 vs 16"),
    (_dot(_A8, _A8, _C32), "expect signedness attribute for operand A"),
    (
        _dot(_A8, _A8, _C32, 'signedness_a = "signed"'),
        "expect signedness attribute for operand B",
    ),
    (
        _dot(_A8, _A8, _C32, 'signedness_a = "both", signedness_b = "signed"'),
        'expects signedness_a to be one of signed, unsigned, but got "both"',
    ),
    (
        _dot(_A16, _A16, _C32, _SIGNS),
        "expects i8 operands and an i32 accumulator, but got i16 and i32",
    ),
    (_dot(_AF, _AH, _AF), "cannot multiply elements of f32 by elements of f16"),
    (
        _dot(_AF, _AF, _AF, "blocks = 3 : i32"),
        "expects blocks to be 2 and no block scales, but got 3 : i32",
    ),
    (_dot(_AF, _AF, _AH), "expects #C element type to be f32, but got f16"),
    (
        _dot(_AH, _AH, "%ab: tensor<16x16xbf16>"),
        "expects #C element type to be either f32 or f16, but got bf16",
    ),
    (
        _dot("%a1: tensor<16xf16>", _AH, "%a1: tensor<16xf16>"),
        "expects rank-2 or rank-3 tensor for result, but got (1)",
    ),
    (
        _dot("%a4: tensor<4x16x16xf16>", _AH, _AH),
        "expects the shape of operand #A and #B to be compatible",
    ),
    (
        _dot("%th2: tensor<8x16xf16>", _AH, _AF),
        "expects the shape of operand #C is compatible with operands #A and #B",
    ),
    (
        _dot(_AH, _AH, _AF, scales=_AF, groups="1, 0"),
        "expects both SFA and SFB to be present",
    ),
]
_CONV = "dim_groups = [array<i32: 0>, array<i32: 1>], channel_axis = 1 : i32"


def _conv(more: str, result: str = "!v") -> str:
    return cast("conv_tile", "%m", "!m", result, f"{{{more}}}")


EXTENDED = [
    (
        '%r = "nv_tileaa.extern_elementwise"(%t) {symbol = @f} : (!t) -> f32',
        "expects tiles of one shape, but got [8] and []",
    ),
    (
        cast("histogram", "%t", "!t", "!k"),
        "expects a tile to count of integers, but got tensor<8xf32>",
    ),
    (
        cast("histogram", "%i", "i32", "!k"),
        "expects a tile to count of integers, but got i32",
    ),
    (
        cast("histogram", "%k", "!k", "!t"),
        "expects counts in a tile of one axis of i32, but got tensor<8xf32>",
    ),
    (
        '%r = "nv_tileaa.generate"() ({\n^bb0(%e: i32):\n"nv_tileaa.yield"(%f) : (f32) -> ()\n}) '
        ": () -> !t",
        "expects a region of 1 indices",
    ),
    (
        '%r = "nv_tileaa.generate"() ({\n^bb0(%e: index):\n"nv_tileaa.yield"(%i) : (i32) -> ()\n'
        "}) : () -> !t",
        "expects the region to yield one f32",
    ),
    (
        '%r = "nv_tileaa.pragma"() ({\nscf.yield\n}) : () -> f32',
        "expects regions to end with 'nv_tileaa.yield'",
    ),
    (
        '%r = "nv_tileaa.pragma"() ({\n"nv_tileaa.yield"(%i) : (i32) -> ()\n}) : () -> f32',
        "expects the region to yield [f32], but got [i32]",
    ),
    (
        '%r = "nv_tileaa.pragma"(%f) ({\n"nv_tileaa.yield"(%f) : (f32) -> ()\n}) : (f32) -> f32',
        "expects a region of [f32], but got []",
    ),
    (
        '%r = "nv_tileaa.pragma"() ({\n"nv_tileaa.yield"(%f) : (f32) -> ()\n}) '
        '{ocgEnterDirectives = ["a\\22"]} : () -> f32',
        "expects ocgEnterDirectives to be an array of texts of one line without quotes",
    ),
    (
        '"nv_tileaa.elementwise_inline_asm"(%i) {asm = "", constraints = ""} : (i32) -> ()',
        "expects a result",
    ),
    (
        '%r = "nv_tileaa.elementwise_inline_asm"(%i) {asm = "", constraints = "", packed_element '
        "= 3 : i32} : (i32) -> i32",
        "expects packed_element to be one of 1, 2, 4, 8, 16, but got 3",
    ),
    (
        '%r = "nv_tileaa.create_mem_token"() : () -> !tok\n'
        '%s = "nv_tileaa.optimization_barrier"(%r) : (!tok) -> !tok',
        "expects numbers, pointers, or tiles of them, but got !nv_tileaa.mem_token",
    ),
    (
        '%r = "nv_tileaa.optimization_barrier"(%i) : (i32) -> f32',
        "expects results of [i32], but got [f32]",
    ),
    (
        _conv(f"filter_sizes = array<i32: 3>, conv_params = {{}}, {_CONV}", "!m"),
        "cannot cut !nv_tileaa.memref<f32, array<i64: 64, 64>, array<i64: 64, 1>> into "
        "!nv_tileaa.memref<f32, array<i64: 64, 64>, array<i64: 64, 1>>",
    ),
    (
        _conv(f"filter_sizes = array<i32: 3, 4>, conv_params = {{}}, {_CONV}"),
        "expects filter size must be in range 1 to 3",
    ),
    (
        _conv(
            "filter_sizes = array<i32: 3>, conv_params = {padding = array<i32: 0>, stride = "
            f"array<i32: 1, 1>}}, {_CONV}"
        ),
        "expects conv params size matched with each other",
    ),
    (
        _conv(
            "filter_sizes = array<i32: 3>, conv_params = {}, dim_groups = [array<i32: 0>], "
            "channel_axis = 1 : i32"
        ),
        "expects channel must be a dimGroup",
    ),
    (
        _conv(
            "filter_sizes = array<i32: 3>, conv_params = {}, dim_groups = [array<i32: 0, 1>], "
            "channel_axis = 1 : i32"
        ),
        "expects channel dimGroup should contain only channel",
    ),
    (
        '%r = "nv_tileaa.conv_dot"(%ah, %ah, %af) {conv_params = {}} : (tensor<16x16xf16>, '
        "tensor<16x16xf16>, tensor<16x16xf32>) -> tensor<16x16xf16>",
        "expects a result of tensor<16x16xf32>, but got tensor<16x16xf16>",
    ),
]

REFUSED = [*EXTENDED, *ACCESSES, *MATH, *SHAPES, *FOLDS, *MEMORY, *ASSUMPTIONS, *HOST, *DOT]
