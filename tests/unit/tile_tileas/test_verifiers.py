"""What the operations of nv_tileas refuse, in their words."""

from __future__ import annotations

from pathlib import Path

import pytest
import tile_tileas.dialect
from support.functions import function
from support.texts import ANYTHING, pattern, returned_texts, texts

from tile_core.diagnostics import InputError

DIALECT = Path(tile_tileas.dialect.__file__).parent
MODULES = sorted(path.name for path in DIALECT.glob("*.py"))
GPU = 'mem_scope = "gpu"'
HEAD = """
!p = !nv_tileaa.ptr<f32, 1 : i32>
!tok = !nv_tileaa.mem_token
!m = !nv_tileaa.memref<f32, array<i64: 64, 64>, array<i64: 64, 1>>
!v = !nv_tileaa.tiled_view<!m, array<i32: 4, 8>, array<i32: 0, 1>, "zero">
!t = tensor<4x8xf32>
#a = #nv_tileas.layout<"lane=[[1],[2],[4],[8],[16]] : 32">
#b = #nv_tileas.layout<"lane=[[2],[1],[4],[8],[16]] : 32">
"""
ATOMIC = 'rmw_mode = "add", mem_semantic = '
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
    value, kind = (", %t", ", !t") if name != "tiled_load" else ("", "")
    sizes = f"array<i32: 1{', 1' if value else ''}, {count}, 0>"
    coords, kinds = ", %i" * count, ", i32" * count
    result = "!tok" if name == "tiled_store" else "(!t, !tok)"
    head = "%y" if name == "tiled_store" else "%y:2"
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
    assert refusal(tiled(name, ordering='mem_semantic = "weak", mem_scope = "gpu"')) == (
        f"'nv_tileas.{name}' op mem_scope not supported when mem_semantic is weak"
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
    layouts = [f'#nv_tileas.layout<"lane=[{i}] : 32">' for i in ("[1],[2],", "[2],[1],")]
    source, result = (
        f"tensor<32x{kind}, {layout.replace(',]', ',[4],[8],[16]]')}>"
        for kind, layout in zip(("f32", "f16"), layouts, strict=True)
    )
    assert refusal(convert + "tensor<32xf16, #b>") == (
        f"'nv_tileas.convert_layout' op cannot convert {source} to {result}"
    )


def test_updates_of_tiles() -> None:
    def problem(ordering: str) -> str:
        return refusal(tiled("tiled_atomic_rmw", ordering=ordering))

    with function(in_function(tiled("tiled_atomic_rmw", ordering=f'{ATOMIC}"relaxed", {GPU}'))):
        pass
    name = "'nv_tileas.tiled_atomic_rmw' op"
    assert problem(f'{ATOMIC}"relaxed"') == (
        f"{name} memScope required when memSemantic is not weak"
    )
    assert problem(f'{ATOMIC}"weak", {GPU}') == (
        f"{name} memScope not supported when memSemantic is weak"
    )
    assert problem(f'mem_semantic = "relaxed", {GPU}') == f"{name} requires attribute 'rmw_mode'"


_SCALED_ATOM = (
    "mma.sync.aligned.kind::mxf8f6f4.block_scale.scale_vec::1X.m16n8k32"
    ".row.col.f32.e4m3.e4m3.f32.ue8m0"
)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        (
            'atom = "mma.nothing"',
            "expects atom 'mma.nothing' to be an instruction of tcgen05, wgmma, mma.sync, fma, "
            "mma.block_scale",
        ),
        (
            f'atom = "{_SCALED_ATOM}"',
            "expects SFA and SFB with an atom that takes them, and no other, but got "
            f"'{_SCALED_ATOM}'",
        ),
        (
            'atom = "fma", warps = array<i32: 1, 4>',
            "expects warps to count them along B, M and N, but got array<i32: 1, 4>",
        ),
        (
            'atom = "fma", in_flight',
            "expects products in flight to be of wgmma or tcgen05, but got 'fma'",
        ),
        (
            'atom = "fma", from_row = 0 : i32',
            "expects from_row on products of wgmma with A in registers",
        ),
        (
            'atom = "fma", from_row = 1 : i32',
            "expects from_row to be one of B's with 16 from there on, but got 1 : i32",
        ),
    ],
)
def test_products_name_their_atom_and_place_warps(attributes: str, message: str) -> None:
    line = (
        f'%x = "nv_tileas.dot"(%e, %e, %e) {{{attributes}, operandSegmentSizes = '
        "array<i32: 1, 1, 1, 0, 0>} : (!s, !s, !s) -> !s"
    )
    text = in_function(line).replace("%i: i32)", "%i: i32, %e: !s)")
    with pytest.raises(InputError) as caught, function(f"!s = tensor<16x16xf32>\n{text}"):
        pass
    assert caught.value.message == f"'nv_tileas.dot' op {message}"


@pytest.mark.parametrize(
    ("row", "a", "message"),
    [
        ("0 : i32", "!h", "expects from_row on products of wgmma with A in registers"),
        (
            '"first"',
            "!s",
            'expects from_row to be one of B\'s with 16 from there on, but got "first"',
        ),
    ],
)
def test_parts_of_products_are_in_registers_and_name_a_row(row: str, a: str, message: str) -> None:
    line = (
        '%x = "nv_tileas.dot"(%e, %b, %c) {atom = "wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.'
        f'f16", from_row = {row}, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}} '
        f": ({a}, !b, !d) -> !d"
    )
    text = in_function(line).replace("%i: i32)", f"%i: i32, %e: {a}, %b: !b, %c: !d)")
    types = (
        "!s = tensor<64x16xf16>\n!d = tensor<64x16xf32>\n"
        '!h = !nv_tileas.buffer<tensor<64x16xf16>, "shared", 1 : i32>\n'
        '!b = !nv_tileas.buffer<tensor<32x16xf16>, "shared", 1 : i32>\n'
    )
    with pytest.raises(InputError) as caught, function(types + text):
        pass
    assert caught.value.message == f"'nv_tileas.dot' op {message}"


def test_pairs_of_blocks_have_instructions_of_their_own() -> None:
    line = (
        '%x = "nv_tileas.dot"(%e, %e, %c) {atom = "fma", blocks = 2 : i32, operandSegmentSizes = '
        "array<i32: 1, 1, 1, 0, 0>} : (!s, !s, !d) -> !d"
    )
    text = in_function(line).replace("%i: i32)", "%i: i32, %e: !s, %c: !d)")
    types = "!s = tensor<16x16xf32>\n!d = tensor<16x32xf32>\n"
    with pytest.raises(InputError) as caught, function(types + text):
        pass
    wanted = "'nv_tileas.dot' op expects 1 blocks to make a product by 'fma', not 2"
    assert caught.value.message == wanted


def test_a_wait_for_products_gives_what_it_takes() -> None:
    line = '%x = "nv_tileas.dot_wait"(%e) : (!s) -> tensor<8xf32>'
    text = in_function(line).replace("%i: i32)", "%i: i32, %e: !s)")
    with pytest.raises(InputError) as caught, function(f"!s = tensor<16x16xf32>\n{text}"):
        pass
    assert caught.value.message == (
        "'nv_tileas.dot_wait' op expects one tile type, but got tensor<16x16xf32> and tensor<8xf32>"
    )


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("pending = -1 : i32", "expects pending to be at least 0, but got -1 : i32"),
        ("pending = 1 : i32, done", "expects nothing to be pending behind products that are done"),
        (
            "done, in_place",
            "expects products in tensor memory to hold nothing, and none to be pending",
        ),
        ("in_place = 1 : i32", "expects in_place alone, but got 1 : i32"),
    ],
)
def test_what_a_wait_for_products_leaves(flags: str, message: str) -> None:
    line = f'%x = "nv_tileas.dot_wait"(%e, %e) {{{flags}}} : (!s, !s) -> !s'
    text = in_function(line).replace("%i: i32)", "%i: i32, %e: !s)")
    with pytest.raises(InputError) as caught, function(f"!s = tensor<16x16xf32>\n{text}"):
        pass
    assert caught.value.message == f"'nv_tileas.dot_wait' op {message}"


@pytest.mark.parametrize("module", MODULES)
def test_every_text_is_expected(module: str) -> None:
    files = sorted(Path(__file__).parent.glob("test_*verifiers.py"))
    expected = "\n".join(text for file in files for _, text in texts(file))
    found = list(returned_texts(DIALECT / module))
    missing = [f"{module}:{line}: {t}" for line, t in found if not pattern(t).search(expected)]
    assert not missing, "\n".join(missing).replace(ANYTHING, "{}")


def test_what_pads_keeps_the_type() -> None:
    line = (
        f'{VIEW}%y = "nv_tileas.pad_outside"(%v, %t, %i, %i) {{operandSegmentSizes = '
        "array<i32: 1, 1, 2>} : (!v, !t, i32, i32) -> tensor<8x4xf32>"
    )
    assert refusal(line) == (
        "'nv_tileas.pad_outside' op cannot pad tensor<4x8xf32> to tensor<8x4xf32>"
    )


_FOUR = '#nv_tileas.layout<"register=[[1],[2]] lane=[[4],[8],[16],[32],[64]] : 128">'


@pytest.mark.parametrize(
    ("sources", "registers", "given", "text"),
    [
        ("0, 0, -1", "0, 1, 2, 3", "tile",
         "expects a source and a register for each of 4 elements of a thread"),
        ("0, 0, -1, 1", "0, 1, 2, 3", "tile", "has sources that are neither -1 nor one of 1 tiles"),
        ("0, 0, -1, 0", "0, 1, 2, 4", "tile", "has registers that are none of 4"),
        ("0, 0, -1, 0", "0, 1, 2, 3", "pointers",
         "takes elements of tiles of type {}, but is given another one"),
    ],
)  # fmt: skip
def test_elements_of_other_loads(sources: str, registers: str, given: str, text: str) -> None:
    pointers = f"tensor<128x!nv_tileaa.ptr<f32, 1 : i32>, {_FOUR}>"
    tile = f"tensor<128xf32, {_FOUR}>"
    type_ = tile if given == "tile" else pointers
    line = (
        f"%ps = ub.poison : {pointers}\n%x = ub.poison : {type_}\n"
        '%y = "nv_tileas.load_rest"(%ps, %x) {operandSegmentSizes = array<i32: 1, 0, 0, 1>, '
        f"registers = array<i32: {registers}>, sources = array<i32: {sources}>}} : "
        f"({pointers}, {type_}) -> {tile}"
    )
    assert refusal(line) == f"'nv_tileas.load_rest' op {text.format(tile)}"


def test_a_tile_without_a_layout_has_no_registers() -> None:
    line = (
        "%ps = ub.poison : tensor<4x!nv_tileaa.ptr<f32, 1 : i32>>\n"
        '%y = "nv_tileas.load_rest"(%ps) {operandSegmentSizes = array<i32: 1, 0, 0, 0>, '
        "registers = array<i32>, sources = array<i32>} : "
        "(tensor<4x!nv_tileaa.ptr<f32, 1 : i32>>) -> tensor<4xf32>"
    )
    assert refusal(line) == (
        "'nv_tileas.load_rest' op expects a tile with a layout, but got tensor<4xf32>"
    )


def test_folds_across_warps_have_a_buffer_for_each_tile() -> None:
    sizes = ", ".join(["1", *["0"] * 31])
    results = ", ".join(["1", *["0"] * 15])
    fold = (
        '%x = "nv_tileas.reduce_across_warps"(%d) ({^bb0(%a: f32, %b: f32): '
        '"nv_tileas.yield"(%a) : (f32) -> ()}) {axis = 0 : i32, identities = [0.0 : f32], '
        f"operandSegmentSizes = array<i32: {sizes}>, "
        f"resultSegmentSizes = array<i32: {results}>}} : (tensor<32xf32, #a>) -> f32"
    )
    assert refusal(fold) == "'nv_tileas.reduce_across_warps' op expects 1 buffers, but got 0"
