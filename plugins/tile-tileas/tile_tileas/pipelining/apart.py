"""A loop whose stages an agent of its own fills: it begins copies, and the others multiply.

    the agent that copies                       the agent that multiplies
    for i:                                      for i:
        wait until the next stage was read          wait for the next stage
        copies into it                              the body, which reads it
                                                    its warps have read a stage

Both run the same steps, each in its own time, and count the stages for themselves: a loop that runs
again goes on with the stage behind the last one, and copies for it begin while the other agent is
still busy with what came after the first run. `tileas-specialize-warps` makes the agents; until
then the loop that copies stands before the other one, marked `PRODUCER`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from tile_core.mlir import ir
from tile_tileas.agents.needs import Needs
from tile_tileas.analysis.buffers import DRAINED
from tile_tileas.analysis.tokens import TokenOrder, is_weak
from tile_tileas.analysis.users import operations
from tile_tileas.analysis.views import maker
from tile_tileas.dialect.fields import operand_of
from tile_tileas.kernel_spec import num_ctas
from tile_tileas.pipelining.filling import Slot
from tile_tileas.pipelining.multistage import Multistage, is_inside_loop
from tile_tileas.pipelining.prefetch import Prefetch
from tile_tileas.pipelining.slices import updates_of
from tile_tileas.tma.filling import Tma, TmaLoads

#: Attribute of a loop that an agent of its own runs, which begins copies. On operations of several
#: agents beside the first one, the number of theirs.
PRODUCER = "nv_tileas.producer"
#: The number of the agent that scales sums, with as many warps as the first one, and of that whose
#: first threads of warps begin copies and products.
SCALES, LEADS = 3, 4


#: What orders threads with others than by tokens: each of them would have to do it.
FOR_ALL = (
    "nv_tileas.cluster_sync",
    "nv_tileas.cluster_arrive",
    "nv_tileas.cluster_wait",
    "nv_tileas.async_cancel_next_program_id",
    "nv_tileaa.gdc_wait",
)


def refusal(
    func: ir.Operation,
    loop: ir.OpView,
    loads: Sequence[Prefetch],
    *,
    together: bool = False,
    turned: Collection[ir.Operation] = (),
) -> str | None:
    """Why no other agent can copy the `loads` of `loop`; None if one can. `together`: agents of a
    cluster's blocks may copy into each other's stages, or make products together. `turned`: what
    agents will do otherwise than all threads.
    """
    if num_ctas(func) > 1 and not together:
        return "blocks of a cluster share tiles"
    found = for_all_in(func, turned)
    if found is not None:
        return f"all threads of the block do '{found}'"
    if any(load.is_placed_by_memory for load in loads):
        return "places of its tiles are read from memory"
    body = loop.regions[0].blocks[0]
    carried = sorted({at for load in loads for at in load.slice.carried})
    ops = [*updates_of(carried, loop).ops, *(op for load in loads for op in load.slice.ops)]
    values = [*list(loop.operands)[:3], *(loop.operands[3 + at] for at in carried)]
    values += [value for op in ops for value in op.operands]
    order = TokenOrder()
    for load in loads:
        token = operand_of(load.load, "token")
        values += [value for value in load.load.operands if token is None or value != token]
        if token is not None and not all(is_weak(maker(one)) for one in order.before(token)):
            return "its loads wait for an access that is ordered"
    return Needs(turned).add_places([one for one in values if not _is_in(one, body)], loop)


class Apart(Multistage):
    """Rewrites one `scf.for` whose loads tensor maps copy, and products alone read."""

    def __init__(
        self,
        func: ir.Operation,
        loop: ir.OpView,
        loads: Sequence[Prefetch],
        maps: TmaLoads,
        stages: int,
        lag: int,
        readers: int,
        *,
        pair: bool = False,
        together: bool = False,
    ) -> None:
        """`lag`: stages that are still read in the next step. `readers`: warps that read. `pair`:
        two blocks make the products together. `together`: blocks of a cluster copy into each
        other's stages what all of them have.
        """
        self.filling: Tma = maps.apart(readers, pair=pair, together=together)
        parts = [(self.filling, [maps.aligned(load) for load in loads])]
        super().__init__(loop, parts, stages, lag, released=True)
        self._entry = func.regions[0].blocks[0]
        self._lag = lag

    def run(self) -> ir.Operation:
        """The loop that multiplies, behind the one that copies."""
        at, loop = self._at, self.loop
        at.move(ir.InsertionPoint.at_block_begin(self._entry))
        for load in self.loads:
            self._buffers[load.load.results[0]] = self._allocate(load)
        self.filling.prepare(at, self.stages, self.ahead)
        at.move(ir.InsertionPoint(loop))
        self._produce()
        if self._lag and is_inside_loop(loop):
            self._release_last()
        at.move(ir.InsertionPoint(self.block.operations[0]))
        slot = self.filling.to_read(at)
        self.filling.wait(at, slot, 0)
        for load in self.loads:
            self._read(load, slot)
        for load in self.loads:
            load.erase()
        return loop.operation

    def _allocate(self, load: Prefetch) -> ir.Value:
        """Stages; free behind a loop that runs once, as all copies have been waited for."""
        made = super()._allocate(load)
        if not is_inside_loop(self.loop):
            owner = made.owner
            assert not isinstance(owner, ir.Block), "just made"
            owner.attributes[DRAINED] = ir.UnitAttr.get()
        return made

    def _produce(self) -> None:
        """The loop that copies."""
        at, outer = self._at, self._at.place
        first = [self.loop.operands[3 + place] for place in self.carried]
        bounds = [self.lower, self.upper, self.step]
        types = [value.type for value in first]
        new = at.create(
            "scf.for", [*bounds, *first], types, {PRODUCER: ir.UnitAttr.get()}, regions=1
        )
        kinds = [self.lower.type, *types]
        block = new.regions[0].blocks.append(*kinds, arg_locs=[self.loop.location] * len(kinds))
        at.move(ir.InsertionPoint(block))
        slot = self.filling.to_fill(at)
        self.filling.reclaim(at, slot)
        following = self._copies(slot, list(block.arguments))
        at.create("scf.yield", following)
        at.move(outer)

    def _copies(self, slot: Slot, arguments: list[ir.Value]) -> list[ir.Value]:
        """Copies into a slot; what the loop carries to the next step."""
        at = self._at
        names = [self.block.arguments[0], *(self.block.arguments[1 + at] for at in self.carried)]
        values = dict(zip(names, arguments, strict=True))
        for load in self.loads:
            with at.instead_of(load.load):
                into = at.view(self._buffers[load.load.results[0]], slot.index)
                self.filling.fill(at, load, into, slot, self._place(load.slice, values))
        end = self.block.operations[len(self.block.operations) - 1]
        after = self._place(self.updates, values)
        return [after.of(end.operands[place]) for place in self.carried]

    def _release_last(self) -> None:
        """Behind the loop and what others will put there: the last step's stage was read. Copies
        for the next run of the loop wait for that.
        """
        at, outer = self._at, self._at.place
        at.move(ir.InsertionPoint.after(self.loop))
        ran = at.is_less(at.wide(self.lower), at.wide(self.upper))

        def free() -> list[ir.Value]:
            self.filling.release_next(at)
            return []

        at.choice(ran, free)
        at.move(outer)


def for_all_in(func: ir.Operation, turned: Collection[ir.Operation] = ()) -> str | None:
    """What all threads of a kernel's block do together, but for operations in `turned`."""
    ops = operations(func.regions[0])
    found = (op for op in ops if op.operation.name in FOR_ALL and op.operation not in turned)
    return next((op.operation.name for op in found), None)


def names_in(region: ir.Region) -> Iterator[str]:
    """The names of all operations of a region."""
    for block in region.blocks:
        for op in block.operations:
            yield op.operation.name
            for inner in op.regions:
                yield from names_in(inner)


def _is_in(value: ir.Value, block: ir.Block) -> bool:
    owner = value.owner
    return owner == block if isinstance(owner, ir.Block) else owner.operation.block == block
