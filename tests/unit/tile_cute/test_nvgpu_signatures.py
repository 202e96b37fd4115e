"""Every operation of cute_nvgpu: accepted with what it takes, refused with anything else."""

from __future__ import annotations

import pytest
from tile_cute.atoms import mma_rows
from tile_cute.dialect import load_nvgpu
from tile_cute.dialect.nvgpu_ops import OPERATIONS
from tile_cute.dialect.nvgpu_signatures import SIGNATURES

from tile_core.mlir import ir

SMEM = '!cute.memref<f16, "smem", "(64,64):(64,1)">'
GMEM = '!cute.memref<f16, "gmem", "(64,64):(64,1)">'
RMEM = '!cute.memref<f32, "rmem", "(8,8):(8,1)">'
TMEM = '!cute.memref<f32, "tmem", "(128,64):(64,1)">'
POINTER = '!cute.ptr<f16, "smem", 128 : i64>'
TILED = '!cute_nvgpu.tma_descriptor_tiled<"f16", "64x64", "128B">'
IM2COL = '!cute_nvgpu.tma_descriptor_im2col<"f16", "64x64", "128B">'
VIEW = f"!cute_nvgpu.smem_desc_view<{SMEM}, " + '!cute.layout<"4:1">>'
LOAD = "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
STORE = "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"
REDUCE = "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group"
S2T = "tcgen05.cp.cta_group::1.128x256b"
TMEM_LOAD = "tcgen05.ld.sync.aligned.32x32b.x8.b32"
CP_ASYNC = "cp.async.ca.shared.global"
MMA = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"


def atom(instruction: str) -> str:
    return f'!cute_nvgpu.atom<"{instruction}">'


#: Operation: (operand types, result types, attributes).
LEGAL: dict[str, tuple[list[str], list[str], str]] = {
    "arch_copy_sm80_cp_async": (["i32", GMEM], [], f'atom = "{CP_ASYNC}"'),
    "arch_copy_sm100_copy_s2t": (["i32", "i64"], [], f'atom = "{S2T}"'),
    "arch_copy_sm100_tma_load": ([SMEM, TILED, "i32", "i32", "i32"], [], f'atom = "{LOAD}"'),
    "arch_copy_sm100_tma_store": ([TILED, SMEM, "i32", "i32"], [], f'atom = "{STORE}"'),
    "arch_copy_sm100_tma_reduce": ([TILED, SMEM, "i32", "i32"], [], f'atom = "{REDUCE}"'),
    "arch_alloc_rmem": ([], [RMEM], ""),
    "arch_alloc_smem": ([], [SMEM], ""),
    "arch_get_dyn_smem": ([], [POINTER], ""),
    "arch_get_dyn_smem_size": ([], ["i32"], ""),
    "arch_make_warp_uniform": (["i32"], ["i32"], ""),
    "arch_prefetch_tma_desc": ([TILED], [], ""),
    "arch_sm100_alloc_tmem": (["i32", "i32"], [], ""),
    "arch_sm100_dealloc_tmem": ([TMEM, "i32"], [], ""),
    "arch_sm100_relinquish_tmem_alloc_permit": ([], [], ""),
    "arch_sm100_retrieve_tmem_ptr": (["i32"], ["i32"], ""),
    "atom_get_value": ([atom(MMA)], ["i32"], ""),
    "atom_get_copy_s2t_smem_desc_view": ([atom(S2T), SMEM], [VIEW], ""),
    "atom_make_exec_tma": ([atom(LOAD), "i32"], [atom(LOAD)], ""),
    "atom_make_non_exec_tiled_tma_load": ([TILED], [atom(LOAD)], ""),
    "atom_make_non_exec_tiled_tma_store": ([TILED], [atom(STORE)], ""),
    "atom_make_non_exec_tiled_tma_reduce": ([TILED], [atom(REDUCE)], ""),
    "atom_make_tma_load": ([IM2COL, "i32"], [atom(LOAD)], ""),
    "atom_make_tma_store": ([TILED], [atom(STORE)], ""),
    "atom_make_tma_reduce": ([TILED], [atom(REDUCE)], ""),
    "atom_make_s2t_copy": (["i64"], [atom(S2T)], ""),
    "atom_make_tmem_copy": ([TMEM], [atom(TMEM_LOAD)], ""),
    "atom_tma_partition": ([atom(LOAD), SMEM], [SMEM], ""),
    "make_sm120_mma_bs": (["i32", "i32"], [atom(MMA)], ""),
    "make_tma_desc_tiled": ([GMEM], [TILED], ""),
    "make_tma_desc_tiled_at": ([GMEM, "i64"], [], f"map = {TILED}"),
    "make_tma_desc_im2col": ([GMEM], [IM2COL], ""),
    "make_tma_desc_im2col_at": ([GMEM, "i64"], [], ""),
    "prefetch_tma_desc": ([IM2COL], [], ""),
    "update_tma_desc": ([TILED, "i64"], [], 'field = "base"'),
    "copy_tma_desc": ([TILED, TILED], [], ""),
    "get_tma_desc_addr": ([TILED], ["i64"], ""),
    "cast_tma_desc_to_integer": ([TILED], ["i64"], ""),
    "get_grid_constant_pointer": ([TILED], ['!cute.ptr<f16, "generic", 64 : i64>'], ""),
}


def text_of(name: str, operands: list[str], results: list[str], attributes: str) -> str:
    made = "".join(f'  %{i} = "test.make"() : () -> {t}\n' for i, t in enumerate(operands))
    return made + _use(name, operands, results, attributes)


def _use(name: str, operands: list[str], results: list[str], attributes: str) -> str:
    names = ", ".join(f"%{i}" for i in range(len(operands)))
    head = "%r = " if results else ""
    return (
        f'  {head}"cute_nvgpu.{name}"({names}) {{{attributes}}} : ({", ".join(operands)}) -> '
        f"({', '.join(results)})\n"
    )


def refusal(text: str) -> str:
    """What is said of a module; empty if it is valid."""
    with ir.Context() as context, ir.Location.unknown():
        load_nvgpu()
        context.allow_unregistered_dialects = True
        try:
            module = ir.Module.parse(text)
        except ir.MLIRError as error:
            return str(error)
        again = ir.Module.parse(str(module))
        assert str(again) == str(module), "does not come back from its text"
        return ""


def test_all_have_a_signature_or_an_instruction() -> None:
    """Nothing accepts anything: what has no row names an instruction, which its check reads."""
    assert set(LEGAL) == set(SIGNATURES)
    rest = set(OPERATIONS) - set(SIGNATURES)
    assert all(name.startswith(("arch_mma_", "arch_copy_")) for name in rest), rest


@pytest.mark.parametrize("name", LEGAL)
def test_legal(name: str) -> None:
    assert refusal(text_of(name, *LEGAL[name])) == ""


def _wrong() -> list[tuple[str, str, int]]:
    """Each operand and each result of each operation, where not everything is right."""
    found = []
    for name, (operands, results) in SIGNATURES.items():
        kinds = [(k, "operand") for k in operands] + [(k, "result") for k in results]
        places: dict[str, int] = {"operand": 0, "result": 0}
        for kind, side in kinds:
            if kind != "any":
                found.append((name, side, places[side]))
            places[side] += 1
    return found


@pytest.mark.parametrize(("name", "side", "at"), _wrong())
def test_each_place_has_its_kind(name: str, side: str, at: int) -> None:
    operands, results, attributes = LEGAL[name]
    changed = list(operands if side == "operand" else results)
    if at >= len(changed):  # one that may be missing
        changed.append("")
    changed[at] = "vector<3xf64>"
    if side == "operand":
        operands = changed
    else:
        results = changed
    said = refusal(text_of(name, operands, results, attributes))
    assert f"'cute_nvgpu.{name}' op expects" in said
    assert "but got vector<3xf64>" in said


@pytest.mark.parametrize(
    ("name", "operands", "results", "attributes", "words"),
    [
        ("arch_copy_sm100_tma_load", [SMEM, TILED, "i32", "i32", "i32"], [],
         f'atom = "{LOAD}.multicast::cluster"',
         "missing or invalid num_multicast for a multicast TMA load"),
        ("atom_tma_partition", [atom(MMA), SMEM], [SMEM], "", "invalid operand types, got"),
        ("atom_tma_partition", [atom(LOAD), "i32"], [SMEM], "", "invalid operand types, got"),
        ("atom_tma_partition", [atom(LOAD), SMEM], [GMEM], "",
         "Failed to construct the TMA tensor type of"),
        ("arch_copy_sm100_tma_load", [SMEM, TILED, "i32", "i32"], [],
         f'atom = "{LOAD}.multicast::cluster"', "expects 2 coordinates"),
        ("arch_copy_sm100_tma_load", [SMEM, TILED, "i32", "i32"], [], f'atom = "{LOAD}"',
         "expects 2 coordinates, but got 1"),
        ("arch_copy_sm100_tma_store", [TILED, SMEM, "i32", "i32", "i32"], [], f'atom = "{STORE}"',
         "expects 2 coordinates, but got 3"),
        ("arch_copy_sm100_tma_store", [TILED, SMEM, "i32", "i32"], [], f'atom = "{LOAD}"',
         "is no tma store instruction"),
        ("arch_make_warp_uniform", ["i32"], ["i64"], "", "expects the result to be i32"),
        ("atom_make_exec_tma", [atom(LOAD)], [atom(LOAD)], "", "expects a barrier for a load"),
        ("atom_make_exec_tma", [atom(STORE), "i32"], [atom(STORE)], "", "and none for a store"),
        ("atom_make_exec_tma", [atom(LOAD), "i32"], [atom(STORE)], "", "expects the result to be"),
        ("make_tma_desc_tiled", [GMEM], [TILED.replace("f16", "f32")], "",
         "expects a tensor map of f16"),
        ("update_tma_desc", [TILED, "i64"], [], "", "expects 'field'"),
        ("update_tma_desc", [TILED, "i64"], [], 'field = "swizzle"',
         "TMA descriptor field is not device-mutable"),
        ("update_tma_desc", [TILED, "i64"], [], 'field = "stride", axis = 2 : i32',
         "expects an axis of the map's 2, but got 2"),
        ("make_tma_desc_tiled_at", [GMEM, "i64"], [], "", "expects 'map', the type of the tensor"),
        ("make_tma_desc_tiled_at", [GMEM, "i64"], [], "map = i32", "expects a tensor map of elem"),
        ("make_tma_desc_tiled_at", [GMEM, "i64"], [], f"map = {TILED.replace('f16', 'f32')}",
         "expects a tensor map of f16, but got one of f32"),
    ],
)  # fmt: skip
def test_relations(
    name: str, operands: list[str], results: list[str], attributes: str, words: str
) -> None:
    assert words in refusal(text_of(name, operands, results, attributes))


@pytest.mark.parametrize(("columns", "good"), [(32, True), (512, True), (16, False), (48, False),
                                               (1024, False)])  # fmt: skip
def test_columns_of_tensor_memory(columns: int, good: bool) -> None:
    text = f'%0 = "test.make"() : () -> i32\n%1 = arith.constant {columns} : i32\n'
    text += _use("arch_sm100_alloc_tmem", ["i32", "i32"], [], "")
    said = refusal(text)
    assert (said == "") == good
    assert good or f"expects a power of two from 32 to 512 columns, but got {columns}" in said


def _first(family: str, part: str = "") -> str:
    """An MMA instruction of the registry."""
    return next(
        one.instruction
        for row in mma_rows()
        for one in row.atoms()
        if one.family == family and part in one.instruction
    )


DESCRIPTORS = ["i32", "i64", "i64", "i32", "i1"]
INSTRUCTIONS = [
    ("arch_mma_sm89", _first("mma.sync", "f32.e4m3.e4m3"),
     ["vector<16xf8E4M3FN>", "vector<8xf8E4M3FN>", "vector<4xf32>"], ["vector<4xf32>"]),
    ("arch_mma_sm80_sparse", _first("mma.sp", "m16n8k32.row.col.f32.f16"),
     ["vector<8xf16>", "vector<8xf16>", "vector<4xf32>", "i32"], ["vector<4xf32>"]),
    ("arch_mma_sm100_umma_sparse", _first("tcgen05.sp"), [*DESCRIPTORS, "i32"], []),
    ("arch_mma_sm100_umma_block_scaled", _first("tcgen05.block_scale"),
     [*DESCRIPTORS, "i32", "i32"], []),
    ("arch_mma_sm100_umma_block_scaled_sparse", _first("tcgen05.sp.block_scale"),
     [*DESCRIPTORS, "i32", "i32", "i32"], []),
    ("arch_copy_sm100_tmem_store", "tcgen05.st.sync.aligned.32x32b.x8.b32",
     ["vector<8xi32>", "i32"], []),
]  # fmt: skip


@pytest.mark.parametrize(("name", "instruction", "operands", "results"), INSTRUCTIONS)
def test_instructions(name: str, instruction: str, operands: list[str], results: list[str]) -> None:
    """The instruction is taken with its operands, and no other one in its place."""
    assert refusal(text_of(name, operands, results, f'atom = "{instruction}"')) == ""
    other = (
        MMA
        if name.startswith("arch_copy")
        else "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16"
    )
    said = refusal(text_of(name, operands, results, f'atom = "{other}"'))
    assert "instruction" in said
    assert f"'cute_nvgpu.{name}' op" in said
