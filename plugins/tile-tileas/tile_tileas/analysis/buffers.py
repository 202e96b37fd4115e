"""Buffers of a function: which memory a value is a view of, and how long each buffer lives."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from math import prod

from tile_cute.atoms.records import SHARED, TENSOR

from tile_core.mlir import ir
from tile_tileas.dialect.agents import SWITCH, agents_of
from tile_tileas.dialect.buffers import BarrierType, Buffer, BufferType
from tile_tileas.dialect.tensor import tensor_columns
from tile_tileas.storage import storage_bits

ALLOC = "nv_tileas.alloc_tensor"
#: Attribute of an allocation that has its place in shared memory, in bytes.
OFFSET = "shared_offset"
#: Attribute of stages that one agent fills and another one, the first of the switch, reads: nothing
#: is on its way to them any more when that one has read them last.
DRAINED = "drained"
_LOOPS = ("scf.for", "scf.while")
_SAME_MEMORY = (
    "nv_tileas.buffer_view",
    "nv_tileas.buffer_reinterpret",
    "nv_tileas.barrier_init",
    "nv_tileas.tmem_columns",
    "nv_tileas.tmem_view",
)
_FOLDS = ("nv_tileas.reduce", "nv_tileas.scan")
_PIPE = "nv_tileas.async_pipeline_create_pipeline"


def is_storage(value: ir.Value) -> bool:
    """Whether it stands for a buffer or a barrier, or a view of one."""
    return isinstance(value.type, BufferType | BarrierType)


def is_shared(type_: ir.Type) -> bool:
    """Whether a type is that of a buffer in shared memory."""
    buffer = Buffer.of(type_)
    return buffer is not None and buffer.space == SHARED


def stage_bytes(buffer: Buffer) -> int:
    """Shared memory of one stage, elements as threads store them: at least a byte each."""
    return prod(buffer.shape) * storage_bits(buffer.tile.element_type) // 8


def allocation_of(value: ir.Value) -> ir.OpView | None:
    """The `alloc_tensor` whose memory a buffer is or views; None if control flow hides it."""
    while not isinstance(value.owner, ir.Block):
        owner = value.owner
        if owner.name == ALLOC:
            return owner.opview if isinstance(owner, ir.Operation) else owner
        if owner.name not in _SAME_MEMORY:
            return None
        value = owner.operands[0]
    return None


@dataclass
class Life:
    """An allocation, and the places in the program from which to which it lives.

    Places count operations in program order. `size` and `alignment` are in bytes of shared memory,
    or in columns of tensor memory.
    """

    op: ir.OpView
    first: int
    last: int
    size: int
    alignment: int
    offset: int = -1

    def meets(self, other: Life) -> bool:
        """Whether both hold something at once."""
        return self.first <= other.last and other.first <= self.last


@dataclass
class _Walk:
    """Numbers operations and follows the values that buffers go by."""

    space: str = SHARED
    lives: list[Life] = field(default_factory=list)
    place: int = 0
    #: An operation, and the places at which it begins and ends.
    watched: ir.OpView | None = None
    span: tuple[int, int] = (0, 0)
    #: Allocations that pipes hand round, by index: their tokens are no buffers to follow.
    payloads: set[int] = field(default_factory=set)
    #: Value -> the allocations that it may be, by index, and how many loops are around those.
    _known: dict[ir.Value, set[int]] = field(default_factory=dict)
    _depth: list[int] = field(default_factory=list)
    #: Whether the walk is in another agent of a switch than its first; allocations that such use.
    _behind_first: bool = False
    _elsewhere: set[int] = field(default_factory=set)

    def region(self, region: ir.Region, loops: list[list[int]]) -> None:
        for block in region.blocks:
            for op in block.operations:
                self._operation(op, loops)

    def _operation(self, op: ir.OpView, loops: list[list[int]]) -> None:
        self.place += 1
        begin = self.place
        known = self._known
        used = {one for value in op.operands for one in known.get(value, ())} if known else set()
        for one in used:
            self._use(one, loops)
        name = op.operation.name
        if name == _PIPE:
            self.payloads |= used
        if name == ALLOC:
            self._allocate(op, len(loops))
        else:
            self._follow(op.results, used)
        if name.startswith(_FOLDS):
            return
        inner = [*loops, []] if name in _LOOPS else loops
        if name == SWITCH:
            self._switch(op, loops)
        else:
            self._inside(op, used, inner)
        self.place += 1
        for one in inner[-1] if name in _LOOPS else ():
            self.lives[one].last = max(self.lives[one].last, self.place)
        if name == SWITCH:
            self._side_by_side(begin)
        if self.watched is not None and op == self.watched:
            self.span = begin, self.place

    def _use(self, one: int, loops: list[list[int]]) -> None:
        """An allocation is used here."""
        if self._behind_first:
            self._elsewhere.add(one)
            if DRAINED in self.lives[one].op.attributes:
                return
        self.lives[one].last = max(self.lives[one].last, self.place)
        # What lives on around a loop is wanted in its next iteration, too.
        for loop in loops[self._depth[one] :]:
            loop.append(one)

    def _inside(self, op: ir.OpView, used: set[int], loops: list[list[int]]) -> None:
        for region in op.regions:
            for block in region.blocks:
                self._follow(block.arguments, used)
            self.region(region, loops)

    def _switch(self, op: ir.OpView, loops: list[list[int]]) -> None:
        """The first agent, then the others, of which it is known what they use."""
        for agent in agents_of(op):
            self.region(agent.regions[0], loops)
            self._behind_first = True
        self._behind_first = False

    def _side_by_side(self, begin: int) -> None:
        """Agents of the switch that ends here run at once: what others than the first use lives in
        all, unless it is drained; that may be filled before the first comes to it.
        """
        for number in self._elsewhere:
            life = self.lives[number]
            life.first = min(life.first, begin)
            if DRAINED not in life.op.attributes:
                life.last = self.place
        self._elsewhere.clear()

    def _follow(self, values: Iterable[ir.Value], used: set[int]) -> None:
        """Buffers that an operation gives may be any of those that it was given."""
        for value in values if used else ():
            if isinstance(value.type, BufferType | BarrierType):
                self._known[value] = used

    def _allocate(self, op: ir.OpView, depth: int) -> None:
        buffer = Buffer.of(op.results[0].type)
        assert buffer is not None
        if buffer.space != self.space:
            return
        alignment = ir.IntegerAttr(op.attributes["alignment"]).value
        size = stage_bytes(buffer) * buffer.stages
        if self.space == TENSOR:
            size = tensor_columns(buffer)
        if self._behind_first:
            self._elsewhere.add(len(self.lives))
        self._known[op.results[0]] = {len(self.lives)}
        self._depth.append(depth)
        self.lives.append(Life(op, self.place, self.place, size, alignment))

    def function(self, func: ir.Operation) -> None:
        """All of a function. What a pipe hands round lives to its end, as tokens may."""
        self.region(func.regions[0], [])
        for one in self.payloads:
            self.lives[one].last = self.place


def lives_of(func: ir.Operation, space: str = SHARED) -> list[Life]:
    """The allocations of a function in shared or tensor memory, in program order.

    What others than the first agent of a switch use lives in all of them, and what a pipe hands
    round lives from the pipe on.
    """
    walk = _Walk(space)
    walk.function(func)
    return walk.lives


def lives_during(func: ir.Operation, op: ir.OpView) -> list[Life]:
    """The allocations in shared memory that hold something while `op`, with regions, runs."""
    walk = _Walk(watched=op)
    walk.function(func)
    first, last = walk.span
    return [life for life in walk.lives if life.first <= last and first <= life.last]


def lives_until(func: ir.Operation, op: ir.OpView) -> list[Life]:
    """The allocations in shared memory that hold something before `op`, with regions, has ended;
    those that hold something in another run of it included.
    """
    around = op.operation
    while around.parent is not None and around.parent.operation.name != "func.func":
        around = around.parent.operation
    walk = _Walk(watched=around.opview)
    walk.function(func)
    return [life for life in walk.lives if life.first <= walk.span[1]]


def lives_between(func: ir.Operation, first: ir.OpView, last: ir.OpView) -> list[Life]:
    """The allocations in shared memory that hold something from `first` on until `last` is done."""
    spans = []
    for op in (first, last):
        walk = _Walk(watched=op)
        walk.function(func)
        spans.append(walk.span)
    begin, end = spans[0][0], spans[1][1]
    return [life for life in walk.lives if life.first <= end and begin <= life.last]


def allocated_bytes(func: ir.Operation) -> int:
    """Shared memory of a function whose buffers have their places."""
    ends = [
        ir.IntegerAttr(life.op.attributes["shared_offset"]).value + life.size
        for life in lives_of(func)
        if "shared_offset" in life.op.attributes
    ]
    return max(ends, default=0)
