"""Tensor maps from the host: hidden parameters in PTX, the host object in the cubin."""

from __future__ import annotations

import json
import re

import pytest
from support.emit_kernels import context
from tile_cute.map_recipe import Apply, Argument, Constant, MapRecipe
from tile_nvptx.emit.cubin import CubinEmitter
from tile_nvptx.emit.elf import sections
from tile_nvptx.emit.llvm_ir import LlvmIrEmitter
from tile_nvptx.emit.ptx import PtxEmitter
from tile_nvptx.emit.ptx_parameters import Parameter, parameters_of, with_hidden
from tile_nvptx.host.object import HOST_TRIPLES, host_object

from tile_core.diagnostics import CompileError
from tile_core.mlir import ir
from tile_core.target import builtin_targets

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
