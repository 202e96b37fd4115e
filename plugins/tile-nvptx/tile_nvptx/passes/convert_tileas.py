"""convert-tileas-to-llvm: from tiles to what each thread does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tile_tileas.analysis.buffers import allocated_bytes
from tile_tileas.dialect.tma import TmaDescType
from tile_tileas.kernel_spec import num_ctas, num_warps

from tile_core.convert import Conversion
from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, error_at, option
from tile_core.walk import children
from tile_nvptx.emit.runtime import DEVICE_RUNTIME
from tile_nvptx.passes.tileas.device.helpers import Helpers
from tile_nvptx.passes.tileas.rules import rules
from tile_nvptx.passes.tileas.thread.agent import Agent
from tile_nvptx.passes.tileas.thread.alike import comparisons_alike
from tile_nvptx.passes.tileas.thread.shared import GLOBAL_SMEM
from tile_nvptx.passes.tileas.thread.state import KernelState
from tile_nvptx.passes.tileas.thread.types import convert_type

#: Shared memory starts at a row of banks, bytes; buffers may ask for more.
_ROW_OF_BANKS = 128
#: A tensor map as a parameter: 128 bytes that copies read where they are (CUDA driver API,
#: "CUtensorMap").
_BY_VALUE = "{llvm.byval = !llvm.array<128 x i8>, llvm.align = 64 : i64}"
#: How the names of our helpers and of libdevice's functions start.
_RESERVED = ("__tile_", "__nv_")


@dataclass(frozen=True)
class ConvertTileASToLLVM(Pass):
    """Convert tiles to one vector per thread, memory accesses to addresses and LLVM operations."""

    name = "convert-tileas-to-llvm"
    anchor = "gpu.module"

    fast_path: bool = option(True, "tiles inside their view take a path without bounds checks")

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        ruleset = rules.joined(cx.services.patterns(self.name))
        helpers = Helpers(op)
        shared, alignment = 0, _ROW_OF_BANKS
        _refuse_reserved_names(op)
        _define_globals(op)
        for func in children(op):
            if func.name != "func.func":
                continue
            alignment = max([alignment, *_alignments(func.regions[0])])
            maps = _tensor_maps(func)
            shared = max(shared, allocated_bytes(func))
            state = self._state(func, helpers)
            conversion = Conversion(
                ruleset, convert_type, ("cuda_tile", "nv_tileaa", "nv_tileas"), cx, state
            )
            conversion.run(func)
            for view in reversed(state.views):
                view.operation.erase()
            state.agent.anchor.erase()
            _finish(func, maps)
        if shared:
            _declare_shared(op, shared, alignment)

    def _state(self, func: ir.Operation, helpers: Helpers) -> KernelState:
        entry = func.regions[0].blocks[0]
        zero = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), 0)
        anchor = ir.Operation.create(
            "arith.constant",
            results=[zero.type],
            attributes={"value": zero},
            loc=func.location,
            ip=ir.InsertionPoint.at_block_begin(entry),
        )
        agent = Agent(anchor, num_warps(func))
        alike = comparisons_alike(func)
        return KernelState(agent, helpers, self.fast_path, num_ctas(func), alike)


def _define_globals(module: ir.Operation) -> None:
    found = [item for item in children(module) if item.name == "nv_tileaa.global"]
    if found:  # few programs have any
        from tile_nvptx.passes.tileas.rules.host import define_global

        for item in found:
            define_global(item)


def _refuse_reserved_names(module: ir.Operation) -> None:
    """Names that code refers to without having defined them would mean the program's own."""
    for item in children(module):
        if item.name not in ("func.func", "llvm.func", "nv_tileaa.global"):
            continue
        name = ir.StringAttr(item.attributes["sym_name"]).value
        if name == GLOBAL_SMEM or name in DEVICE_RUNTIME or name.startswith(_RESERVED):
            raise error_at(
                item,
                f"has the name '{name}', which is reserved for the compiler and for the device's "
                "runtime",
                hint="give it another name",
            )


def _alignments(region: ir.Region) -> Iterator[int]:
    """What buffers of shared memory ask for, in bytes."""
    for block in region.blocks:
        for op in block.operations:
            if op.operation.name == "nv_tileas.alloc_tensor":
                yield op.alignment.value
            for inner in op.regions:
                yield from _alignments(inner)


def _tensor_maps(func: ir.Operation) -> list[bool]:
    """Which parameters are tensor maps, passed by value."""
    return [isinstance(a.type, TmaDescType) for a in func.regions[0].blocks[0].arguments]


def _finish(func: ir.Operation, maps: list[bool]) -> None:
    """The signature now that arguments are LLVM's; `nvptx-legalize-kernel` does the rest."""
    types = [argument.type for argument in func.regions[0].blocks[0].arguments]
    func.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, []))
    if any(maps):
        by_value, none = ir.Attribute.parse(_BY_VALUE), ir.DictAttr.get({})
        func.attributes["arg_attrs"] = ir.ArrayAttr.get([by_value if m else none for m in maps])


def _declare_shared(module: ir.Operation, size: int, alignment: int) -> None:
    text = (
        f"llvm.mlir.global internal @{GLOBAL_SMEM}() "
        f"{{addr_space = 3 : i32, alignment = {alignment} : i64}} : !llvm.array<{size} x i8>"
    )
    block = module.regions[0].blocks[0]
    ir.InsertionPoint.at_block_begin(block).insert(ir.Operation.parse(text))
