"""Tensor maps from the host: hidden parameters in PTX, the host object in the cubin."""

from __future__ import annotations

import json
import platform
import random
import re
import struct
import sys

import numpy as np
import pytest
from support.emit_kernels import context
from tile_cute.map_recipe import Apply, Argument, Constant, MapRecipe
from tile_nvptx.emit.cubin import CubinEmitter
from tile_nvptx.emit.llvm_ir import LlvmIrEmitter
from tile_nvptx.emit.ptx import PtxEmitter
from tile_nvptx.emit.ptx_parameters import Parameter, parameters_of, with_hidden
from tile_nvptx.host.object import HOST_TRIPLES, host_object
from tile_sim import Module, SimError
from tile_sim.peer.host import HostCode

from tile_core.diagnostics import CompileError
from tile_core.elf import Elf
from tile_core.mlir import ir
from tile_core.target import builtin_targets


def sections(data: bytes) -> dict[str, bytes]:
    return {section.name: section.data for section in Elf(data).sections}


MACHINES = {"x86_64-unknown-linux-gnu": 62, "aarch64-unknown-linux-gnu": 183}  # ELF's e_machine


def recipe(kernel: str = "k", parameter: int = 3) -> MapRecipe:
    stride = Apply("muli", 64, (Argument(1, 32), Constant(2)))
    return MapRecipe(
        kernel, parameter, "f16", Argument(0, 64), (Argument(1, 32), Argument(2, 32)), (stride,),
        (64, 128), "128B",
    )  # fmt: skip


def module(*recipes: MapRecipe) -> ir.Module:
    """A kernel that copies a word of its map to where its first argument points."""
    text = f"""
    gpu.module @kernels {{
      llvm.func @k(%a: !llvm.ptr<1>, %n: i32, %m: i32, %map: !llvm.ptr {{
          llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64, nvvm.grid_constant}})
        attributes {{nvvm.kernel, nvvm.reqntid = array<i32: 128>,
                    nv_tileas.tensor_maps = [{", ".join(json.dumps(r.to_json()) for r in recipes)}]
        }} {{
        %p = llvm.getelementptr %map[4] : (!llvm.ptr) -> !llvm.ptr, i8
        %x = llvm.load %p : !llvm.ptr -> i32
        llvm.store %x, %a : i32, !llvm.ptr<1>
        llvm.return
      }}
    }}"""
    return ir.Module.parse(text, ir.Context())


def ptx_of(*recipes: MapRecipe, target: str = "sm_90") -> str:
    cx = context(target)
    return PtxEmitter().emit(LlvmIrEmitter().emit(module(*recipes), cx), cx)


@pytest.mark.parametrize("target", list(builtin_targets()))
def test_ptxas_places_parameters_where_the_host_writes(target: str) -> None:
    cx = context(target)
    ptx = ptx_of(recipe(), target=target)
    assert ptx.count(".hidden .param .align 64 .b8 k_param_3[128]") == 1
    cubin = CubinEmitter().emit(ptx, cx)  # which compares with what ptxas says
    host = sections(cubin)[".nv.host"]
    assert host == host_object(ptx, cx.target, HOST_TRIPLES[0], 60)


@pytest.mark.parametrize("triple", HOST_TRIPLES)
def test_the_object_has_the_symbols_a_launch_looks_for(triple: str) -> None:
    ptx = ptx_of(recipe())
    made = CubinEmitter(host_triple=triple).emit(ptx, context())
    host = sections(made)[".nv.host"]
    assert int.from_bytes(host[18:20], "little") == MACHINES[triple]
    for symbol in (
        b"__CUDA_TILEIR_CALLBACKS\0",
        b"__CUDA_TILEIR_ON_PRE_LOAD\0",
        b"__CUDA_TILEIR_FUNC_CALLBACKS\0",
        b"__CUDA_TILEIR_FUNC_ON_ARGUMENTS_CHANGE_0\0",
        b"__CUDA_TILEIR_FUNC_NAME_0\0",
    ):
        assert symbol in host
    if "x86" in triple:  # the sections of NVIDIA's objects
        assert {".ltext", ".lrodata", ".lbss", ".data.rel.ro"} <= sections(host).keys()
        assert sections(host)[".lrodata"] == b"k\0"


def test_text_that_is_read_in_again_gives_the_same_cubin() -> None:
    ptx = ptx_of(recipe())
    assert CubinEmitter().emit(ptx, context()) == CubinEmitter().emit(ptx + "\n", context())


def test_a_kernel_without_maps_has_no_host_object() -> None:
    cubin = CubinEmitter().emit(ptx_of().replace(".param .align 64", ".param .align 16"), context())
    assert ".nv.host" not in sections(cubin)


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (recipe(parameter=9), "kernel k has no parameter 9"),
        (recipe(kernel="other"), "there is no kernel 'other'"),
    ],
)
def test_recipes_for_what_is_not_there(made: MapRecipe, message: str) -> None:
    with pytest.raises(CompileError, match=re.escape(message)):
        ptx_of(made)


def test_hidden_parameters_and_recipes_have_to_agree() -> None:
    ptx = with_hidden(ptx_of(recipe()), {"k": [2]})
    with pytest.raises(CompileError, match="hidden parameters and recipes of maps differ"):
        CubinEmitter().emit(ptx, context())


def test_a_comment_that_is_no_recipe_is_an_error() -> None:
    with pytest.raises(CompileError, match="no recipe of a tensor map"):
        CubinEmitter().emit(ptx_of(recipe()) + "// tensor-map {}\n", context())


def test_parameters_are_aligned_in_their_bank() -> None:
    head = ".visible .entry f(\n\t.param .u8 a,\n\t.param .u64 .ptr .global .align 1 b,\n"
    head += "\t.param .align 4 .b8 c[6],\n\t.hidden .param .align 64 .b8 d[128]\n)\n{\n"
    assert parameters_of(head, 0x210)["f"] == (
        Parameter(0, 1, False), Parameter(8, 8, False), Parameter(16, 6, False),
        Parameter(48, 128, True),
    )  # fmt: skip
    assert parameters_of(head, 0x380)["f"][-1].offset == 64


def test_a_parameter_of_unknown_size_is_an_error() -> None:
    with pytest.raises(CompileError, match="cannot tell the size"):
        parameters_of(".entry f(\n\t.param .texref t\n)\n{\n", 0)


HOST_RUNS_HERE = sys.platform.startswith("linux") and platform.machine() == "x86_64"


@pytest.mark.skipif(not HOST_RUNS_HERE, reason="the host code is for x86-64 Linux")
@pytest.mark.parametrize("target", ["sm_90", "sm_100"])
def test_the_callback_writes_what_the_recipe_says(target: str) -> None:
    ptx = ptx_of(recipe(), target=target)
    host = HostCode(sections(CubinEmitter().emit(ptx, context(target)))[".nv.host"])
    placed = parameters_of(ptx, builtin_targets()[target].parameter_base)["k"]
    draw = random.Random(target)
    for _ in range(50):
        values = [draw.getrandbits(64), *(draw.getrandbits(draw.randint(1, 32)) for _ in "nm")]
        before = struct.pack("<QII", *values).ljust(placed[-1].offset + 128, b"\0")
        after = host.call("k", before)
        expected = recipe().words(lambda argument: values[argument.index])  # noqa: B023
        assert struct.unpack_from("<16Q", after, placed[-1].offset) == (*expected, *[0] * 8)
        assert after[: placed[-1].offset] == before[: placed[-1].offset]


@pytest.mark.skipif(not HOST_RUNS_HERE, reason="the host code is for x86-64 Linux")
def test_the_callback_joins_dimensions_where_the_recipe_does() -> None:
    """Launches with one run along 16 x 32 elements, and with almost one."""
    rows = Apply("muli", 64, (Argument(2, 32), Constant(1)))
    made = MapRecipe(
        "k", 3, "u8", Argument(0, 64), (Argument(1, 32), Constant(32), Argument(2, 32)),
        (Constant(16), rows), (16, 32, 2), joined=2,
    )  # fmt: skip
    ptx = ptx_of(made)
    host = HostCode(sections(CubinEmitter().emit(ptx, context()))[".nv.host"])
    placed = parameters_of(ptx, builtin_targets()["sm_90"].parameter_base)["k"]
    seen: set[int] = set()
    for values in [(4096, n, m) for n in (0, 15, 16, 17) for m in (0, 16, 512, 1 << 20)]:
        before = struct.pack("<QII", *values).ljust(placed[-1].offset + 128, b"\0")
        after = host.call("k", before)
        expected = made.words(lambda argument: values[argument.index])  # noqa: B023
        assert struct.unpack_from("<16Q", after, placed[-1].offset) == (*expected, *[0] * 8)
        seen.add(expected[7] & 0xFF)
    assert len(seen) == 2  # of the box's second dimension: 32 rows, and 2


COPY = """
gpu.module @kernels {
  llvm.mlir.global internal @smem() {addr_space = 3 : i32, alignment = 128 : i64} :
    !llvm.array<4112 x i8>
  llvm.func @k(%%a: !llvm.ptr<1>, %%n: i32, %%m: i32, %%out: !llvm.ptr<1>, %%map: !llvm.ptr {
      llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64, nvvm.grid_constant})
    attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>, nv_tileas.tensor_maps = [%s]} {
    %%smem = llvm.mlir.addressof @smem : !llvm.ptr<3>
    %%bar = llvm.getelementptr %%smem[4096] : (!llvm.ptr<3>) -> !llvm.ptr<3>, i8
    %%one = llvm.mlir.constant(1 : i32) : i32
    %%bytes = llvm.mlir.constant(4096 : i32) : i32
    %%zero = llvm.mlir.constant(0 : i32) : i32
    %%t = nvvm.read.ptx.sreg.tid.x : i32
    %%first = llvm.icmp "eq" %%t, %%zero : i32
    llvm.cond_br %%first, ^load, ^join
  ^load:
    llvm.inline_asm has_side_effects "mbarrier.init.shared.b64 [$0], 1; fence.mbarrier_init.release.cluster; mbarrier.arrive.expect_tx.shared.b64 _, [$0], $1; cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [$2], [$3, {$4, $4}], [$0];", "r,r,r,l,r" %%bar, %%bytes, %%smem, %%map, %%zero : (!llvm.ptr<3>, i32, !llvm.ptr<3>, !llvm.ptr, i32) -> ()
    llvm.br ^join
  ^join:
    nvvm.barrier
    llvm.inline_asm has_side_effects "{ .reg .pred p; again: mbarrier.try_wait.parity.shared.b64 p, [$0], 0; @!p bra again; }", "r" %%bar : (!llvm.ptr<3>) -> ()
    %%x = llvm.load %%smem {alignment = 4 : i64} : !llvm.ptr<3> -> i32
    %%place = llvm.getelementptr %%out[%%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %%from = llvm.getelementptr %%smem[%%t] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %%y = llvm.load %%from {alignment = 4 : i64} : !llvm.ptr<3> -> i32
    llvm.store %%y, %%place : i32, !llvm.ptr<1>
    llvm.return
  }
}"""  # noqa: E501


def test_a_kernel_copies_by_the_map_that_its_recipe_makes() -> None:
    stride = Apply("muli", 64, (Argument(1, 32), Constant(4)))
    made = MapRecipe(
        "k", 4, "f32", Argument(0, 64), (Argument(1, 32), Argument(2, 32)), (stride,), (32, 32)
    )
    cx = context("sm_90")
    source = ir.Module.parse(COPY % json.dumps(made.to_json()), ir.Context())
    ptx = PtxEmitter().emit(LlvmIrEmitter().emit(source, cx), cx)
    array = np.arange(3 * 24, dtype=np.float32).reshape(3, 24)  # smaller than the box
    out = np.full(32, -1, np.float32)
    report = Module(ptx).launch(
        "k", (1, 1, 1), (32, 1, 1), [array, 24, 3, out], check=True, schedule="late"
    )
    assert not report.findings
    np.testing.assert_array_equal(out, [*array[0], *[0] * 8])


def test_ptx_whose_recipe_is_gone_cannot_be_launched() -> None:
    ptx = ptx_of(recipe()).replace('"parameter":3', '"parameter":2')
    with pytest.raises(SimError, match="hidden parameters and recipes differ"):
        Module(ptx).launch("k", (1, 1, 1), (128, 1, 1), [np.zeros(4, np.uint32), 1, 1])
