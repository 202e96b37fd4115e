"""From a plan to code: prologue, kernel and epilogue in place of a loop.

    if at least S - 1 iterations:
        steps -(S-1) .. -1: the operations whose iteration exists
        for the other iterations, less S - 1:
            one step of all stages
        steps that finish the last S - 1 iterations
    else:
        the original loop

The guard is left out where the number of iterations is known; for two stages its other side is
nothing, since no iteration is left for it. Right for any number of iterations, none included, and
for bounds anywhere in the loop's type: what would overflow is selected away.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tile_core.insertion import Inserter
from tile_core.mlir import ir
from tile_tileas.cloning import mapped_operands, replace_operands
from tile_tileas.modulo.counting import Counting
from tile_tileas.modulo.plan import Instance
from tile_tileas.modulo.rings import Begun, Induction, Made, Rings, Source

#: What an operand becomes where a clone stands.
Lookup = Callable[[Source], ir.Value]


class Expander(Inserter):
    """Rewrites one `scf.for` whose body and rings are given."""

    def __init__(self, rings: Rings) -> None:
        super().__init__()
        self.rings, self.body = rings, rings.body
        self.loop = rings.body.loop
        self._location = self.loop.location
        self._inits = list(self.loop.operands)[3:]

    def run(self) -> ir.OpView | ir.Operation:
        """Replace the loop; returns the loop that does most of its iterations."""
        self._ip = ir.InsertionPoint(self.loop)
        count = Counting(self, self.loop)
        fewer = self.rings.stages - 1
        guard = count.at_least(fewer)
        if guard is None:
            kernel, results = self._pipelined(count)
        else:
            types = [result.type for result in self.loop.results]
            branch = self.create("scf.if", [guard], types, regions=2)
            self._ip = ir.InsertionPoint(branch.regions[0].blocks.append())
            kernel, values = self._pipelined(count)
            self.create("scf.yield", values)
            self._few(branch, fewer)
            results = list(branch.results)
        for old, new in zip(self.loop.results, results, strict=True):
            old.replace_all_uses_with(new)
        self.loop.operation.erase()
        return kernel

    def _few(self, branch: ir.Operation, fewer: int) -> None:
        """The other side: fewer iterations than there are stages, less one."""
        values = self._inits
        if fewer == 1 and not values:
            return
        self._ip = ir.InsertionPoint(branch.regions[1].blocks.append())
        if fewer > 1:
            values = list(self.loop.operation.clone(ip=self._ip).results)
        self.create("scf.yield", values)

    # -- steps --------------------------------------------------------------------------------

    def _pipelined(self, count: Counting) -> tuple[ir.Operation, list[ir.Value]]:
        """The kernel, and the results of the whole loop."""
        begun = self._prologue(count)
        kernel = self._kernel(count, begun)
        carried = dict(zip(self.rings.carried, kernel.results, strict=True))
        return kernel, self._epilogue(count, carried)

    def _prologue(self, count: Counting) -> dict[Made, ir.Value]:
        """Steps in which not all stages have an iteration; `at` counts from the first one."""
        made: dict[Made, ir.Value] = {}

        def lookup(source: Source) -> ir.Value:
            if isinstance(source, Made):
                return made[source]
            return self._outside(source, count.first)

        for step in range(self.rings.stages - 1):
            for instance in self.rings.plan.order:
                if instance.stage <= step:
                    at = step - instance.stage
                    self._run(instance, at, lookup, made)
        return made

    def _kernel(self, count: Counting, begun: dict[Made, ir.Value]) -> ir.Operation:
        """The loop of full steps. What it carries begins with what the prologue has made."""
        rings = self.rings
        inits = [
            begun[source] if isinstance(source, Made) else self._outside(source, count.first)
            for source in rings.carried
        ]
        types = [value.type for value in inits]
        operands = [count.lower, count.kernel_end(rings.stages - 1), count.step, *inits]
        attributes = {name: self.loop.attributes[name] for name in self.loop.attributes}
        new = self.create("scf.for", operands, types, attributes, regions=1)
        locations = [self._location] * (len(types) + 1)
        block = new.regions[0].blocks.append(count.type, *types, arg_locs=locations)
        outer, self._ip = self._ip, ir.InsertionPoint(block)
        induction, *arguments = block.arguments
        carried = dict(zip(rings.carried, arguments, strict=True))
        made: dict[Made, ir.Value] = {}
        later: dict[int, ir.Value] = {0: induction}

        def at_step(at: int) -> ir.Value:
            if at not in later:
                later[at] = count.later(induction, at)
            return later[at]

        def lookup(source: Source) -> ir.Value:
            if isinstance(source, Made) and rings.is_made(source):
                return made[source]
            if isinstance(source, (Made, Begun)):
                return carried[source]
            return self._outside(source, at_step)

        for instance in rings.plan.order:
            self._run(instance, rings.at(instance.stage), lookup, made)
        self.create("scf.yield", [lookup(rings.next(source)) for source in rings.carried])
        self._ip = outer
        return new

    def _epilogue(
        self, count: Counting, carried: Mapping[Made | Begun, ir.Value]
    ) -> list[ir.Value]:
        """Steps that finish what the kernel has begun; the results of the loop."""
        rings = self.rings
        made: dict[Made, ir.Value] = {}

        def from_last(at: int) -> ir.Value:
            return count.from_last(rings.stages - 2 - at)

        def lookup(source: Source) -> ir.Value:
            if isinstance(source, Made) and source.at >= rings.at(source.stage):
                return made[source]
            if isinstance(source, (Made, Begun)):
                return carried[source]
            return self._outside(source, from_last)

        for late in range(rings.stages - 1):
            for instance in rings.plan.order:
                if instance.stage > late:
                    self._run(instance, late + rings.at(instance.stage), lookup, made)
        return [lookup(source) for source in rings.results()]

    # -- operations ---------------------------------------------------------------------------

    def _outside(self, source: Source, induction: Callable[[int], ir.Value]) -> ir.Value:
        """What comes from outside of the loop, or is counted."""
        if isinstance(source, Induction):
            return induction(source.at)
        if isinstance(source, Begun):
            return self._inits[self.body.arguments.index(source.value)]
        assert isinstance(source, ir.Value), "made by an operation that has not run yet"
        return source

    def _run(self, instance: Instance, at: int, lookup: Lookup, made: dict[Made, ir.Value]) -> None:
        """A clone of the operation for the iteration at `at`; its results go to `made`."""
        op = self.body.ops[instance.op]

        def mapped(value: ir.Value) -> ir.Value | None:
            source = self.rings.source(value, instance.stage, at)
            return None if isinstance(source, ir.Value) and source == value else lookup(source)

        wanted = mapped_operands(op, mapped)
        clone = op.operation.clone(ip=self._ip)
        replace_operands(clone, wanted)
        for old, new in zip(op.results, clone.results, strict=True):
            made[Made(old, instance.stage, at)] = new
