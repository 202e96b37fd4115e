"""tileas-flatten-loops: sums of products over two loops, one in the other, take one loop."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tile_core.insertion import Inserter
from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext
from tile_tileas.analysis.bounds import BoundsAnalysis
from tile_tileas.analysis.constants import splat_integer
from tile_tileas.cloning import mapped_operands, replace_operands
from tile_tileas.prepare.loops import FACTOR
from tile_tileas.sched.facts import facts_of, is_pure

_FOR = "scf.for"
_PRODUCTS = ("nv_tileaa.dot", "nv_tileaa.dot_scaled")
#: Operations of the outer loop, each of which is done in every step then.
_MOST_BESIDE = 64
#: Steps of an inner loop, if that is known, from which on its beginning and end are of no account.
_LONG = 64
#: Bits of a counter that holds all steps of two loops of 32.
_WIDE = 64
_SLT, _SGE = 2, 5  # arith.CmpIPredicate


@dataclass(frozen=True)
class FlattenLoops(Pass):
    """Make one loop of two that add products up together, the inner one of which stands alone in
    the outer one but for what computes places, as in a convolution over taps and channels. What
    runs ahead in a loop fills and empties once then, and not with each turn of the outer one.

    The variables of both are carried from step to step, so that nothing is divided. Steps are
    counted in 64 bits where their number may not fit into the variables' type.
    """

    name = "tileas-flatten-loops"
    anchor = "func.func"
    statistics = {"loops": "nests of loops that became one"}

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        while True:
            nests = [nest for region in op.regions for nest in _nests(region)]
            # Of the program as it is by now.
            bounds = BoundsAnalysis(op) if nests else None
            sizes = [(nest, nest.bits(bounds)) for nest in nests if bounds is not None]
            if not any(bits for _, bits in sizes):
                return
            for nest, bits in sizes:
                if bits:
                    _Flattening(nest, bits).run()
                    cx.count("loops")


@dataclass(frozen=True)
class _Nest:
    """An inner loop that carries on what its outer one does, and gives it back; and perhaps numbers
    that begin anew each time, as the variables of loops that it was made of.
    """

    outer: ir.OpView
    inner: ir.OpView
    #: Of each value that the inner loop carries which one of the outer loop's it is; None: of none.
    places: tuple[int | None, ...]

    def bits(self, bounds: BoundsAnalysis) -> int:
        """What the number of all steps fits into; 0 if a variable might not fit into its type one
        step behind the last.
        """
        width = self.outer.operands[0].type.width
        total = 1
        for loop in (self.outer, self.inner):
            first, last, step = (bounds[value] for value in list(loop.operands)[:3])
            if last.hi + step.hi > 1 << (width - 1) or step.lo <= 0 or first.lo < 0:
                return 0
            total *= max(0, -(-(last.hi - first.lo) // step.lo))
        return next((bits for bits in (width, _WIDE) if total < 1 << (bits - 1)), 0)


def _nests(region: ir.Region) -> Iterator[_Nest]:
    for block in region.blocks:
        for op in block.operations:
            inside = [nest for inner in op.regions for nest in _nests(inner)]
            yield from inside
            nest = _nest(op) if op.operation.name == _FOR and not inside else None
            if nest is not None:
                yield nest


def _nest(outer: ir.OpView) -> _Nest | None:
    *beside, end = outer.regions[0].blocks[0].operations
    loops = [op for op in beside if op.operation.name == _FOR]
    if len(loops) != 1 or beside[-1].operation.name != _FOR:
        return None
    inner = loops[0]
    if not (_is_plain(outer, inner) and _adds_products(inner) and _computes(beside[:-1], outer)):
        return None
    block = outer.regions[0].blocks[0]
    arguments, given = list(block.arguments)[1:], list(inner.operands)[3:]
    if any(sum(1 for _ in argument.uses) > 1 for argument in arguments):
        return None  # by something else than the inner loop, which carries it on
    places = tuple(arguments.index(v) if v in arguments else None for v in given)
    back = dict(zip(places, inner.results, strict=True))
    own = [at for at, place in enumerate(places) if place is None]
    if len(places) - len(own) != len(arguments) or len(back) != len(arguments) + bool(own):
        return None
    if any(back[place] != value for place, value in enumerate(end.operands)):
        return None
    restart = all(
        not _is_inside(given[at], block)
        and isinstance(given[at].type, ir.IntegerType)
        and not any(True for _ in inner.results[at].uses)
        for at in own
    )
    return _Nest(outer, inner, places) if restart else None


def _is_plain(outer: ir.OpView, inner: ir.OpView) -> bool:
    """Whether both count alike, and the inner one always from and to the same."""
    block = outer.regions[0].blocks[0]
    types = {str(loop.operands[0].type) for loop in (outer, inner)}
    signs = any("unsignedCmp" in loop.attributes for loop in (outer, inner))
    asked = any(FACTOR in loop.attributes for loop in (outer, inner))
    if len(types) != 1 or signs or asked or not isinstance(outer.operands[0].type, ir.IntegerType):
        return False
    bounds = list(inner.operands)[:3]
    if any(_is_inside(value, block) for value in bounds):
        return False
    steps = [splat_integer(value) for value in bounds]
    known = None not in steps
    return not known or (steps[1] or 0) - (steps[0] or 0) < _LONG * (steps[2] or 1)


def _is_inside(value: ir.Value, block: ir.Block) -> bool:
    owner = value.owner
    return (owner if isinstance(owner, ir.Block) else owner.operation.block) == block


def _adds_products(loop: ir.OpView) -> bool:
    return any(op.operation.name in _PRODUCTS for op in loop.regions[0].blocks[0].operations)


def _computes(ops: list[ir.OpView], outer: ir.OpView) -> bool:
    """Whether operations make places, of the variable alone, and are few."""
    carried = set(list(outer.regions[0].blocks[0].arguments)[1:])
    return len(ops) <= _MOST_BESIDE and all(
        is_pure(op)
        and facts_of(op.operation.name).class_ in ("free", "alu", "fma", "divide")
        and not any(isinstance(_element(result), ir.FloatType) for result in op.results)
        and carried.isdisjoint(op.operands)
        for op in ops
    )


def _element(value: ir.Value) -> ir.Type:
    return value.type.element_type if isinstance(value.type, ir.RankedTensorType) else value.type


class _Flattening(Inserter):
    def __init__(self, nest: _Nest, bits: int) -> None:
        super().__init__()
        self._nest, self._location = nest, nest.outer.location
        self._ip = ir.InsertionPoint(nest.outer)
        self._type = nest.outer.operands[0].type
        self._counter = ir.IntegerType.get_signless(bits)

    def run(self) -> None:
        """Put the one loop in the place of both."""
        outer, inner = self._nest.outer, self._nest.inner
        place, self._ip = self._ip, ir.InsertionPoint(self._outermost())
        total = self._binary("muli", self._trips(outer), self._trips(inner))
        zero, one = (self._number(value, self._counter) for value in (0, 1))
        self._ip = place
        begins = [*self._own(), *(loop.operands[0] for loop in (outer, inner))]
        given = [*list(outer.operands)[3:], *begins]
        new = self.create(
            _FOR,
            [zero, total, one, *given],
            [value.type for value in given],
            {name: inner.attributes[name] for name in inner.attributes},
            regions=1,
        )
        types = [self._counter, *(value.type for value in given)]
        block = new.regions[0].blocks.append(*types, arg_locs=[self._location] * len(types))
        self._ip = ir.InsertionPoint(block)
        self._fill(list(block.arguments)[1:])
        for old, result in zip(outer.results, new.results, strict=False):
            old.replace_all_uses_with(result)
        outer.operation.erase()

    def _own(self) -> list[ir.Value]:
        """What numbers of the inner loop begin with each time."""
        given = list(self._nest.inner.operands)[3:]
        return [v for v, place in zip(given, self._nest.places, strict=True) if place is None]

    def _outermost(self) -> ir.OpView:
        """The outermost loop around both that has none of their bounds in its body."""
        bounds = [v for one in (self._nest.outer, self._nest.inner) for v in list(one.operands)[:3]]
        found = self._nest.outer
        while True:
            block = found.operation.block
            around = block.owner
            if around.operation.name != _FOR or any(_is_inside(v, block) for v in bounds):
                return found
            found = around

    def _fill(self, arguments: list[ir.Value]) -> None:
        outer, inner, places = self._nest.outer, self._nest.inner, self._nest.places
        *carried, far, near = arguments
        blocks = [loop.regions[0].blocks[0] for loop in (outer, inner)]
        # Numbers of the inner loop's own come behind what both carry.
        behind = iter(range(len(outer.results), len(carried)))
        at = [next(behind) if place is None else place for place in places]
        known: dict[ir.Value, ir.Value] = {
            blocks[0].arguments[0]: far,
            blocks[1].arguments[0]: near,
        }
        own: list[ir.Value] = list(blocks[1].arguments)[1:]
        known |= {argument: carried[n] for argument, n in zip(own, at, strict=True)}
        *beside, _, _ = blocks[0].operations
        *steps, end = blocks[1].operations
        for op in (*beside, *steps):
            wanted = mapped_operands(op, known.get)
            clone = op.operation.clone(ip=self._ip)
            replace_operands(clone, wanted)
            known |= dict(zip(op.results, clone.results, strict=True))
        yielded: list[ir.Value] = list(end.operands)
        for n, value in zip(at, yielded, strict=True):
            carried[n] = known.get(value, value)
        ends, variables = self._next(far, near)
        for n, begin in enumerate(self._own(), len(outer.results)):
            carried[n] = self._either(ends, begin, carried[n])
        self.create("scf.yield", [*carried, *variables])

    def _next(self, far: ir.Value, near: ir.Value) -> tuple[ir.Value, list[ir.Value]]:
        """Whether the inner loop ends, and both variables in the step that follows."""
        outer, inner = (list(loop.operands) for loop in (self._nest.outer, self._nest.inner))
        near = self._binary("addi", near, inner[2])
        ends = self._compare(_SGE, near, inner[1])
        further = self._binary("addi", far, outer[2])
        return ends, [self._either(ends, further, far), self._either(ends, inner[0], near)]

    def _trips(self, loop: ir.OpView) -> ir.Value:
        """Steps of a loop."""
        first, last, step = list(loop.operands)[:3]
        way = self._binary("subi", last, first)
        rest = self._binary("subi", step, self._number(1))
        count = self._binary("divsi", self._binary("addi", way, rest), step)
        none = self._number(0)
        steps = self._either(self._compare(_SLT, first, last), count, none)
        if self._counter == self._type:
            return steps
        return self.create("arith.extsi", [steps], [self._counter]).result

    def _number(self, value: int, type_: ir.Type | None = None) -> ir.Value:
        kind = type_ or self._type
        attribute = {"value": ir.IntegerAttr.get(kind, value)}
        return self.create("arith.constant", [], [kind], attribute).result

    def _binary(self, name: str, left: ir.Value, right: ir.Value) -> ir.Value:
        return self.create(f"arith.{name}", [left, right], [left.type]).result

    def _compare(self, predicate: int, left: ir.Value, right: ir.Value) -> ir.Value:
        number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate)
        truth = ir.IntegerType.get_signless(1)
        return self.create("arith.cmpi", [left, right], [truth], {"predicate": number}).result

    def _either(self, flag: ir.Value, left: ir.Value, right: ir.Value) -> ir.Value:
        return self.create("arith.select", [flag, left, right], [left.type]).result
