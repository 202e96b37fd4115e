"""tileas-allocate-tensor-memory: the columns of buffers in tensor memory, taken once for a kernel.

A kernel takes all its columns when it begins and gives them back when it ends, so that blocks of
one multiprocessor wait for each other but never for ever.
"""

from __future__ import annotations

from dataclasses import dataclass

from tile_cute.atoms.records import TENSOR
from tile_cute.atoms.tensor_memory import COLUMNS

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, error_at
from tile_tileas.analysis.accumulators import made_by_pairs
from tile_tileas.analysis.buffers import lives_of
from tile_tileas.dialect.barriers import PAIR
from tile_tileas.dialect.tensor import LEAST_COLUMNS
from tile_tileas.materialize.exchange import Exchange
from tile_tileas.passes.allocate_shared import place
from tile_tileas.passes.convert_tileaa import occupancy


@dataclass(frozen=True)
class AllocateTensorMemory(Pass):
    """Give buffers in tensor memory their columns; take them at the start, give them back at the
    end. Buffers that do not live at once share columns.
    """

    name = "tileas-allocate-tensor-memory"
    anchor = "func.func"
    statistics = {"columns": "columns of tensor memory that the kernel takes"}

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        lives = lives_of(op, TENSOR)
        if not lives:
            return
        needed = place(lives, COLUMNS // occupancy(op))
        if needed > COLUMNS:
            needed = place(lives, 0)
        if needed > COLUMNS:
            worst = max(lives, key=lambda life: life.size)
            raise error_at(worst.op, f"allocated tmem out of resource: {needed} vs {COLUMNS}")
        columns = max(LEAST_COLUMNS, 1 << (needed - 1).bit_length())
        address = _take(op, columns, pair=made_by_pairs(op))
        for life in lives:
            at, i32 = Exchange(life.op), ir.IntegerType.get_signless(32)
            column = {"column": ir.IntegerAttr.get(i32, life.offset)}
            type_ = life.op.results[0].type
            made = at.create("nv_tileas.tmem_buffer", [address], [type_], column)
            life.op.results[0].replace_all_uses_with(made.result)
            life.op.operation.erase()
        cx.count("columns", columns)


def _take(func: ir.Operation, columns: int, *, pair: bool) -> ir.Value:
    """The address of columns that the kernel has from its beginning to its end."""
    i32 = ir.IntegerType.get_signless(32)
    count: dict[str, ir.Attribute] = {"columns": ir.IntegerAttr.get(i32, columns)}
    if pair:
        count[PAIR] = ir.UnitAttr.get()
    block = func.regions[0].blocks[0]
    at = Exchange(block.operations[0])
    word = at.run_of(1, i32)
    address = at.create("nv_tileas.alloc_tmem", [word], [i32], count).result
    end = block.operations[len(block.operations) - 1]
    Exchange(end).create("nv_tileas.dealloc_tmem", [address], [], count)
    return address
