"""What this distribution adds to tilec. Imports nothing heavy: hooks return lazy references."""

from __future__ import annotations

from collections.abc import Iterable

from tile_core.hookspecs import Lazy, LazyEmitter, hookimpl

TILE_SPEC_VERSION = 1

_TOOLS = Lazy("tools", "tile_nvptx.emit.toolchain:files", "ptxas and libdevice")


@hookimpl
def tile_passes() -> Iterable[Lazy]:
    """Passes of this package: name, where it lives, one line about it."""
    return (
        Lazy(
            "convert-tileas-to-llvm",
            "tile_nvptx.passes.convert_tileas:ConvertTileASToLLVM",
            "tiles to one vector per thread",
        ),
        Lazy(
            "convert-cute-and-cute-nvgpu-to-llvm",
            "tile_nvptx.passes.cute.convert:ConvertCute",
            "layouts, views and products of cute to addresses and instructions",
        ),
        Lazy(
            "convert-pipeline-to-nvvm",
            "tile_nvptx.passes.cutlass.convert:ConvertPipelineToNvvm",
            "pipes, barriers and tile schedulers of cutlass to mbarriers and arithmetic",
        ),
        Lazy(
            "nvptx-legalize-kernel",
            "tile_nvptx.passes.legalize_kernel:LegalizeKernel",
            "launch attributes of kernels",
        ),
        Lazy(
            "nvptx-compute-in-pieces",
            "tile_nvptx.passes.llvm.pieces:ComputeInPieces",
            "arithmetic on a few elements after the other",
        ),
        Lazy(
            "nvptx-check-convergence",
            "tile_nvptx.passes.check_convergence:CheckConvergence",
            "barriers that all threads reach",
        ),
        Lazy(
            "nvptx-verify",
            "tile_nvptx.passes.verify_nvvm:VerifyNvvm",
            "what LLVM would crash on or silently change",
        ),
        Lazy(
            "nv-inline-must",
            "tile_nvptx.passes.llvm.inline_must:InlineMust",
            "functions that have to be inlined",
        ),
        Lazy(
            "ipmsp",
            "tile_nvptx.passes.llvm.memory_spaces:InterproceduralMemorySpaces",
            "address spaces of pointers that functions take",
        ),
        Lazy(
            "dead-sync-elim",
            "tile_nvptx.passes.llvm.dead_sync:DeadSyncElim",
            "barriers across which threads exchange nothing",
        ),
        Lazy(
            "math-to-libdevice",
            "tile_nvptx.passes.llvm.libdevice:MathToLibdevice",
            "functions that LLVM has no code for, as calls of libdevice",
        ),
        Lazy(
            "dedup-wait-groups",
            "tile_nvptx.passes.llvm.wait_groups:DedupWaitGroups",
            "waits for groups that other waits make superfluous",
        ),
        Lazy(
            "printf-lowering",
            "tile_nvptx.passes.llvm.printf:PrintfLowering",
            "calls of printf become calls of vprintf",
        ),
        Lazy(
            "kernel-info",
            "tile_nvptx.passes.llvm.kernel_info:KernelInfo",
            "what kernels are made of, as remarks",
        ),
    )


@hookimpl
def tile_emitters() -> Iterable[LazyEmitter]:
    """The chain from the last MLIR to a cubin."""
    return (
        LazyEmitter(
            "llvm-ir",
            "tile_nvptx.emit.llvm_ir:LlvmIrEmitter",
            "LLVM IR text of the gpu.module",
            consumes="mlir",
            produces="llvm",
            empty=Lazy("empty", "tile_nvptx.emit.empty:llvm_ir"),
        ),
        LazyEmitter(
            "ptx",
            "tile_nvptx.emit.ptx:PtxEmitter",
            "LLVM optimisation and NVPTX code generation, in a worker process",
            consumes="llvm",
            produces="ptx",
            tools=_TOOLS,
        ),
        LazyEmitter(
            "cubin",
            "tile_nvptx.emit.cubin:CubinEmitter",
            "ptxas",
            consumes="ptx",
            produces="cubin",
            tools=_TOOLS,
        ),
        # In no chain: whoever asks for what they make gets them behind it.
        LazyEmitter(
            "sass",
            "tile_nvptx.emit.listing:SassEmitter",
            "SASS text of the cubin, by nvdisasm or cuobjdump",
            consumes="cubin",
            produces="sass",
            tools=_TOOLS,
        ),
        LazyEmitter(
            "object",
            "tile_nvptx.emit.embedded:ObjectEmitter",
            "a relocatable object of the host that holds the cubin",
            consumes="cubin",
            produces="obj",
        ),
    )


@hookimpl
def tile_checks() -> Iterable[Lazy]:
    """What `tilec doctor` looks at."""
    return (Lazy("nvptx", "tile_nvptx.emit.checks:check_toolchain", "LLVM, ptxas, libdevice"),)


@hookimpl
def tile_messages() -> Iterable[Lazy]:
    return (Lazy("nvptx", "tile_nvptx:messages.toml", "registers, ptxas"),)
