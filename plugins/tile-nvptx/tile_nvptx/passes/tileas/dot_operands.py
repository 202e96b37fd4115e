"""Operands of tensor cores: fragments in registers, or read from shared memory step by step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from tile_cute import gf2
from tile_cute.linear import MatrixSide
from tile_tileas.dot_stage import Stage
from tile_tileas.dots import Fragments

from tile_core.convert import Conversion
from tile_core.mlir import ir
from tile_nvptx.passes.tileas.build import Builder
from tile_nvptx.passes.tileas.convert_layout import join
from tile_nvptx.passes.tileas.helpers import load_matrices
from tile_nvptx.passes.tileas.rules import state
from tile_nvptx.passes.tileas.shared import SharedBuffer, scratch_pointer, when
from tile_nvptx.passes.tileas.types import count_of, element_of, vector_of


class Operand(Protocol):
    """Gives the fragments of A or B that one step along K needs."""

    def step(self, cx: Conversion, k: int) -> ir.Value:
        """The registers of all atoms of step `k`."""
        ...


@dataclass
class Held:
    """An operand whose fragments are in registers."""

    value: ir.Value
    fragments: Fragments

    def step(self, cx: Conversion, k: int) -> ir.Value:
        """Registers whose bits along K say `k`."""
        whole = self.fragments.whole.bases["register"]
        wanted = gf2.combine([1 << whole.index(basis) for basis in self.fragments.steps], k)
        own = [1 << whole.index(basis) for basis in self.fragments.step.bases["register"]]
        return Builder(cx).shuffle(self.value, [wanted ^ register for register in gf2.table(own)])


@dataclass
class Staged:
    """An operand in shared memory."""

    stage: Stage
    memory: SharedBuffer
    element: ir.Type

    @staticmethod
    def of(op: ir.OpView, cx: Conversion, value: ir.Value, stage: Stage, start: int) -> Staged:
        """Store the operand; the caller places the barrier."""
        b = Builder(cx)
        stored = b.to_storage(value)
        memory = SharedBuffer(cx, scratch_pointer(op, cx, start), element_of(stored.type))
        with when(cx, state(cx).speaks(cx, stage.redundant_lanes, stage.redundant_warps)):
            side, size = stage.store, stage.store.vector * stage.elem_bytes
            for access in side.accesses[0]:
                pointer = memory.at((*side.lane_map, *side.warp_map), access.offset)
                b.store(b.shuffle(stored, access.registers), pointer, size)
        return Staged(stage, memory, element_of(value.type))

    def step(self, cx: Conversion, k: int) -> ir.Value:
        """Read the registers of all atoms of step `k`."""
        b, side = Builder(cx), self.stage.load
        accesses = side.accesses if isinstance(side, MatrixSide) else side.accesses[0]
        loaded = [self._load(cx, access.offset ^ self.stage.steps[k]) for access in accesses]
        place = {
            register: at
            for at, register in enumerate(r for access in accesses for r in access.registers)
        }
        joined = join(b, loaded)
        return b.from_storage(
            b.shuffle(joined, [place[r] for r in range(len(place))]), self.element
        )

    def _load(self, cx: Conversion, offset: int) -> ir.Value:
        b, side, element = Builder(cx), self.stage.load, self.memory.element
        pointer = self.memory.at((*side.lane_map, *side.warp_map), offset)
        if not isinstance(side, MatrixSide):
            type_ = vector_of(side.vector, element)
            return b.load(pointer, type_, side.vector * self.stage.elem_bytes)
        name, body = load_matrices(side.matrices, transposed=side.transposed)
        words = vector_of(side.matrices, b.i32)
        found = state(cx).helpers.call(cx, name, body, [pointer], words).result
        return b.bitcast(found, vector_of(count_of(words) * 32 // element.width, element))
