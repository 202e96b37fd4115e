"""tileas-assign-layouts: ask a strategy where every element lives, and make it so."""

from __future__ import annotations

from dataclasses import dataclass

from tile_cute.linear import (
    LinearLayout,
    join,
    permute_dims,
    project_dims,
    reshape,
    slice_dim,
    subtile,
)

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, error_at, option
from tile_tileas.analysis.axis import shape_of
from tile_tileas.analysis.shifted import families
from tile_tileas.dialect import distributed, layout_of
from tile_tileas.dot_plan import WARPS, operand_homes
from tile_tileas.kernel_spec import num_warps
from tile_tileas.layouts import Assignment, inverse_permutation, problem_with
from tile_tileas.reductions import plan_reduction
from tile_tileas.relayout import clone_in, constant_in, converted_behind
from tile_tileas.scans import scan_layout
from tile_tileas.storage import OPERATION_LIMIT, tile_bytes
from tile_tileas.strategies.spread import spread
from tile_tileas.tile_graph import GraphBuilder, is_free, is_tile, kind_of


@dataclass(frozen=True)
class AssignLayouts(Pass):
    """Give every tile a distributed layout, chosen by a layout strategy."""

    name = "tileas-assign-layouts"
    anchor = "func.func"
    statistics = {"conversions": "convert_layout operations inserted"}

    strategy: str = option("blocked", "layout strategy (see `tilec plugins list`)")
    reuse_loads: bool = option(
        False, "threads have elements of loads from others that are shifted (tileas-reuse-loads)"
    )

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        built = GraphBuilder(op, num_warps(op), _families(op) if self.reuse_loads else None)
        assignment = cx.layout_strategy(self.strategy).assign(built.graph)
        problem = problem_with(built.graph, assignment)
        if problem:
            raise error_at(op, f"cannot use the layouts of strategy '{self.strategy}': {problem}")
        materialiser = _Materialiser(built, assignment, cx)
        materialiser.region(op.regions[0])


def _families(func: ir.Operation) -> dict[ir.Value, tuple[int, tuple[int, ...]]]:
    """First results of loads of families -> family, and how far on along each axis."""
    return {
        member.op.results[0]: (number, member.offset)
        for number, family in enumerate(families(func))
        for member in family
    }


class _Materialiser:
    """Sets layouts in program order and converts operands that come in another one."""

    def __init__(self, built: GraphBuilder, assignment: Assignment, cx: PassContext) -> None:
        self._built = built
        self._assignment = assignment
        self._cx = cx
        # Types lose their identity once layouts are set, so the wanted ones are kept aside.
        self._wanted = {value: assignment.values[i] for value, i in built.ids.items()}

    def region(self, region: ir.Region) -> None:
        for block in region.blocks:
            for op in list(block.operations):
                self._operation(op)

    def _operation(self, op: ir.OpView) -> None:
        if op.name == "scf.for":
            self._loop(op)
        elif op.name == "scf.while":
            self._while(op)
        elif op.name == "scf.if":
            self._branch(op)
        elif kind_of(op) is not None:
            getattr(self, f"_{kind_of(op)}")(op)

    # -- one method per node kind ----------------------------------------------------------

    def _source(self, op: ir.OpView) -> None:
        self._set_results(op)

    def _same(self, op: ir.OpView) -> None:
        tiles = [result for result in op.results if is_tile(result)]
        if tiles:
            layout = self._wanted[tiles[0]]
            self._convert_operands(op, layout)
            for tile in tiles:
                self._set_natural(op, tile, layout)

    def _load(self, op: ir.OpView) -> None:
        wanted = self._wanted.get(op.results[0])
        ordered = ir.StringAttr(op.attributes["mem_semantic"]).value != "weak"
        if wanted is None or not ordered or wanted.is_injective:
            self._same(op)
            return
        # Copies are read once and passed on; that is for tiles with fewer elements than threads.
        warps = self._built.graph.num_warps
        layout = spread(wanted.shape, warps, _row_major(wanted.rank), 1)
        self._convert_operands(op, layout)
        self._set_natural(op, op.results[0], layout)

    def _store(self, op: ir.OpView) -> None:
        node = self._built.node_of.get(op.results[0])
        if node is not None:  # a store of a single element has no tiles
            self._convert_operands(op, self._assignment.stores[node])

    def _convert(self, op: ir.OpView) -> None:
        self._set_results(op)

    def _count(self, op: ir.OpView) -> None:
        self._set_results(op)

    def _view(self, op: ir.OpView) -> None:
        wanted = self._wanted[op.results[0]]
        self._convert_operands(op, reshape(wanted, shape_of(op.operands[0])))
        self._set_results(op)

    def _broadcast(self, op: ir.OpView) -> None:
        wanted = self._wanted[op.results[0]]
        self._convert_operands(op, project_dims(wanted, shape_of(op.operands[0])))
        self._set_results(op)

    def _permute(self, op: ir.OpView) -> None:
        axes = tuple(ir.DenseI32ArrayAttr(op.attributes["permutation"]))
        wanted = self._wanted[op.results[0]]
        self._convert_operands(op, permute_dims(wanted, inverse_permutation(axes)))
        self._set_results(op)

    def _cat(self, op: ir.OpView) -> None:
        """Each thread joins its parts; a layout that mixes them across threads comes after."""
        axis = ir.IntegerAttr(op.attributes["axis"]).value
        wanted = self._wanted[op.results[0]]
        part = subtile(wanted, shape_of(op.operands[0]))
        if part is not None:
            self._convert_operands(op, part)
            self._set_results(op)
            return
        part = layout_of(op.operands[0].type)
        assert part is not None
        self._convert_operands(op, part)
        self._set_natural(op, op.results[0], join(part, axis, 2))

    def _slice(self, op: ir.OpView) -> None:
        """Pick registers where threads hold whole slices; else shared memory, if it fits."""
        source, result = op.operands[0], op.results[0]
        wanted = self._wanted[result]
        layout = layout_of(source.type)
        assert layout is not None
        part = subtile(layout, shape_of(result))
        if part is None and tile_bytes(source.type) <= OPERATION_LIMIT:
            self._set_results(op)
            return
        if part is None:
            layout, part = _slices_in_registers(wanted, layout.shape), wanted
        self._convert_operand(op, 0, layout)
        self._set_natural(op, result, part)

    def _insert(self, op: ir.OpView) -> None:
        """Replace registers where threads hold whole slices; else shared memory, if it fits."""
        source, result = op.operands[0], op.results[0]
        whole = self._wanted[result]
        part = subtile(whole, shape_of(source))
        if part is None and tile_bytes(source.type) > OPERATION_LIMIT:
            part = layout_of(source.type)
            assert part is not None
            whole = _slices_in_registers(part, whole.shape)
        if part is not None:
            self._convert_operand(op, 0, part)
        self._convert_operand(op, 1, whole)
        self._set_natural(op, result, whole)

    def _set_natural(self, op: ir.OpView, result: ir.Value, natural: LinearLayout) -> None:
        """`result` comes in layout `natural`; what was wanted is converted to."""
        wanted = self._wanted[result]
        result.set_type(distributed(result.type, natural))
        if wanted != natural:
            self._convert_after(op, result, wanted)

    def _reduce(self, op: ir.OpView) -> None:
        layout = layout_of(op.operands[0].type)
        assert layout is not None
        axis = ir.IntegerAttr(op.attributes["axis"]).value
        if plan_reduction(layout, axis) is None:
            layout = spread(layout.shape, 1 << layout.in_bits("warp"), _row_major(layout.rank), 1)
        self._convert_operands(op, layout)  # several operands fold in one layout
        natural = slice_dim(layout, axis)
        for result in op.results:
            if is_tile(result):
                self._set_natural(op, result, natural)

    def _atomic(self, op: ir.OpView) -> None:
        layout = layout_of(op.operands[0].type)
        if layout is None:
            return
        if not layout.is_injective:
            layout = spread(layout.shape, self._built.graph.num_warps, _row_major(layout.rank), 1)
        self._convert_operands(op, layout)
        self._set_natural(op, op.results[0], layout)

    def _scan(self, op: ir.OpView) -> None:
        axis = ir.IntegerAttr(op.attributes["axis"]).value
        layout = scan_layout(shape_of(op.operands[0]), axis, self._built.graph.num_warps)
        self._convert_operands(op, layout)
        for result in op.results:
            self._set_natural(op, result, layout)

    def _dot(self, op: ir.OpView) -> None:
        warps = self._built.graph.num_warps
        homes = operand_homes(op, self._wanted[op.results[0]], warps, self._cx.target.max_shared)
        for at, layout in enumerate((homes.a, homes.b, homes.c, *homes.scales)):
            if layout is not None:
                self._convert_operand(op, at, layout)
        if homes.warps is not None:
            op.attributes[WARPS] = ir.DenseI32ArrayAttr.get(homes.warps)
        self._set_natural(op, op.results[0], homes.c)

    # -- control flow -----------------------------------------------------------------------

    def _loop(self, op: ir.OpView) -> None:
        body = op.regions[0].blocks[0]
        arguments = list(body.arguments)[1:]
        for at, argument in enumerate(arguments):
            if is_tile(argument):
                wanted = self._wanted[argument]
                self._convert_operand(op, 3 + at, wanted)
                argument.set_type(distributed(argument.type, wanted))
        self.region(op.regions[0])
        self._convert_yield(body, [self._wanted.get(argument) for argument in arguments])
        self._set_carried_results(op, arguments)

    def _while(self, op: ir.OpView) -> None:
        before, after = (region.blocks[0] for region in op.regions)
        for at, argument in enumerate(before.arguments):
            if is_tile(argument):
                self._convert_operand(op, at, self._wanted[argument])
        for block in (before, after):
            for argument in block.arguments:
                if is_tile(argument):
                    argument.set_type(distributed(argument.type, self._wanted[argument]))
        self.region(op.regions[0])
        # scf.condition: the flag stands before what goes on to the second region.
        self._convert_yield(before, [None, *(self._wanted.get(a) for a in after.arguments)])
        self.region(op.regions[1])
        self._convert_yield(after, [self._wanted.get(argument) for argument in before.arguments])
        self._set_carried_results(op, list(after.arguments))

    def _set_carried_results(self, op: ir.OpView, arguments: list[ir.BlockArgument]) -> None:
        for argument, result in zip(arguments, op.results, strict=True):
            if not is_tile(result):
                continue
            wanted = self._wanted[result]
            result.set_type(argument.type)
            if wanted != self._wanted[argument]:
                self._convert_after(op, result, wanted)

    def _branch(self, op: ir.OpView) -> None:
        wanted = [self._wanted.get(result) for result in op.results]
        for region in op.regions:
            self.region(region)
            if wanted:
                self._convert_yield(region.blocks[0], wanted)
        self._set_results(op)

    def _convert_yield(self, block: ir.Block, wanted: list[LinearLayout | None]) -> None:
        terminator = block.operations[len(block.operations) - 1]
        for at, layout in enumerate(wanted):
            if layout is not None:
                self._convert_operand(terminator, at, layout)

    # -- conversions ------------------------------------------------------------------------

    def _set_results(self, op: ir.OpView) -> None:
        for result in op.results:
            if is_tile(result):
                type_ = distributed(result.type, self._wanted[result])
                result.set_type(type_)
                if op.name == "arith.constant":
                    op.attributes["value"] = constant_in(op.attributes["value"], type_)

    def _convert_operands(self, op: ir.OpView, layout: LinearLayout) -> None:
        for at, operand in enumerate(op.operands):
            if is_tile(operand):
                self._convert_operand(op, at, layout)

    def _convert_operand(self, op: ir.OpView, at: int, layout: LinearLayout) -> None:
        operand = op.operands[at]
        if layout_of(operand.type) == layout:
            return
        type_ = distributed(operand.type, layout)
        if is_free(operand):
            source = operand.owner
            op.operands[at] = clone_in(source, type_, ir.InsertionPoint(op)).result
            return
        self._cx.count("conversions")
        op.operands[at] = ir.Operation.create(
            "nv_tileas.convert_layout",
            results=[type_],
            operands=[operand],
            loc=op.location,
            ip=ir.InsertionPoint(op),
        ).result

    def _convert_after(self, op: ir.OpView, value: ir.Value, layout: LinearLayout) -> None:
        self._cx.count("conversions")
        converted_behind(value, distributed(value.type, layout), op)


def _slices_in_registers(part: LinearLayout, shape: tuple[int, ...]) -> LinearLayout:
    """Every thread holds the elements of `part` of every slice of a tile of `shape`."""
    for axis, extent in enumerate(shape):
        part = join(part, axis, extent // part.shape[axis])
    return part


def _row_major(rank: int) -> tuple[int, ...]:
    return tuple(reversed(range(rank)))
