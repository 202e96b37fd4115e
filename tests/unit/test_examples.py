"""The examples: every target, every level, right numbers."""

import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tile_nvptx.emit.ptxas import KernelResources

import tile_core

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))
import cases  # noqa: E402 # pyright: ignore[reportMissingImports] - beside the programs

TARGETS = (
    "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_103", "sm_110", "sm_120", "sm_121",
)  # fmt: skip
LEVELS = (0, 1, 2, 3)
SIMULATED = (("sm_80", 0), ("sm_90", 3), ("sm_120", 2))
#: Of `cases.LARGE`.
FEW = ("sm_80", "sm_90", "sm_120")
#: Bytes that are stored before a loop of which every thread has all registers, and read behind it:
#: where a tile goes; in the loop, one address of 8 bytes is read.
AROUND_LOOPS = {("attention_large_f16", "sm_120"): 24}
COMPILED = [
    (name, target, level)
    for name in cases.NAMES
    for target in (FEW if name in cases.LARGE else TARGETS)
    for level in (LEVELS[3:] if name in cases.LARGE else LEVELS)
]


@cache
def built(name: str, target: str, level: int) -> tuple[str, bytes, tuple[KernelResources, ...]]:
    """PTX, cubin and resources of one example."""
    made = tile_core.compile(cases.case(name).bytecode, target, opt_level=level, keep_stages=False)
    return str(made.stage("ptx")), made.cubin, made.metadata["cubin"]["kernels"]


def test_every_bytecode_file_has_a_case() -> None:
    assert {path.stem for path in cases.BYTECODE.glob("*.tileirbc")} == set(cases.NAMES)


@pytest.mark.parametrize(("name", "target", "level"), COMPILED)
def test_compiles_without_local_memory(name: str, target: str, level: int) -> None:
    ptx, cubin, kernels = built(name, target, level)
    assert cubin[:4] == b"\x7fELF"
    assert [kernel.name for kernel in kernels] == [name]
    if level == 3 and "cp.async.bulk.tensor" in ptx and target.startswith("sm_12"):
        # Before each copy by a tensor map, ptxas 13.5 stores zeros to 8 bytes of the stack there.
        assert (kernels[0].stack, kernels[0].spill_stores) in ((0, 0), (8, 0)), str(kernels[0])
    elif level == 3:
        spilt = max(kernels[0].stack, kernels[0].spill_stores, kernels[0].spill_loads)
        assert spilt <= AROUND_LOOPS.get((name, target), 0), str(kernels[0])
        assert ".local" not in ptx


@pytest.mark.parametrize("level", LEVELS[1:])  # -O0 takes the first legal layouts
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["vector_add_f32", "vector_add_f16"])
def test_vector_add_moves_16_bytes_at_a_time(name: str, target: str, level: int) -> None:
    ptx, _, _ = built(name, target, level)
    accesses = re.findall(r"\b(ld|st)\.global[\w.:]*?(?:\.v(\d))?\.[bfsu](\d+)\b", ptx)
    assert {kind for kind, _, _ in accesses} == {"ld", "st"}
    assert {int(count or 1) * int(width) for _, count, width in accesses} == {128}


@pytest.mark.parametrize(("target", "level"), SIMULATED)
@pytest.mark.parametrize("name", cases.NAMES)
def test_numbers_are_those_of_numpy(name: str, target: str, level: int) -> None:
    from tile_sim import Module

    ptx, _, _ = built(name, target, level)
    case = cases.case(name)
    (threads,) = re.findall(r"^\.reqntid (\d+)", ptx, re.MULTILINE)
    optimised = level == 3
    report = Module(ptx).launch(name, case.grid, (int(threads), 1, 1), case.flat, stats=optimised)
    assert case.errors() == []
    if optimised:
        assert report.cost is not None
        assert report.cost.total.bank_conflicts == 0


WIDE = ("layer_norm", "rms_norm", "saxpy_loop", "softmax", "transpose")


@pytest.mark.parametrize("name", [name for name in cases.NAMES if name.startswith(WIDE)])
def test_tiles_move_16_bytes_at_a_time(name: str) -> None:
    """Apart from single numbers, such as the statistics of a row."""
    ptx, _, _ = built(name, "sm_90", 3)
    accesses = re.findall(r"\b(ld|st)\.global[\w.:]*?\.v(\d)\.[bfsu](\d+)\b", ptx)
    copies = re.findall(r"\bcp\.async\.c[ag]\.shared[\w.:]*\s+\[[^]]*\], \[[^]]*\], (\d+)", ptx)
    assert {kind for kind, _, _ in accesses} | {"ld" for _ in copies} == {"ld", "st"}
    widths = {int(count) * int(width) for _, count, width in accesses}
    assert widths | {8 * int(size) for size in copies} == {128}


def test_large_products_read_matrices() -> None:
    ptx, _, _ = built("matmul_large_f16", "sm_80", 3)
    assert "mma.sync.aligned.m16n8k16" in ptx
    assert "ldmatrix.sync.aligned.m8n8.x4.shared" in ptx
    assert "ldmatrix.sync.aligned.m8n8.x4.trans.shared" in ptx
    assert "ld.shared" not in ptx.split("mma.sync")[1]  # between two products of the loop


def test_weights_of_attention_stay_in_registers() -> None:
    """The accumulator of the first product is the left operand of the second one as it is."""
    ptx, _, _ = built("attention_f16", "sm_80", 3)
    between = ptx.rsplit("ex2.approx", 1)[1].split("mma.sync")[0]
    assert "ldmatrix.sync.aligned.m8n8.x4.trans.shared" in between
    assert "ldmatrix.sync.aligned.m8n8.x4.shared" not in between
    assert "st.shared" not in between


def test_errors_are_seen() -> None:
    case = cases.case("vector_add_f32")
    (wanted,) = (e for e in case.expected if e is not None)
    output: Any = case.arguments[2]
    assert len(case.errors()) == 1
    output[...] = wanted
    assert case.errors() == []
    output[7] += 1e-3
    assert "first at (7,)" in case.errors()[0]


def test_compiling_twice_gives_the_same_bytes() -> None:
    first = built("softmax_f16", "sm_90", 3)
    built.cache_clear()
    assert built("softmax_f16", "sm_90", 3)[:2] == first[:2]
