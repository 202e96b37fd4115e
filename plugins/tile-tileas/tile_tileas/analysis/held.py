"""Registers that a thread cannot do without, where it works on its tiles piece by piece.

Arithmetic on single elements needs no whole tiles: ptxas computes the elements of one vector after
another where registers are few, and what is computed so costs what it is computed from, until
something asks for whole tiles. Loads do, as all of them are to be under way at once, and so do
folds, loops, what goes through shared memory, and functions with branches, across which ptxas moves
nothing: they end a section, and a tile that is used behind its section is held as it is.
"""

from __future__ import annotations

from tile_core.mlir import ir
from tile_core.target import Target
from tile_tileas.analysis.pressure import Peak, takes_registers, words
from tile_tileas.dialect import layout_of
from tile_tileas.kernel_spec import num_warps
from tile_tileas.tile_graph import is_tile, kind_of, only_computes

#: Relations of layouts whose operations a thread does for a few elements at a time.
_PIECEWISE = ("same", "broadcast", "view", "permute")
_WITHIN = (*_PIECEWISE, "source", "load", "store")
#: Functions that test their operands and branch, element by element or for a few of them, and
#: registers that they compute in. Those of angles have a way for large ones, with all digits of
#: 2 / pi.
_BRANCHING = {
    "arith.divf": 8, "nv_tileaa.divf": 8, "math.sqrt": 8, "nv_tileaa.sqrt": 8, "arith.remf": 8,
    "nv_tileaa.atan2": 8,
    **dict.fromkeys((f"{dialect}.{function}" for dialect in ("math", "nv_tileaa")
                     for function in ("cos", "sin", "tan")), 32),
}  # fmt: skip
#: Registers of a thread for addresses, flags and the elements in work: with these, nothing in
#: benchmarks/speed_rows.py spills, and nothing in 274 programs of cuTile's suite (every 19th) that
#: did not before.
_OTHER_REGISTERS = 16
#: What ptxas gives a thread at least, and in steps of (registers are allocated to warps by 256).
_LEAST_REGISTERS, _STEP = 32, 8
#: The section of what leaves its region: no operation's.
_NOWHERE = -1


def held_registers(func: ir.Operation) -> int:
    """Registers of a thread, at most, for tiles that have layouts and none of which is whole
    unless it must be.
    """
    return _Held(_Sections(func)).region(func.regions[0], {})


def registers_needed(func: ir.Operation) -> int:
    """Registers of a thread for what it must hold, and some more."""
    needed = max(_LEAST_REGISTERS, held_registers(func) + _OTHER_REGISTERS)
    return -(-needed // _STEP) * _STEP


def blocks_by_registers(func: ir.Operation, target: Target) -> int:
    """Blocks of a multiprocessor at once whose threads have what they must hold, and some more."""
    needed = registers_needed(func)
    return target.registers // (needed * target.warp_size * num_warps(func))


class _Sections:
    """Where tiles are made and used, as numbers of sections."""

    def __init__(self, func: ir.Operation) -> None:
        self.made: dict[ir.Value, int] = {}
        self.used: dict[ir.Value, set[int]] = {}
        self._now = 0
        self._region(func.regions[0])

    def stays(self, value: ir.Value) -> bool:
        """Whether all uses of the tile are in the section that makes it."""
        return self.used.get(value, set()) <= {self.made.get(value, _NOWHERE)}

    def _region(self, region: ir.Region) -> None:
        for block in region.blocks:
            self._now += 1
            for op in block.operations:
                self._operation(op)

    def _operation(self, op: ir.OpView) -> None:
        leaves = op.operation.name in ("scf.yield", "scf.condition", "func.return")
        for operand in op.operands:
            self.used.setdefault(operand, set()).add(_NOWHERE if leaves else self._now)
        ends = kind_of(op) not in _WITHIN or _branches(op)
        if ends and any(is_tile(v) for v in (*op.operands, *op.results)):
            self._now += 1
        if op.operation.name.startswith("scf."):
            for region in op.regions:
                self._region(region)
            self._now += 1
        for result in op.results:
            self.made[result] = self._now


class _Held(Peak):
    """Tiles that are computed in pieces count as what they are computed from."""

    def __init__(self, sections: _Sections) -> None:
        super().__init__(1)
        self._sections = sections
        self._known: dict[ir.Value, list[ir.Value]] = {}
        self._registers: dict[ir.Value, int] = {}

    def registers(self, value: ir.Value) -> int:
        if value not in self._registers:
            self._registers[value] = self._taken(value)
        return self._registers[value]

    def _taken(self, value: ir.Value) -> int:
        layout = layout_of(value.type)
        if layout is None:
            return 0
        if not takes_registers(value) and not _repeats_several(value):
            return 0
        each = layout.elements_per_thread
        # Flags that are not used at once are kept as words.
        is_flag = getattr(value.type.element_type, "width", 0) == 1
        return max(words(value, each), each * is_flag)

    def operation(self, op: ir.OpView, live: dict[ir.Value, int]) -> int:
        tiles = [result for result in op.results if is_tile(result)]
        if tiles and all(self._sources(tile) != [tile] for tile in tiles):
            return sum(live.values())  # made where it is used
        inside = _BRANCHING[op.operation.name] if _branches(op) else 0
        return super().operation(op, live) + inside

    def add(self, live: dict[ir.Value, int], values: list[ir.Value]) -> None:
        super().add(live, [source for value in values for source in self._sources(value)])

    def _sources(self, value: ir.Value) -> list[ir.Value]:
        """What is held in place of `value`: itself, or tiles that take no more registers."""
        if value not in self._known:
            self._known[value] = [value]
            if is_tile(value) and not isinstance(value.owner, ir.Block):
                self._known[value] = self._found(value, value.owner)
        return self._known[value]

    def _found(self, value: ir.Value, op: ir.OpView) -> list[ir.Value]:
        if kind_of(op) not in _PIECEWISE or not only_computes(op) or _branches(op):
            return [value]
        tiles = [operand for operand in op.operands if is_tile(operand)]
        sources = list(dict.fromkeys(one for tile in tiles for one in self._sources(tile)))
        costs = sum(self.registers(source) for source in sources)
        if not costs:  # indices and addresses follow from a thread's number, again and again
            return sources
        within = self._sections.stays(value) and not _repeats_several(value)
        return sources if within and costs <= self.registers(value) else [value]


def _branches(op: ir.OpView) -> bool:
    """Whether it branches: where it rounds to nearest."""
    if op.operation.name not in _BRANCHING:
        return False
    if "rounding_mode" not in op.attributes:
        return True
    return ir.StringAttr(op.attributes["rounding_mode"]).value not in ("approx", "full")


def _repeats_several(value: ir.Value) -> bool:
    """Whether a broadcast repeats more than one element of a thread, as rows against columns."""
    if isinstance(value.owner, ir.Block) or kind_of(value.owner) != "broadcast":
        return False
    layout = layout_of(value.owner.operands[0].type)
    return layout is not None and layout.elements_per_thread > 1
