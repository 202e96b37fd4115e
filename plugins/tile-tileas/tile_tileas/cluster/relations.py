"""From a kernel of nv_tileaa to the tiles and rules of `cuts`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from tile_core.mlir import ir
from tile_tileas.analysis.axis import shape_of
from tile_tileas.analysis.tokens import is_weak
from tile_tileas.analysis.views import tiled_view
from tile_tileas.cluster.cuts import NEVER, WHOLE, Conflict, Program, Rule, Seed
from tile_tileas.tile_graph import KINDS, is_tile, kind_of

#: Operations on tiles that can be made again wherever they are used.
SOURCES = ("arith.constant", "ub.poison", "nv_tileaa.make_range", "nv_tileaa.splat")
#: Operations without tiles that may happen in every block.
_REPLICATED = (
    "arith.", "math.", "scf.", "func.", "nv_tileaa.assume", "nv_tileaa.block_tile",
    "nv_tileaa.create_mem_token", "nv_tileaa.get_", "nv_tileaa.join_mem_token",
    "nv_tileaa.make_memref", "nv_tileaa.extract", "nv_tileaa.addptr", "ub.",
    "nv_tileas.cta_rank", "nv_tileas.cluster_sync",
)  # fmt: skip
#: What a program does once, whatever blocks work on it: one of them does it.
ONCE = ("nv_tileaa.assert", "nv_tileaa.print")
#: Rows of an accumulator that a warpgroup multiplies at once, below which columns are cut.
_ROWS = 64


class Relations:
    """Numbers the tiles of a kernel; `program` is what is known of them.

    Raises Conflict for what cannot be done by several blocks.
    """

    def __init__(
        self, func: ir.Operation, parts: int, *, pairs: bool = False, squares: bool = False
    ) -> None:
        """`pairs`: two blocks make each product together, with half of the columns of B each.
        `squares`: sums are cut along their longer side first, as blocks load what they need by
        themselves, and least for squares.
        """
        self._squares = squares
        self.ids: dict[ir.Value, int] = {}
        self.program = Program()
        self._parts, self.pairs = parts, pairs
        self._region(func.regions[0])

    def id(self, value: ir.Value) -> int:
        """The number of a tile."""
        if value not in self.ids:
            self.ids[value] = len(self.program.shapes)
            self.program.shapes.append(tuple(shape_of(value)))
        return self.ids[value]

    def _region(self, region: ir.Region) -> None:
        for block in region.blocks:
            for op in block.operations:
                self._operation(op)

    def _operation(self, op: ir.OpView) -> None:
        name = op.operation.name
        if name in _CONTROL:
            for region in op.regions:
                self._region(region)
            _CONTROL[name](self, op)
            return
        kind = _kind(op)
        if kind in _HANDLERS:
            _HANDLERS[kind](self, op)
        elif not name.startswith((*_REPLICATED, *ONCE)):
            raise Conflict(f"'{name}' is for one block alone")
        elif not name.startswith("scf."):  # of values that are carried, their loop or branch says
            for value in (*op.operands, *op.results):
                if is_tile(value):
                    self.program.whole[self.id(value)] = f"'{name}'"

    # -- rules --------------------------------------------------------------------------------

    def _same(self, values: Sequence[ir.Value], why: str) -> None:
        """All tiles among `values` are cut alike."""
        tiles = [value for value in values if is_tile(value)]
        for left, right in pairwise(tiles):
            self._both(left, right, tuple(range(len(shape_of(left)))), why)

    def _both(self, left: ir.Value, right: ir.Value, axes: tuple[int, ...], why: str) -> None:
        """Axis a of `left` is axis `axes[a]` of `right`, or has no counterpart (NEVER)."""
        back = [NEVER] * len(shape_of(right))
        for at, axis in enumerate(axes):
            if axis >= 0:
                back[axis] = at
        self._rule(left, right, axes, why)
        self._rule(right, left, tuple(back), why)

    def _rule(
        self, source: ir.Value, target: ir.Value, axes: tuple[int, ...], why: str,
        *, whole: bool = True,
    ) -> None:  # fmt: skip
        self.program.rules.append(Rule(self.id(source), self.id(target), axes, whole, why))

    # -- operations ---------------------------------------------------------------------------

    def elementwise(self, op: ir.OpView) -> None:
        """All tiles alike."""
        self._same([*op.operands, *op.results], f"'{op.operation.name}'")

    def source(self, op: ir.OpView) -> None:
        """Any part of it can be made, but of constants that are no splat."""
        held = op.attributes["value"] if op.operation.name == "arith.constant" else None
        if isinstance(held, ir.DenseElementsAttr) and not held.is_splat:
            self.program.whole[self.id(op.results[0])] = "a constant"
        self.id(op.results[0])

    def broadcast(self, op: ir.OpView) -> None:
        """Where the operand has one element, it is whole."""
        source, result = op.operands[0], op.results[0]
        pairs = list(zip(shape_of(source), shape_of(result), strict=True))
        down = tuple(at if one == other else WHOLE for at, (one, other) in enumerate(pairs))
        self._rule(result, source, down, "a broadcast")
        self._rule(source, result, tuple(range(len(pairs))), "a broadcast", whole=False)

    def permute(self, op: ir.OpView) -> None:
        """Axes change places."""
        order = list(ir.DenseI32ArrayAttr(op.attributes["permutation"]))
        axes = tuple(order.index(at) for at in range(len(order)))
        self._both(op.operands[0], op.results[0], axes, "a permutation")

    def view(self, op: ir.OpView) -> None:
        """Axes are the same but for those of one element, or the outermost of more than one element
        is outermost on both sides.
        """
        source, result = op.operands[0], op.results[0]
        if not is_tile(source) or not is_tile(result):
            return
        axes = [NEVER] * len(shape_of(source))
        outer, inner = _long(source), _long(result)
        if [shape_of(source)[at] for at in outer] == [shape_of(result)[at] for at in inner]:
            for there, here in zip(outer, inner, strict=True):
                axes[there] = here
        elif outer and inner and shape_of(result)[inner[0]] % self._parts == 0:
            axes[outer[0]] = inner[0]
        self._both(source, result, tuple(axes), "a change of shape")

    def fold(self, op: ir.OpView) -> None:
        """Cut along other axes than the one that is folded; reductions lose that axis."""
        along = ir.IntegerAttr(op.attributes["axis"]).value
        operands = [value for value in op.operands if is_tile(value)]
        self._same(operands, "a fold")
        reduces = "reduce" in op.operation.name
        for result in op.results:
            rank = len(shape_of(operands[0]))
            axes = [at if at < along or not reduces else at - 1 for at in range(rank)]
            axes[along] = NEVER
            if is_tile(result):
                self._both(operands[0], result, tuple(axes), "a fold")
            else:
                self.program.whole[self.id(operands[0])] = "a fold to a scalar"

    def join(self, op: ir.OpView) -> None:
        """Tiles behind each other, cut along other axes than that."""
        along = ir.IntegerAttr(op.attributes["axis"]).value
        rank = len(shape_of(op.results[0]))
        axes = tuple(NEVER if at == along else at for at in range(rank))
        for operand in op.operands:
            self._both(operand, op.results[0], axes, "tiles behind each other")

    def product(self, op: ir.OpView) -> None:
        """Rows of A and of its scales with those of the result, columns of B and of its scales with
        its columns."""
        a, b, c, *scales = op.operands
        result = op.results[0]
        rank = len(shape_of(c))
        batch, m, n = tuple(range(rank - 2)), rank - 2, rank - 1
        self._same([c, result], "a product")
        if self.pairs:
            self._rule(c, a, (*batch, m, NEVER), "a product")
            self._rule(c, b, (*[NEVER] * len(batch), n, NEVER), "a product")
            self._rule(a, c, (*batch, m, NEVER), "a product", whole=False)
            self.program.seeds.append(Seed(self.id(c), (m,)))
            return
        for left in (a, *scales[:1]):
            self._rule(c, left, (*batch, m, WHOLE), "a product")
            self._rule(left, c, (*batch, m, NEVER), "a product", whole=False)
        for right in (b, *scales[1:]):
            self._rule(c, right, (*batch, WHOLE, n), "a product")
            self._rule(right, c, (*batch, NEVER, n), "a product", whole=False)
        rows = shape_of(c)[m]
        columns = shape_of(c)[n]
        enough = columns < rows or rows // self._parts >= _ROWS
        if self._squares:
            enough = columns <= rows
        axes = (m, n) if enough else (n, m)
        self.program.seeds.append(Seed(self.id(c), axes))

    def load(self, op: ir.OpView) -> None:
        """By pointers like an elementwise operation; tiles of views as they are wanted."""
        if not is_weak(op):
            raise Conflict("an access is ordered")
        self._same([*op.operands, *op.results], "a load")
        self._of_view(op, op.results[0])
        if is_tile(op.results[0]):
            self.id(op.results[0])

    def store(self, op: ir.OpView) -> None:
        """As loads; what is whole is stored by one block."""
        if not is_weak(op):
            raise Conflict("an access is ordered")
        self._same(list(op.operands), "a store")
        tile = next((value for value in op.operands if is_tile(value)), None)
        if tile is not None:
            self.id(tile)
            self._of_view(op, tile)

    def _of_view(self, op: ir.OpView, tile: ir.Value) -> None:
        """Parts of tiles are tiles of a grid, if tiles do not overlap and are parts apart."""
        if not op.operation.name.startswith("nv_tileaa.tiled"):
            return
        view = tiled_view(op.view)
        for axis, (step, extent) in enumerate(zip(view.steps, view.tile, strict=True)):
            if step < extent or step % max(1, extent // self._parts):
                self.program.uncut.add((self.id(tile), axis))

    # -- control flow -------------------------------------------------------------------------

    def loop(self, op: ir.OpView) -> None:
        """Carried values stay as they are."""
        self._carried(op)
        block = op.regions[0].blocks[0]
        ends = _end(block).operands
        groups = zip(
            list(op.operands)[3:], list(block.arguments)[1:], ends, op.results, strict=True
        )
        for group in groups:
            self._same(group, "a value that a loop carries")

    def branch(self, op: ir.OpView) -> None:
        """Both arms give the same."""
        arms = [_end(region.blocks[0]).operands for region in op.regions if len(region.blocks)]
        for at, result in enumerate(op.results):
            self._same([*(arm[at] for arm in arms), result], "a value of a branch")

    def while_loop(self, op: ir.OpView) -> None:
        """What goes around, and what comes out."""
        self._carried(op)
        before, after = (region.blocks[0] for region in op.regions)
        why = "a value that a loop carries"
        turns = zip(op.operands, before.arguments, _end(after).operands, strict=True)
        for group in turns:
            self._same(group, why)
        outs = zip(list(_end(before).operands)[1:], after.arguments, op.results, strict=True)
        for group in outs:
            self._same(group, why)

    def _carried(self, op: ir.OpView) -> None:
        """Tiles that a loop carries, cut along the axis that is outermost in the tile first."""
        for result in op.results:
            if is_tile(result):
                axes = tuple(range(len(shape_of(result))))
                self.program.carried.append(
                    Seed(self.id(result), axes, "a tile that a loop carries")
                )


def _end(block: ir.Block) -> ir.OpView:
    return block.operations[len(block.operations) - 1]


def _long(value: ir.Value) -> list[int]:
    """The axes of more than one element."""
    return [at for at, extent in enumerate(shape_of(value)) if extent > 1]


def _kind(op: ir.OpView) -> str | None:
    """How an operation relates its tiles; most of nv_tileaa as their twins of nv_tileas do."""
    name = op.operation.name
    if name == "nv_tileaa.expand_dims":
        return "view"
    return kind_of(op.operation) or KINDS.get(name.replace("nv_tileaa.", "nv_tileas.", 1))


_HANDLERS: dict[str, Callable[[Relations, ir.OpView], None]] = {
    "same": Relations.elementwise,
    "source": Relations.source,
    "broadcast": Relations.broadcast,
    "permute": Relations.permute,
    "view": Relations.view,
    "reduce": Relations.fold,
    "scan": Relations.fold,
    "cat": Relations.join,
    "dot": Relations.product,
    "load": Relations.load,
    "store": Relations.store,
}
_CONTROL: dict[str, Callable[[Relations, ir.OpView], None]] = {
    "scf.for": Relations.loop,
    "scf.if": Relations.branch,
    "scf.while": Relations.while_loop,
}
