"""Making operations of a pipelined loop: integers, stages of buffers, barriers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from tile_core.insertion import Inserter
from tile_core.mlir import ir
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dialect.staging import FEW

_SLT, _EQ = 2, 0  # arith.CmpIPredicate


class Writer(Inserter):
    """Makes operations at a place that moves."""

    def __init__(self, location: ir.Location) -> None:
        super().__init__()
        self._location = location
        self.i32 = ir.IntegerType.get_signless(32)
        self.i64 = ir.IntegerType.get_signless(64)

    @property
    def place(self) -> ir.InsertionPoint:
        """Where the next operation goes."""
        assert self._ip is not None, "moved to somewhere before"
        return self._ip

    def move(self, place: ir.InsertionPoint) -> None:
        """Make what follows there."""
        self._ip = place

    @contextmanager
    def instead_of(self, op: ir.OpView) -> Iterator[None]:
        """What is made meanwhile does the work of `op`, and has its place in the program."""
        outer, self._location = self._location, op.location
        try:
            yield
        finally:
            self._location = outer

    def choice(
        self,
        condition: ir.Value,
        then: Callable[[], Sequence[ir.Value]],
        otherwise: Sequence[ir.Value] = (),
    ) -> list[ir.Value]:
        """An `scf.if`: what `then` makes and gives, or the values of `otherwise`."""
        outer = self.place
        branch = self.create("scf.if", [condition], [value.type for value in otherwise], regions=2)
        self._ip = ir.InsertionPoint(branch.regions[0].blocks.append())
        self.create("scf.yield", then())
        if otherwise:
            self._ip = ir.InsertionPoint(branch.regions[1].blocks.append())
            self.create("scf.yield", otherwise)
        self._ip = outer
        return list(branch.results)

    def repeat(
        self,
        count: int,
        carried: Sequence[ir.Value],
        body: Callable[[ir.Value, list[ir.Value]], Sequence[ir.Value]],
    ) -> ir.Operation:
        """An `scf.for` of `count` turns, each of what `body` makes of the turn's number, an i32,
        and of what is carried, which is `carried` at first.
        """
        outer, types = self.place, [value.type for value in carried]
        bounds = [self.constant(value) for value in (0, count, 1)]
        loop = self.create("scf.for", [*bounds, *carried], types, regions=1)
        block = loop.regions[0].blocks.append(self.i32, *types)
        self._ip = ir.InsertionPoint(block)
        number, *before = block.arguments
        self.create("scf.yield", body(number, before))
        self._ip = outer
        return loop

    def sync(self) -> None:
        """All threads of the agent meet."""
        self.create("nv_tileas.sync")

    def meet(self, *, in_cluster: bool) -> ir.Operation:
        """All threads of the agent meet, or those of all blocks of the cluster."""
        return self.create("nv_tileas.cluster_sync" if in_cluster else "nv_tileas.sync")

    def fence(self, proxy: str) -> None:
        """What this thread did comes before what the proxy does (`nv_tileas.fence`)."""
        self.create("nv_tileas.fence", [], [], {"proxy": ir.StringAttr.get(proxy)})

    def view(self, buffer: ir.Value, stage: ir.Value) -> ir.Value:
        """One stage of a buffer."""
        whole = Buffer.of(buffer.type)
        assert whole is not None
        type_ = Buffer(whole.tile, whole.space, 1).type
        return self.create("nv_tileas.buffer_view", [buffer, stage], [type_]).result

    def reinterpret(self, buffer: ir.Value, type_: ir.Type) -> ir.Value:
        """The same memory by another type."""
        if buffer.type == type_:
            return buffer
        return self.create("nv_tileas.buffer_reinterpret", [buffer], [type_]).result

    def read(self, buffer: ir.Value, type_: ir.Type, few: int = 0) -> ir.Value:
        """Copy a stage to registers, `few` at a time if it is not 0."""
        sizes: dict[str, ir.Attribute] = {
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0]),
            "resultSegmentSizes": ir.DenseI32ArrayAttr.get([1]),
        }
        if few:
            sizes[FEW] = ir.IntegerAttr.get(self.i32, few)
        return self.create("nv_tileas.copy", [buffer], [type_], sizes).result

    def store(self, tile: ir.Value, buffer: ir.Value) -> ir.Operation:
        """Copy a tile to a stage."""
        sizes = {
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1]),
            "resultSegmentSizes": ir.DenseI32ArrayAttr.get([0]),
        }
        return self.create("nv_tileas.copy", [tile, buffer], [], sizes)

    # -- integers -----------------------------------------------------------------------------

    def constant(self, value: int, type_: ir.Type | None = None) -> ir.Value:
        """An i32, or an integer of another type."""
        kind = type_ or self.i32
        attribute = {"value": ir.IntegerAttr.get(kind, value)}
        return self.create("arith.constant", [], [kind], attribute).result

    def number(self, value: int | ir.Value, type_: ir.Type) -> ir.Value:
        """A constant, or a signed i32 that is small, as an integer or index of `type_`."""
        if isinstance(value, int):
            return self.constant(value, type_)
        if value.type == type_:
            return value
        if isinstance(type_, ir.IndexType):
            name = "arith.index_cast"
        else:
            name = "arith.extsi" if ir.IntegerType(type_).width > 32 else "arith.trunci"
        return self.create(name, [value], [type_]).result

    def zeros(self, type_: ir.Type) -> ir.Value:
        """A number that is zero, or a tile of such."""
        tile = isinstance(type_, ir.RankedTensorType)
        element = ir.RankedTensorType(type_).element_type if tile else type_
        floats = isinstance(element, ir.FloatType)
        zero = ir.FloatAttr.get(element, 0.0) if floats else ir.IntegerAttr.get(element, 0)
        value = ir.DenseElementsAttr.get_splat(type_, zero) if tile else zero
        return self.create("arith.constant", [], [type_], {"value": value}).result

    def binary(self, name: str, left: ir.Value, right: ir.Value) -> ir.Value:
        """`arith.<name>`."""
        return self.create(f"arith.{name}", [left, right], [left.type]).result

    def plus(self, value: ir.Value, by: int) -> ir.Value:
        """An i32 and a constant."""
        return self.binary("addi", value, self.constant(by))

    def is_less(self, left: ir.Value, right: ir.Value) -> ir.Value:
        """i1: signed less than."""
        return self.compare(_SLT, left, right)

    def select(self, value: ir.Value, equal: int, then: ir.Value, other: ir.Value) -> ir.Value:
        """`then` if `value` is `equal`, else `other`."""
        flag = self.compare(_EQ, value, self.constant(equal))
        return self.create("arith.select", [flag, then, other], [then.type]).result

    def negated(self, flag: ir.Value) -> ir.Value:
        """The other i1."""
        return self.binary("xori", flag, self.constant(1, flag.type))

    def wide(self, value: ir.Value) -> ir.Value:
        """The integer or index as i64."""
        if value.type == self.i64:
            return value
        name = "arith.index_cast" if isinstance(value.type, ir.IndexType) else "arith.extsi"
        return self.create(name, [value], [self.i64]).result

    def compare(self, predicate: int, left: ir.Value, right: ir.Value) -> ir.Value:
        """`arith.cmpi` with a predicate of `arith.CmpIPredicate`."""
        attribute = {"predicate": ir.IntegerAttr.get(self.i64, predicate)}
        i1 = ir.IntegerType.get_signless(1)
        return self.create("arith.cmpi", [left, right], [i1], attribute).result
