"""What operations on tensor memory, and waits for its products, refuse, in their words."""

from __future__ import annotations

import pytest
from support.functions import function

from tile_core.diagnostics import InputError

A = "offset=[[0,1],[0,2],[0,4],[0,8],[1,0],[2,0],[4,8],[8,0],[16,0],[32,0]] : 64x16"
C = "column=[[0,1],[0,2],[0,4]] row=[[1,0],[2,0],[4,0],[8,0],[0,0],[16,0],[32,0]] : 64x8"
B = "offset=[[1,0],[2,0],[4,0],[8,0],[0,1],[0,2],[8,4]] : 16x8"
ROWS = "[0,1],[0,2],[32,0],[64,0],[1,0],[2,0],[4,0],[8,0],[16,0]"
TURNED = "[1,0],[2,0],[0,32],[0,64],[0,1],[0,2],[0,4],[0,8],[0,16]"
PLACES = "[1,0],[2,0],[4,0],[8,0],[16,0],[0,0],[0,0]"
UPRIGHT = "[0,1],[0,2],[0,4],[0,8],[0,16],[0,0],[0,0]"
HEAD = f"""
#a = #nv_tileas.layout<"{A}">
#b = #nv_tileas.layout<"{B}">
#c = #nv_tileas.layout<"{C}">
#one = #nv_tileas.layout<": 1">
!a = !nv_tileas.buffer<tensor<64x16xf16, #a>, "shared", 1 : i32>
!b = !nv_tileas.buffer<tensor<16x8xf16, #b>, "shared", 1 : i32>
!c = !nv_tileas.buffer<tensor<64x8xf32, #c>, "tensor", 1 : i32>
!at = !nv_tileas.buffer<tensor<64x16xf16>, "tensor", 1 : i32>
!a4 = tensor<128x32xi8>
!b4 = tensor<32x8xi8>
!c4 = tensor<128x8xf32>
!sa4 = tensor<128x4xf8E8M0FNU>
!sb4 = tensor<4x128xf8E8M0FNU>
!word = !nv_tileas.buffer<tensor<1xi32, #one>, "shared", 1 : i32>
!bar = !nv_tileas.barrier<1 : i32, 1 : i32>
!ring = !nv_tileas.barrier<1 : i32, 3 : i32>
"""
HEAD += f"""
#sa = #nv_tileas.layout<"offset=[{ROWS}] : 128x4">
#sb = #nv_tileas.layout<"offset=[{TURNED}] : 4x128">
#ta = #nv_tileas.layout<"column=[[32,0],[64,0]] element=[[0,1],[0,2]] row=[{PLACES}] : 128x4">
#tb = #nv_tileas.layout<"column=[[0,32],[0,64]] element=[[1,0],[2,0]] row=[{UPRIGHT}] : 4x128">
!a8 = !nv_tileas.buffer<tensor<128x32xf8E4M3FN>, "shared", 1 : i32>
!b8 = !nv_tileas.buffer<tensor<32x8xf8E4M3FN>, "shared", 1 : i32>
!c8 = !nv_tileas.buffer<tensor<128x8xf32>, "tensor", 1 : i32>
!sa = !nv_tileas.buffer<tensor<128x4xf8E8M0FNU, #sa>, "shared", 1 : i32>
!sb = !nv_tileas.buffer<tensor<4x128xf8E8M0FNU, #sb>, "shared", 1 : i32>
!ta = !nv_tileas.buffer<tensor<128x4xf8E8M0FNU, #ta>, "tensor", 1 : i32>
!tb = !nv_tileas.buffer<tensor<4x128xf8E8M0FNU, #tb>, "tensor", 1 : i32>
"""
SUMS = f'!nv_tileas.buffer<tensor<64x8xf32, #nv_tileas.layout<"{C}">>, "tensor", 1 : i32>'
RIGHT = f'!nv_tileas.buffer<tensor<16x8xf16, #nv_tileas.layout<"{B}">>, "shared", 1 : i32>'
SCALES = (
    '!nv_tileas.buffer<tensor<128x4xf8E8M0FNU, #nv_tileas.layout<"column=[[32,0],[64,0]] '
    f'element=[[0,1],[0,2]] row=[{PLACES}] : 128x4">>, "tensor", 1 : i32>'
)
SCALED = "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale.scale_vec::1X.m128n8k32.f32.e4m3.e4m3"
NARROW = "tcgen05.mma.cta_group::1.kind::mxf4.block_scale.scale_vec::2X.m128n8k64.f32.e2m1.e2m1"
ATOM = "tcgen05.mma.cta_group::1.kind::f16.m64n8k16.f32.f16.f16"


def alloc(columns: int = 32, storage: str = "!word") -> str:
    given = "%w" if storage == "!word" else "%a"
    return f'"nv_tileas.alloc_tmem"({given}) {{columns = {columns} : i32}} : ({storage}) -> ()'


def address(storage: str = "!word", result: str = "i32") -> str:
    given = "%w" if storage == "!word" else "%a"
    return f'%x = "nv_tileas.tmem_address"({given}) : ({storage}) -> {result}'


def placed(column: int = 0, address: str = "i32", result: str = "!c") -> str:
    given = "%i" if address == "i32" else "%l"
    return (
        f'%x = "nv_tileas.tmem_buffer"({given}) {{column = {column} : i32}} : '
        f"({address}) -> {result}"
    )


def columns(source: str = "!c", result: str = "!c") -> str:
    given = source.replace("!", "%")
    return f'%x = "nv_tileas.tmem_columns"({given}) : ({source}) -> {result}'


def umma(operands: str = "%a, %b, %c, %f", types: str = "!a, !b, !c, i1", atom: str = ATOM) -> str:
    return f'"nv_tileas.umma"({operands}) {{atom = "{atom}"}} : ({types}) -> ()'


def scaled(
    scales: str = "%sa, %sb, %ta, %tb", types: str = "!sa, !sb, !ta, !tb", atom: str = SCALED
) -> str:
    return (
        f'"nv_tileas.umma_scaled"(%a8, %b8, %c8, %f, {scales}) {{atom = "{atom}"}} : '
        f"(!a8, !b8, !c8, i1, {types}) -> ()"
    )


def packed(a: str = "!a4", b: str = "!b4") -> str:
    """A product of numbers of four bits, two to a byte."""
    return (
        f'%x = "nv_tileas.dot"({a.replace("!", "%")}, {b.replace("!", "%")}, %c4, %sa4, %sb4) '
        f'{{atom = "{NARROW}", operandSegmentSizes = array<i32: 1, 1, 1, 1, 1>}} : '
        f"({a}, {b}, !c4, !sa4, !sb4) -> !c4"
    )


def turn(barrier: str = "%bar", type_: str = "!bar", result: str = "i32") -> str:
    return f'%x = "nv_tileas.barrier_turn"({barrier}) : ({type_}) -> {result}'


def following(type_: str = "!bar", stage: str = "i32", phase: str = "i32") -> str:
    barrier = "%bar" if type_ == "!bar" else "%a"
    return f'%n:2 = "nv_tileas.barrier_next"({barrier}) : ({type_}) -> ({stage}, {phase})'


PAIR = ATOM.replace("group::1", "group::2").replace("m64n8", "m256n32")
WAIT = '"nv_tileas.barrier_wait"(%bar, %i, %i) {pair} : (!bar, i32, i32) -> ()'
ARRIVE = '"nv_tileas.barrier_arrive"(%bar, %i) {by = "warp", kind = "tcgen05"} : (!bar, i32) -> ()'
TOLD = ARRIVE.replace("warp", "agent").replace('"tcgen05"', '"generic", pair')
VIEW = '%v = "nv_tileas.tmem_view"(%c, %i) : (!c, i32) -> !a'
AT = '%v = "nv_tileas.tmem_view"(%c, %l) : (!c, i64) -> !c'
TEAM = '%t = "nv_tileas.team"() {team = 1 : i32} : () -> i32'
WIDE = '%t = "nv_tileas.team"() {team = 2 : i32} : () -> i64'
FENCE = '"nv_tileas.tmem_fence"() {side = "between"} : () -> ()'
CASES = [
    (alloc(48), "expects a power of two from 32 to 512 columns, but got 48"),
    (alloc(1024), "expects a power of two from 32 to 512 columns, but got 1024"),
    (alloc(storage="!a"), "expects a buffer of one i32 in shared memory, but got !nv_tileas."),
    (address("!a"), "expects a buffer of one i32 in shared memory, but got !nv_tileas."),
    (address(result="i64"), "expects an address of i32, but got i64"),
    (VIEW, "expects one stage in tensor memory, but got !nv_tileas.buffer<"),
    (AT, "expects a column of i32, but got i64"),
    (TEAM, "expects several teams, but got 1"),
    (WIDE, "expects a number of i32, but got i64"),
    (placed(address="i64"), "expects an address of i32, but got i64"),
    (placed(result="!a"), "expects a buffer in tensor memory, but got !nv_tileas.buffer<"),
    (placed(508), "has no columns from 508 on for !nv_tileas.buffer<"),
    (FENCE, "expects a side of before, after, but got 'between'"),
    (
        umma("%a, %b, %b, %f", "!a, !b, !b, i1"),
        "expects B in shared memory and the accumulator in tensor memory",
    ),
    (
        umma("%a, %c, %c, %f", "!a, !c, !c, i1"),
        "expects B in shared memory and the accumulator in tensor memory",
    ),
    (
        scaled().replace("!a8, !b8", "!c8, !b8").replace("%a8", "%c8"),
        "expects A and B in shared memory and the accumulator in tensor memory",
    ),
    (umma("%b, %b, %c, %f", "!b, !b, !c, i1"), "cannot multiply [16, 8] by [16, 8] into [64, 8]"),
    (
        umma("%a, %b, %c, %i", "!a, !b, !c, i32"),
        "expects an i1 that says whether to accumulate, but got i32",
    ),
    (umma(atom="fma"), "expects an atom of tcgen05, but got 'fma'"),
    (umma(atom="none"), "expects an atom of tcgen05, but got 'none'"),
    (
        scaled("%ta, %sb, %ta, %tb", "!ta, !sb, !ta, !tb"),
        "expects scales in shared memory for all places of !nv_t",
    ),
    (
        scaled("%sa, %sb, %tb, %tb", "!sa, !sb, !tb, !tb"),
        "expects scales in shared memory for all places of !nv_t",
    ),
    (scaled("%sa, %sb, %i, %tb", "!sa, !sb, i32, !tb"), "expects a buffer, but got i32"),
    (
        scaled(atom=ATOM),
        f"expects scales with an atom that takes them, and no other, but got '{ATOM}'",
    ),
    (umma(atom=SCALED), "expects scales with an atom that takes them, and no other, but got"),
    (
        packed("!a8", "!b8"),
        "expects bytes of two elements and an f32 accumulator, but got f8E4M3FN, f8E4M3FN, f32",
    ),
    (turn("%ring", "!ring"), "expects a barrier of one stage, but got 3"),
    (turn("%w", "!word"), "expects a barrier, but got !nv_tileas.buffer<"),
    (turn(result="i64"), "expects a phase of i32, but got i64"),
    (following("!a"), "expects a barrier, but got !nv_tileas.buffer<"),
    (following(stage="i64"), "expects stage to be i32, but got i64"),
    (following(phase="i64"), "expects phase to be i32, but got i64"),
    (umma(atom=PAIR), "cannot multiply [64, 16] by [16, 8] into [64, 8]"),
    (
        packed().replace("{atom", "{blocks = 2 : i32, atom"),
        "expects blocks to be 2 and no block scales, but got 2 : i32",
    ),
    (columns(source="!ta", result="!c"), f"has fewer columns in {SCALES} than {SUMS} takes"),
    (columns(source="!b"), f"expects buffers in tensor memory, but got {RIGHT} and {SUMS}"),
    (columns(result="!b"), "expects buffers in tensor memory, but got"),
    (columns(result="i32"), "expects a buffer, but got i32"),
    (
        umma().replace("{atom", "{steps = array<i32: 1, 1>, atom"),
        "expects a first step and one behind the last, but got array<i32: 1, 1>",
    ),
    (umma().replace("{atom", "{steps, atom"), "expects a first step and one behind the last"),
    (WAIT, "expects a leader to wait for a pair"),
    (WAIT.replace("pair", "copier"), "expects a leader to wait in the place of another"),
    (TOLD, "expects products or warps to arrive for a pair, but got 'generic' by 'agent'"),
    (
        TOLD.replace("pair", "ctas = 2 : i32"),
        "expects products of one block to arrive for others, but got 'generic' by 'agent'",
    ),
    (ARRIVE, "expects one thread of the agent to arrive for its products, but got 'warp'"),
]
ARGUMENTS = "%a: !a, %b: !b, %c: !c, %w: !word, %bar: !bar, %ring: !ring, %i: i32, %l: i64, %f: i1"
ARGUMENTS += ", %a4: !a4, %b4: !b4, %c4: !c4, %sa4: !sa4, %sb4: !sb4"
ARGUMENTS += ", %at: !at, %a8: !a8, %b8: !b8, %c8: !c8, %sa: !sa, %sb: !sb, %ta: !ta, %tb: !tb"


@pytest.mark.parametrize(("body", "message"), CASES)
def test_refusals(body: str, message: str) -> None:
    text = f"{HEAD}func.func @f({ARGUMENTS}) {{\n{body}\nreturn\n}}"
    with pytest.raises(InputError) as caught, function(text):
        pass
    assert message in caught.value.message


HELD = umma("%at, %b, %c, %f", "!at, !b, !c, i1")
SOME = umma().replace("{atom", "{steps = array<i32: 0, 1>, atom")


@pytest.mark.parametrize(
    "body",
    [
        alloc(), address(), placed(504), columns(), umma(), HELD, SOME, scaled(), packed(), turn(),
        following(),
    ],
)  # fmt: skip
def test_what_is_right_is_taken(body: str) -> None:
    with function(f"{HEAD}func.func @f({ARGUMENTS}) {{\n{body}\nreturn\n}}"):
        pass
