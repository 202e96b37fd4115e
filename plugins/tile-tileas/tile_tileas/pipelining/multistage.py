"""The loop whose loads run ahead: predicated prefetch, one stage of buffers for each iteration.

    stages 0 .. S-2 are loaded, each if there is such an iteration; a group of cp.async for each
    for i:
        wait until at most S-2 groups are left; sync
        load for iteration i+S-1, if there is one, into the stage that iteration i-1 has read; group
        the body, which reads stage i mod S

Right for any number of iterations, none included. The one barrier of a step says both that the
copies of all threads are there and that nobody reads the stage that is overwritten next.
"""

from __future__ import annotations

from collections.abc import Sequence

from tile_core.insertion import Inserter
from tile_core.mlir import ir
from tile_tileas.dialect.buffers import Buffer, async_token
from tile_tileas.pipelining.prefetch import Prefetch, token_of

PIPELINED = "pipelined"
_GROUP = "cp.async"
_SLT, _EQ = 2, 0  # arith.CmpIPredicate


class Multistage(Inserter):
    """Rewrites one `scf.for`."""

    def __init__(self, loop: ir.OpView, loads: Sequence[Prefetch], stages: int) -> None:
        super().__init__()
        self.loop, self.loads, self.stages = loop, loads, stages
        self._location = loop.location
        self._i32 = ir.IntegerType.get_signless(32)
        self._i64 = ir.IntegerType.get_signless(64)
        self.lower, self.upper, self.step = list(loop.operands)[:3]

    def run(self) -> ir.Operation:
        """The new loop, in place of the old one."""
        self._ip = ir.InsertionPoint(self.loop)
        if _is_inside_loop(self.loop):
            # An earlier run of this loop may still read the stages that are filled first.
            self.create("nv_tileas.sync")
        buffers = [self._allocate(load) for load in self.loads]
        for ahead in range(self.stages - 1):
            self._fetch(buffers, self.lower, ahead, self._constant(ahead))
        new, stage = self._new_loop()
        block = new.regions[0].blocks[0]
        self._ip = ir.InsertionPoint(block.operations[0])
        self._wait(self.stages - 2)
        self.create("nv_tileas.sync")
        # Before the body: copies are under way while it computes.
        last = self._select(stage, 0, self._constant(self.stages - 1), self._minus_one(stage))
        self._fetch(buffers, block.arguments[0], self.stages - 1, last)
        for load, buffer in zip(self.loads, buffers, strict=True):
            view = self._view(buffer, stage)
            load.alloc.results[0].replace_all_uses_with(view)
        for load in self.loads:
            load.copy.operation.erase()
            load.load.operation.erase()
            load.alloc.operation.erase()
        return new

    # -- the loop -----------------------------------------------------------------------------

    def _new_loop(self) -> tuple[ir.Operation, ir.Value]:
        """The loop with the stage of an iteration carried along, 0 first."""
        old = self.loop
        attributes = {name: old.attributes[name] for name in old.attributes}
        operands = [*old.operands, self._constant(0)]
        types = [*(result.type for result in old.results), self._i32]
        new = self.create("scf.for", operands, types, attributes, regions=1)
        block = old.regions[0].blocks[0]
        block.append_to(new.regions[0])
        stage = block.add_argument(self._i32, old.location)
        end = block.operations[len(block.operations) - 1]
        self._ip = ir.InsertionPoint(end)
        bumped = self._plus_one(stage)
        after = self._select(bumped, self.stages, self._constant(0), bumped)
        self.create("scf.yield", [*end.operands, after])
        end.operation.erase()
        for before, result in zip(old.results, new.results, strict=False):
            before.replace_all_uses_with(result)
        old.operation.erase()
        return new, stage

    # -- copies -------------------------------------------------------------------------------

    def _allocate(self, load: Prefetch) -> ir.Value:
        buffer = load.buffer
        type_ = Buffer(buffer.tile, buffer.space, self.stages).type
        attributes = {
            "alignment": load.alloc.attributes["alignment"],
            PIPELINED: ir.UnitAttr.get(),
        }
        return self.create("nv_tileas.alloc_tensor", [], [type_], attributes).result

    def _fetch(self, buffers: list[ir.Value], now: ir.Value, ahead: int, stage: ir.Value) -> None:
        """Load for `ahead` iterations after `now`, if there is such a one; a group in any case,
        so that the number of groups to wait for stays the same.
        """
        index, exists = self._later(now, ahead)
        outer = self._ip
        branch = self.create("scf.if", [exists], regions=2)
        self._ip = ir.InsertionPoint(branch.regions[0].blocks.append())
        for load, buffer in zip(self.loads, buffers, strict=True):
            self._copy(load, self._view(buffer, stage), index)
        self.create("scf.yield")
        self._ip = outer
        sizes = {"group": ir.StringAttr.get(_GROUP)}
        self.create("nv_tileas.async_commit_group", [], [async_token()], sizes)

    def _copy(self, load: Prefetch, destination: ir.Value, index: ir.Value) -> None:
        """cp.async of the tile of the iteration whose induction variable is `index`."""
        mapping = {self.loop_argument: index} if self.loop_argument is not None else {}
        for op in load.slice:
            clone = op.operation.clone(ip=self._ip)
            for at, operand in enumerate(clone.operands):
                if operand in mapping:
                    clone.operands[at] = mapping[operand]
            mapping.update(zip(op.results, clone.results, strict=True))
        old, token = load.load, token_of(load.load)
        coords = [mapping.get(value, value) for value in old.coords]
        view = mapping.get(old.operands[0], old.operands[0])
        tokens = [] if token is None else [token]
        attributes = {name: old.attributes[name] for name in old.attributes if name in _KEPT}
        attributes["layout"] = old.results[0].type.encoding
        attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get(
            [1, len(coords), 1, len(tokens)]
        )
        types = [async_token(), old.results[1].type]
        operands = [view, *coords, destination, *tokens]
        self.create("nv_tileas.async_tiled_load", operands, types, attributes)

    @property
    def loop_argument(self) -> ir.Value | None:
        """The induction variable that slices were cut with."""
        for load in self.loads:
            return load.load.operation.block.arguments[0]
        return None

    def _wait(self, pending: int) -> None:
        attributes = {
            "pending": ir.IntegerAttr.get(self._i32, pending),
            "group": ir.StringAttr.get(_GROUP),
        }
        self.create("nv_tileas.async_wait", [], [], attributes)

    def _view(self, buffer: ir.Value, stage: ir.Value) -> ir.Value:
        whole = Buffer.of(buffer.type)
        assert whole is not None
        type_ = Buffer(whole.tile, whole.space, 1).type
        return self.create("nv_tileas.buffer_view", [buffer, stage], [type_]).result

    # -- integers -----------------------------------------------------------------------------

    def _later(self, now: ir.Value, ahead: int) -> tuple[ir.Value, ir.Value]:
        """The induction variable `ahead` iterations after `now`, and whether it is reached.

        Compared in 64 bits: beyond the end it may not fit into the loop's own type.
        """
        by = self._binary("muli", self.step, self._constant(ahead, self.step.type))
        index = self._binary("addi", now, by)
        wide_by = self._binary("muli", self._wide(self.step), self._constant(ahead, self._i64))
        wide = self._binary("addi", self._wide(now), wide_by)
        return index, self._compare(_SLT, wide, self._wide(self.upper))

    def _wide(self, value: ir.Value) -> ir.Value:
        if value.type == self._i64:
            return value
        name = "arith.index_cast" if isinstance(value.type, ir.IndexType) else "arith.extsi"
        return self.create(name, [value], [self._i64]).result

    def _plus_one(self, value: ir.Value) -> ir.Value:
        return self._binary("addi", value, self._constant(1))

    def _minus_one(self, value: ir.Value) -> ir.Value:
        return self._binary("addi", value, self._constant(-1))

    def _select(self, value: ir.Value, equal: int, then: ir.Value, other: ir.Value) -> ir.Value:
        """`then` if `value` is `equal`, else `other`."""
        flag = self._compare(_EQ, value, self._constant(equal))
        return self.create("arith.select", [flag, then, other], [then.type]).result

    def _binary(self, name: str, left: ir.Value, right: ir.Value) -> ir.Value:
        return self.create(f"arith.{name}", [left, right], [left.type]).result

    def _compare(self, predicate: int, left: ir.Value, right: ir.Value) -> ir.Value:
        attribute = {"predicate": ir.IntegerAttr.get(self._i64, predicate)}
        i1 = ir.IntegerType.get_signless(1)
        return self.create("arith.cmpi", [left, right], [i1], attribute).result

    def _constant(self, value: int, type_: ir.Type | None = None) -> ir.Value:
        kind = type_ or self._i32
        attribute = {"value": ir.IntegerAttr.get(kind, value)}
        return self.create("arith.constant", [], [kind], attribute).result


_KEPT = ("access", "mem_semantic", "in_bounds")


def _is_inside_loop(op: ir.OpView) -> bool:
    parent = op.operation.parent
    while parent is not None and parent.name != "func.func":
        if parent.name in ("scf.for", "scf.while"):
            return True
        parent = parent.operation.parent
    return False
