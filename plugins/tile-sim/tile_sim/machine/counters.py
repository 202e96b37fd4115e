"""Cost counters: what a launch executed, for each instruction. Counts, not estimates of time.

Instructions are counted for every warp that issues them, guarded ones whether or not the guard
holds. Global accesses are counted in sectors of 32 bytes, each once for one instruction of one
warp. Shared accesses are counted in wavefronts: 32 banks of 4 bytes, one word of each bank at a
time; accesses of 8 and 16 bytes a lane go by half and quarter warps, and lanes that ask for the
same word share it (CUDA Programming Guide, "Shared Memory").
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from operator import length_hint
from typing import TYPE_CHECKING, Any

import numpy as np

from tile_sim.program.flow import Block
from tile_sim.program.program import Program
from tile_sim.ptx.syntax import Instr

if TYPE_CHECKING:
    from tile_sim.machine.access import Part
    from tile_sim.machine.group import Group
    from tile_sim.machine.wave import Wave

Array = np.ndarray
_SECTOR, _WORD, _BANKS = 32, 4, 32
# Keys of a warp and an address: addresses of a process have 47 bits, a wave has fewer warps than
# the rest can number. An access of 32 bytes a lane goes in 8 parts.
_ADDRESS_BITS, _SHARED_BITS, _MOST_PARTS = 47, 40, 8
_MMA_SHAPE = re.compile(r"m(\d+)n(\d+)k(\d+)$")
# Warps that execute one product together.
_MMA_WARPS = {"mma": 1, "wmma": 1, "wgmma": 4}

_CLASSES = {
    "memory": "ld ldu st prefetch prefetchu applypriority discard createpolicy isspacep",
    "atomic": "atom red",
    "async copy": "cp tensormap",
    "tensor core": "mma wmma wgmma tcgen05",
    "matrix move": "ldmatrix stmatrix movmatrix",
    "barrier": "bar barrier mbarrier fence membar griddepcontrol nanosleep",
    "warp": "shfl vote match redux elect activemask",
    "control": "bra brx call ret exit trap brkpt",
    "convert": "cvt cvta",
    "move": "mov selp prmt slct mapa getctarank",
    "logic": "and or xor not lop3 shl shr shf bfe bfi bfind brev clz popc bmsk fns szext",
}
_CLASS_OF = {op: name for name, ops in _CLASSES.items() for op in ops.split()}
_FLOAT_TYPES = ("f16", "f16x2", "bf16", "bf16x2", "f32", "f32x2", "f64")


@dataclass
class Cost:
    """Counts of one instruction, or a sum of them.

    `warps` and `threads` issued the instruction. `*_requests` are warps that accessed the space;
    `global_bytes` are the distinct bytes they asked for. `*_ideal` wavefronts are what the same
    access needs without conflicts. `lsu_*`, `cp_async` and `tma` are bytes by path: of threads'
    own accesses, `cp.async`, and bulk and tensor copies. `macs` are multiply-adds of tensor cores,
    `barrier_waits` warps that passed a barrier or asked an mbarrier.
    """

    warps: int = 0
    threads: int = 0
    global_requests: int = 0
    global_sectors: int = 0
    global_bytes: int = 0
    shared_requests: int = 0
    shared_wavefronts: int = 0
    shared_ideal: int = 0
    lsu_global_bytes: int = 0
    lsu_shared_bytes: int = 0
    cp_async_bytes: int = 0
    tma_bytes: int = 0
    macs: int = 0
    barrier_waits: int = 0

    def add(self, other: Cost) -> None:
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))

    @property
    def bank_conflicts(self) -> int:
        """Wavefronts beyond those that an access without conflicts needs."""
        return self.shared_wavefronts - self.shared_ideal

    @property
    def coalescing(self) -> float | None:
        """Bytes asked for of the bytes of all sectors; None without global accesses."""
        moved = self.global_sectors * _SECTOR
        return self.global_bytes / moved if moved else None

    def as_dict(self) -> dict[str, Any]:
        found = {name: value for name, value in asdict(self).items() if value}
        if self.coalescing is not None:
            found["coalescing"] = round(self.coalescing, 4)
        if self.shared_wavefronts:
            found["bank_conflicts"] = self.bank_conflicts
        return found


class Counters:
    """Collects the accesses of one launch; `instructions` are the costs of each one."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.costs: dict[int, Cost] = {}
        self._seen: tuple[Any, ...] = ()
        self._rows: Array = np.zeros(0, np.int64)

    # --- while the kernel runs --------------------------------------------------------------

    def access(self, wave: Wave, kind: str, g: Group, part: Part, count: int) -> None:
        """A load, store or atomic of threads: `count` elements of a part for each lane."""
        if part.space not in ("global", "shared"):
            return
        ins, cost = self._current(wave)
        rows = g.lane_rows() if part.pick is None else g.lane_rows()[part.pick]
        lanes = g.lane_ids() if part.pick is None else g.lane_ids()[part.pick]
        size = part.data.dtype.itemsize
        start = part.index * size + part.base
        width = size * count
        if ins.op == "cp":
            cost.cp_async_bytes += len(rows) * width
        elif part.space == "global":
            cost.lsu_global_bytes += len(rows) * width
            self.global_access(wave, rows, start, width)
        else:
            cost.lsu_shared_bytes += len(rows) * width
            self._shared_access(wave, cost, rows, lanes, start, width)

    def global_access(
        self, wave: Wave, rows: Array, start: Array, width: int, sizes: Array | None = None
    ) -> None:
        """Lanes of warps `rows` access `width` bytes at `start`, a multiple of the width; with
        `sizes` only so many of them."""
        _, cost = self._current(wave)
        cost.global_requests += self._new_rows(wave, "global", rows)
        start = start.astype(np.int64)
        _, first = np.unique(rows << _ADDRESS_BITS | start, return_index=True)
        cost.global_bytes += width * len(first) if sizes is None else int(sizes[first].sum())
        spans = start[:, None] // _SECTOR + np.arange(-(-width // _SECTOR))
        cost.global_sectors += _distinct(np.repeat(rows, spans.shape[1]), spans.reshape(-1))

    def _shared_access(
        self, wave: Wave, cost: Cost, rows: Array, lanes: Array, start: Array, width: int
    ) -> None:
        cost.shared_requests += self._new_rows(wave, "shared", rows)
        words = max(width // _WORD, 1)
        at = start[:, None] // _WORD + np.arange(words)
        part = (lanes * words // 32)[:, None]
        keys = np.unique((rows[:, None] << _SHARED_BITS | at) * _MOST_PARTS + part)
        # A word that an earlier part of the warp fetched is there.
        whole = keys // _MOST_PARTS
        fresh = np.ones(len(keys), bool)
        fresh[1:] = whole[1:] != whole[:-1]
        keys, whole = keys[fresh], whole[fresh]
        turn = (whole >> _SHARED_BITS) * _MOST_PARTS + keys % _MOST_PARTS
        banks = turn * _BANKS + whole % _BANKS
        used, depth = np.unique(banks, return_counts=True)
        turns, where = np.unique(used // _BANKS, return_inverse=True)
        deepest = np.zeros(len(turns), np.int64)
        np.maximum.at(deepest, where, depth)
        cost.shared_wavefronts += int(deepest.sum())
        amount = np.bincount(np.searchsorted(turns, turn))
        cost.shared_ideal += int((-(-amount // _BANKS)).sum())

    def moved(self, wave: Wave, amount: int) -> None:
        """Bytes of a bulk or tensor copy, for each receiver."""
        self._current(wave)[1].tma_bytes += amount

    def products(self, wave: Wave, macs: int) -> None:
        """A product whose shape is only known now."""
        self._current(wave)[1].macs += macs

    def _current(self, wave: Wave) -> tuple[Instr, Cost]:
        block, steps = wave.cursor
        ins = block.instrs[len(block.code) - 1 - length_hint(steps)]
        cost = self.costs.get(id(ins))
        if cost is None:
            cost = self.costs[id(ins)] = Cost()
        return ins, cost

    def _new_rows(self, wave: Wave, space: str, rows: Array) -> int:
        """Warps that this execution of the instruction has not been counted for."""
        key = (wave.first_cta, wave.clock, length_hint(wave.cursor[1]), space)
        found = np.unique(rows)
        if key == self._seen:
            found = np.setdiff1d(found, self._rows)
            self._rows = np.union1d(self._rows, found)
        else:
            self._seen, self._rows = key, found
        return len(found)

    # --- afterwards -------------------------------------------------------------------------

    def finish(self, counts: Array) -> list[tuple[Instr, Cost]]:
        """The cost of every instruction, in the order of the text; `counts` are (warps, threads)
        of each block."""
        total: dict[int, tuple[Instr, Cost]] = {}
        for block in self.program.blocks:
            warps, threads = (int(n) for n in counts[block.number])
            for ins in instructions_of(block):
                _, cost = total.setdefault(id(ins), (ins, self.costs.get(id(ins), Cost())))
                cost.warps += warps
                cost.threads += threads
                cost.macs += warps * _static_macs(ins)
                cost.barrier_waits += warps if _waits(ins) else 0
        return sorted(total.values(), key=lambda pair: pair[0].pos)


def instructions_of(block: Block) -> Iterator[Instr]:
    """Each instruction of a block once, the one that ends it (or that it waits at) included."""
    ids = set()
    for ins in (*block.instrs, block.end_instr):
        if ins is not None and id(ins) not in ids:
            ids.add(id(ins))
            yield ins


def class_of(ins: Instr) -> str:
    """The class that an instruction is counted in."""
    known = _CLASS_OF.get(ins.op)
    if known is not None:
        return known
    return "float" if any(mod in _FLOAT_TYPES for mod in ins.mods) else "integer"


def _static_macs(ins: Instr) -> int:
    """Multiply-adds of a warp in one matrix instruction."""
    if ins.op not in _MMA_WARPS or not {"mma", "mma_async"} & {ins.op, *ins.mods}:
        return 0
    for mod in ins.mods:
        found = _MMA_SHAPE.match(mod)
        if found:
            return int(found[1]) * int(found[2]) * int(found[3]) // _MMA_WARPS[ins.op]
    return 0


def _waits(ins: Instr) -> bool:
    if ins.op == "mbarrier":
        return bool({"test_wait", "try_wait"} & set(ins.mods))
    return ins.op in ("bar", "barrier") and "arrive" not in ins.mods


def _distinct(rows: Array, values: Array) -> int:
    """Number of different pairs."""
    return len(np.unique(rows << _ADDRESS_BITS | values))
