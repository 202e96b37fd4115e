"""What is said about loads, stores, products and loops, and about what was not chosen."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
from support.tiles import registry

import tile_core
from tile_core.opt import OptJob, Selection, optimize
from tile_core.remarks import Remark

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "bytecode"
POINTER = "!nv_tileaa.ptr<f32, 1 : i32>"
TOKEN = "!nv_tileaa.mem_token"


@cache
def compiled(name: str, level: int) -> tile_core.Artifact:
    data = (EXAMPLES / f"{name}.tileirbc").read_bytes()
    return tile_core.compile(data, "sm_90", opt_level=level, registry=registry())


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("name", ["matmul_f16", "softmax_f32", "attention_f16", "fft_f32"])
def test_nothing_is_left_out(name: str, level: int) -> None:
    """Every load, store, product and loop of the source has a remark at its place."""
    made = compiled(name, level)
    kinds = {
        "load_view_tko": "LoadInstructionSelected",
        "load_ptr_tko": "LoadInstructionSelected",
        "store_view_tko": "StoreInstructionSelected",
        "store_ptr_tko": "StoreInstructionSelected",
        "mmaf": "MMA",
    }
    said = {remark.name for remark in made.remarks}
    text = str(made.stage("tileir"))
    used = {kinds[op] for op in kinds if re.search(rf"cuda_tile\.{op}\b", text)}
    assert used, text[:500]
    assert used <= said
    loops = len(re.findall(r"cuda_tile\.(?:for|loop)\b", text))
    assert len([r for r in made.remarks if r.name == "Loop"]) == loops
    assert len([r for r in made.remarks if r.name == "Registers"]) == 1


def test_a_product_without_tensor_cores_says_why() -> None:
    made = compiled("matmul_f32", 3)
    (product,) = [remark for remark in made.remarks if remark.name == "MMA"]
    assert (product.kind, product.category) == ("missed", "tensorcore")
    assert "no instruction for f32" in product.reasons[0]


def narrow(stride: str, divisor: int, vector_axis_stride: int = 1) -> Remark:
    """The remark on a load of 32x64 f32 out of a matrix with such strides."""
    dynamic = -(1 << 63)
    rows = stride if stride != "?" else str(dynamic)
    mem = f"!nv_tileaa.memref<f32, array<i64: 64, 64>, array<i64: {rows}, {vector_axis_stride}>>"
    view = f'!nv_tileaa.tiled_view<{mem}, array<i32: 32, 64>, array<i32: 0, 1>, "zero">'
    strides, types = ("", "") if stride != "?" else (", %s", ", i32")
    segments = "1, 0, 0" if stride != "?" else "1, 0, 1"
    text = f"""
func.func @f(%q: {POINTER}, %s: i32, %i: i32) {{
  %p = "nv_tileaa.assume"(%q) {{predicate = {{kind = "div_by", divisor = {divisor} : i64}}}}
    : ({POINTER}) -> {POINTER}
  %m = "nv_tileaa.make_memref"(%p{strides}) {{operandSegmentSizes = array<i32: {segments}>}}
    : ({POINTER}{types}) -> {mem}
  %v = "nv_tileaa.block_tile"(%m) : ({mem}) -> {view}
  %x:2 = "nv_tileas.tiled_load"(%v, %i, %i)
    {{mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 0>}}
    : ({view}, i32, i32) -> (tensor<32x64xf32>, {TOKEN})
  return
}}
"""
    job = OptJob(registry(), Selection(passes="tileas-plan-accesses", target="sm_90"), "t")
    (remark,) = optimize(text, 0, job).artifact.remarks
    return remark


def test_a_narrow_load_names_the_fact_that_is_missing() -> None:
    assert narrow("64", 4).reasons == (
        "alignment: the base address is only known to be a multiple of 4 bytes",
    )
    assert narrow("?", 16).reasons == (
        "alignment: the stride of axis 0 is only known to be a multiple of 4 bytes",
    )
    found = narrow("64", 16, 2)
    assert found.message == "Load is not vectorised"
    assert found.reasons == ("contiguity: no axis of the tile has stride 1 (axis 1: 2)",)
    assert "order=" in found.hint
    assert narrow("66", 16).message == "Load is only 2 elements wide"
