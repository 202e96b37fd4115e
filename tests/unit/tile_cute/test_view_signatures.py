"""cute's operations on pointers, tuples and tiled instructions: what they take, and what not."""

from __future__ import annotations

import pytest
from tile_cute.dialect.view_ops import OPERATIONS
from tile_cute.dialect.view_signatures import SIGNATURES
from unit.tile_cute.test_nvgpu_signatures import CP_ASYNC, GMEM, MMA, RMEM, SMEM, atom, refusal

PTR = '!cute.ptr<f16, "smem", 16 : i64>'
TUPLE = '!cute.tuple<"i32,i32">'
TILED_MMA = f'!cute.tiled_mma<"{MMA}", "(2,2,1):(1,2,4)", "(32,16,16)">'
TILED_COPY = f'!cute.tiled_copy<"{CP_ASYNC}", "((4,8),8):((64,1),8)", "(8,32)">'
IN_GMEM = '!cute.memref<f16, "gmem", "(16,64):(64,1)">'
IN_SMEM = '!cute.memref<f16, "smem", "(16,64):(72,1)">'
OF_GMEM = '!cute.memref<f16, "gmem", "(8,2,2):(1,512,32)">'
OF_SMEM = '!cute.memref<f16, "smem", "(8,2,2):(1,576,32)">'
OPERAND = '!cute.memref<f16, "smem", "(32,16):(16,1)">'
PART = '!cute.memref<f16, "smem", "((2,2,2),1,1):((1,128,8),0,0)">'
FRAGMENT = '!cute.memref<f16, "rmem", "(8,2,2):(1,8,16)">'
LAYOUT = '!cute.layout<"(32,4):(4,1)">'
SHAPE = '!cute.shape<"(32,16)">'
SWIZZLED = '!cute.memref<f16, "smem", "S<3,3,3> o 0 o (64,64):(64,1)">'
ITERATOR = f'!cute_nvgpu.smem_desc_view<{SWIZZLED}, !cute.layout<"1:0">>'
DESCRIPTOR = '!cute_nvgpu.smem_desc<"sm90", "K", "128B">'
DIVISOR = "!cute.fast_divmod_divisor<32 : i32>"

LEGAL: dict[str, tuple[list[str], list[str]]] = {
    "get_iter": ([SMEM], [PTR]),
    "add_offset": ([PTR, "i32"], [PTR]),
    "recast_iter": ([PTR], [PTR.replace("f16", "f32")]),
    "inttoptr": (["i64"], [PTR]),
    "ptrtoint": ([PTR], ["i64"]),
    "make_tuple": (["i32", "i32"], [TUPLE]),
    "unpack_tuple": ([TUPLE], ["i32", "i32"]),
    "ptr_store": (["f16", PTR], []),
    "make_atom": (["i32"], [atom(MMA)]),
    "make_tiled_mma": ([atom(MMA)], [TILED_MMA]),
    "make_tiled_copy": ([atom(CP_ASYNC), LAYOUT], [TILED_COPY]),
    "tiled_mma_partition": ([TILED_MMA, OPERAND, "i32"], [PART]),
    "tiled_mma_partition_shape": ([TILED_MMA, SHAPE], ['!cute.shape<"((2,2,2),1,1)">']),
    "tiled_copy_partition_s": ([TILED_COPY, IN_GMEM, "i32"], [OF_GMEM]),
    "tiled_copy_partition_d": ([TILED_COPY, IN_SMEM, "i32"], [OF_SMEM]),
    "tiled_copy_retile": ([TILED_COPY, FRAGMENT], [FRAGMENT]),
    "copy_atom_call": ([atom(CP_ASYNC), GMEM, SMEM], []),
    "prefetch": ([atom(CP_ASYNC), GMEM], []),
    "prefetch_atom_call": ([atom(CP_ASYNC), GMEM], []),
    "make_desc_iter": ([SWIZZLED], [ITERATOR]),
    "deref_desc_iter": ([ITERATOR], [DESCRIPTOR]),
    "fast_divmod_create_divisor": (["i32"], [DIVISOR]),
    "fast_divmod_make_divisor": (["i32"], [DIVISOR]),
    "fast_divmod_get_divisor": ([DIVISOR], ["i32"]),
    "fast_divmod_divide": (["i32", DIVISOR], ["i32"]),
}

#: What operations cannot be without.
ATTRIBUTES: dict[str, str] = dict.fromkeys(
    ("tiled_mma_partition", "tiled_mma_partition_shape"), ' {operand = "A"}'
)


def text_of(name: str, operands: list[str], results: list[str]) -> str:
    made = "".join(f'  %{i} = "test.make"() : () -> {t}\n' for i, t in enumerate(operands))
    names = ", ".join(f"%{i}" for i in range(len(operands)))
    head = f"%r:{len(results)} = " if results else ""
    types = f"({', '.join(operands)}) -> ({', '.join(results)})"
    return f'{made}  {head}"cute.{name}"({names}){ATTRIBUTES.get(name, "")} : {types}\n'


def test_all_are_there() -> None:
    assert set(LEGAL) == set(SIGNATURES) <= set(OPERATIONS)


@pytest.mark.parametrize("name", LEGAL)
def test_legal(name: str) -> None:
    assert refusal(text_of(name, *LEGAL[name])) == ""


@pytest.mark.parametrize(
    ("name", "side", "at"),
    [
        (name, side, at)
        for name, kinds in SIGNATURES.items()
        for side, given in enumerate(kinds)
        for at, kind in enumerate(given)
        if not kind.startswith("any")
    ],
)
def test_each_place_has_its_kind(name: str, side: int, at: int) -> None:
    sides = [list(types) for types in LEGAL[name]]
    sides[side][at] = "vector<3xf64>"
    said = refusal(text_of(name, *sides))
    assert f"'cute.{name}' op expects" in said
    assert "but got vector<3xf64>" in said


@pytest.mark.parametrize(
    ("name", "operands", "results", "words"),
    [
        ("make_desc_iter", [SMEM], [ITERATOR], "expects a smem_desc_view of its operand"),
        ("make_desc_iter", [SMEM], [ITERATOR.replace(SWIZZLED, SMEM)], "Not a canonical GMMA_K"),
        (
            "deref_desc_iter",
            [ITERATOR],
            [DESCRIPTOR.replace('"K"', '"MN"')],
            "expects a descriptor of major K and swizzle 128B",
        ),
        ("get_iter", [SMEM], [PTR.replace("smem", "gmem")], "expects a pointer to f16 in smem"),
        ("add_offset", [PTR, "i32"], [PTR.replace("f16", "f32")], "expects a pointer to f16"),
        ("recast_iter", [PTR], [PTR.replace("smem", "gmem")], "cannot recast a pointer in smem"),
        ("ptr_store", ["f32", PTR], [], "stores f32 through a pointer to f16"),
        ("copy_atom_call", [atom(CP_ASYNC), GMEM, RMEM], [], "expects equal sizes"),
        ("make_tiled_mma", [atom(CP_ASYNC)], [TILED_MMA], "expects a result that repeats"),
        ("tiled_copy_partition_s", [TILED_COPY, IN_GMEM, "i32"], [IN_GMEM], "makes !cute.memref"),
        (
            "tiled_copy_partition_s",
            [TILED_COPY, IN_GMEM.replace("(64,1)", "(1,16)"), "i32"],
            [OF_GMEM],
            "(static strides must match)",
        ),
        (
            "tiled_copy_partition_d",
            [TILED_COPY, IN_SMEM.replace("64)", "48)"), "i32"],
            [OF_SMEM],
            "failed to perform a valid division",
        ),
        ("tiled_copy_retile", [TILED_COPY, SMEM], [FRAGMENT], "expects a fragment in registers"),
        ("tiled_copy_retile", [TILED_COPY, FRAGMENT], [RMEM], "makes !cute.memref"),
        ("tiled_mma_partition", [TILED_MMA, OPERAND, "i32"], [OPERAND], "makes !cute.memref"),
        ("tiled_mma_partition_shape", [TILED_MMA, SHAPE], [SHAPE], "makes !cute.shape"),
    ],
)
def test_relations(name: str, operands: list[str], results: list[str], words: str) -> None:
    assert words in refusal(text_of(name, operands, results))


MEMORY = [
    ("memref_alloc_smem", [], [SMEM], ""),
    ("memref_alloc_smem", [], [GMEM], "allocates smem, but the result is in gmem"),
    ("memref_store", ["f16", SMEM, "i32", "i32"], [], ""),
    ("memref_store", ["f32", SMEM, "i32", "i32"], [], "accesses elements of type f16"),
    ("memref_store", ["f16", SMEM, "i32"], [], "expects 2 coordinates"),
    ("memref_store_vec", ["vector<64xf32>", RMEM], [], ""),
    ("memref_store_vec", ["vector<8xf32>", RMEM], [], "expects a vector of 64 elements"),
]


@pytest.mark.parametrize(("name", "operands", "results", "words"), MEMORY)
def test_memory(name: str, operands: list[str], results: list[str], words: str) -> None:
    said = refusal(text_of(name, operands, results))
    assert (words in said) if words else said == ""


@pytest.mark.parametrize(
    ("attributes", "words"),
    [
        ("k = 64 : i32", "expects an element of"),
        ("mn = -1 : i32", "expects an element of"),
        ("k = 4 : i32", "begins 8 bytes into"),
    ],
)
def test_parts_of_descriptors(attributes: str, words: str) -> None:
    text = text_of("deref_desc_iter", [ITERATOR], [DESCRIPTOR])
    assert words in refusal(text.replace('"(%0) :', f'"(%0) {{{attributes}}} :'))
