"""tileas-plan-cta: the blocks of a cluster work on one tile block, each on a part of its tiles."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import ClassVar

from tile_tileaa.dialect.dot import BLOCKS

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, option
from tile_core.target import Target
from tile_tileas.analysis.pressure import peak_registers, tile_bits
from tile_tileas.cluster.cuts import WHOLE, Conflict, cuts_of
from tile_tileas.cluster.cutting import Cutting, operations
from tile_tileas.cluster.ordering import meetings
from tile_tileas.cluster.pairs import PAIR, Pairing
from tile_tileas.cluster.relations import SOURCES, Relations
from tile_tileas.cluster.turns import make_in_turns
from tile_tileas.cluster.worth import Worth
from tile_tileas.dialect.cluster import MOST_CTAS, PORTABLE_CTAS
from tile_tileas.dots import SCALED_FAMILY
from tile_tileas.few_warps import (
    FEW_WARPS,
    MANY_WARPS,
    ROWS_OF_FOUR,
    are_chained_powers,
    have_rows_of_four,
)
from tile_tileas.hints import CTAS, asked_ctas, asked_warps, hints_of
from tile_tileas.kernel_products import DOT, least_rows, made_by, operand_bytes
from tile_tileas.kernel_spec import PLANNED_CTAS
from tile_tileas.launch_choice import OTHER_REGISTERS
from tile_tileas.mma.families import FAMILIES, TENSOR, WARP
from tile_tileas.mma.tier import Product
from tile_tileas.mma.warpgroup import WarpgroupTier
from tile_tileas.passes.dot import product_of, scaled_choice
from tile_tileas.passes.turned_dot import transposed
from tile_tileas.storage import storage_bits
from tile_tileas.tile_graph import is_tile

#: Registers of one of its threads that carried tiles may take before they are cut, half of what a
#: thread can have, and those that they take afterwards at most: loads of a step need twice that.
_CARRIED, _CARRIED_CUT = 128, 64
_LANES, _REGISTER_BITS = 32, 32
#: Bits of elements that warps multiply slowly enough for small tiles.
_SLOW_BITS = 16
#: Registers that sums of warps may take of a thread before they are cut, where blocks of a cluster
#: share nothing; stages that small blocks have.
_SUMS, _STAGES = 64, 2
#: Registers of a thread that sums of warps may take at most.
_HELD = 128


@dataclass(frozen=True)
class PlanCta(Pass):
    """Cut the tiles of products along rows or columns over the blocks of a cluster.

    In kernels without products the tiles that loops carry are cut. How many blocks is what the
    kernel's hint `num_cta_in_cga` says, else the module; 0 there leaves it to the compiler, which
    takes as few as let sums stay in registers. A hint that makes a kernel slower (`cluster.worth`)
    is given up, unless hints are to be followed; what the module says is not. Where blocks of a
    cluster share nothing, a hint may get more of them than it asks for. A kernel that several
    blocks cannot share runs in one. A remark says why in both cases. On targets without clusters
    one block makes the parts of such sums one after the other. Products of tcgen05 that are cut
    along rows are made by pairs of blocks together where both can: each then has half of the
    columns of B.
    """

    name = "tileas-plan-cta"
    anchor = "func.func"
    dependent_dialects = ("nv_tileas",)
    statistics: ClassVar[dict[str, str]] = {
        "kernels": "kernels whose tiles are cut",
        "tiles": "tiles that are cut",
        "meetings": "accesses before which the blocks of a cluster meet",
        "shared": "loads of tiles that all blocks of a cluster have whole",
        "paired": "products that pairs of blocks make together",
        "turns": "parts of tiles that one block makes one after the other",
    }

    mma: str = option(
        FAMILIES[0], "the highest kind of instruction that products may run on", choices=FAMILIES
    )

    follow_hints: bool = option(False, "make clusters that hints ask for even where they lose")

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        if "nv_tileaa.kernel" not in op.attributes:
            return
        asked = self._worthwhile(op, asked_ctas(op, cx.target.name), cx)
        parts = asked or self._chosen(op, cx.target)
        if self._is_free_to_add(op, asked, cx.target):
            parts = self._with_more(op, asked, cx)
        # Blocks that load by themselves what they share read least for squares, so that each
        # halving cuts what is longer by then.
        steps = [parts] if cx.target.multicast else [2] * (parts.bit_length() - 1)
        made = 1
        try:
            for step in steps if parts > 1 else ():
                self._cut(op, step, made, cx)
                made *= step
        except Conflict as conflict:
            say = cx.failed if asked > 1 else cx.missed
            say(
                op,
                f"{_blocks(made)} on each tile block, not a cluster of {parts}: {conflict}",
                category="schedule",
                name="ClusterFailed",
            )
        if not cx.target.clusters and _by_warps(op, cx.target, self.mma):
            self._in_turns(op, _turns(op), cx)
        i32 = ir.IntegerType.get_signless(32)
        op.attributes[PLANNED_CTAS] = ir.IntegerAttr.get(i32, made)

    def _worthwhile(self, func: ir.Operation, asked: int, cx: PassContext) -> int:
        """As many of the blocks that a hint asks for as do not make the kernel slower."""
        if self.follow_hints or CTAS not in hints_of(func, cx.target.name):
            return asked
        worth = Worth(cx.target, self.mma, asked_warps(func, cx.target.name))
        parts, reason = asked, None
        while loss := worth.loss(func, parts):
            parts, reason = parts // 2, reason or loss
        if reason:
            cx.missed(
                func,
                f"{_blocks(parts)} on each tile block, not the cluster of {asked} of its hint, "
                f"which would take longer: {reason} ({self.name}.follow-hints makes it)",
                category="schedule",
                name="ClusterGivenUp",
            )
        return parts

    def _is_free_to_add(self, func: ir.Operation, asked: int, target: Target) -> bool:
        """Whether more blocks than a hint asks for may work on a tile block: where blocks of a
        cluster share nothing, they are smaller blocks, and nothing else.

        RTX 5090 (model), MXFP8 of 4096^3 in tiles of 256 x 256 x 128, 2 CTAs: 342 us with two
        blocks, 249 with four.
        """
        hinted = asked > 1 and CTAS in hints_of(func, target.name)
        shares_nothing = target.clusters and not target.multicast
        return hinted and shares_nothing and not self.follow_hints

    def _with_more(self, func: ir.Operation, asked: int, cx: PassContext) -> int:
        """As many blocks as are best, if those are more than a hint asks for."""
        best = self._chosen(func, cx.target)
        if best <= asked:
            return asked
        cx.passed(
            func,
            f"{_blocks(best)} on each tile block, not the {asked} of its hint: they share nothing, "
            f"and smaller ones are faster ({self.name}.follow-hints makes what it asks for)",
            category="schedule",
            name="ClusterEnlarged",
        )
        return best

    def _in_turns(self, func: ir.Operation, parts: int, cx: PassContext) -> None:
        """Tiles whose sums one block cannot hold are made in parts, one after the other."""
        if parts == 1:
            return
        try:
            _separate_sources(func)
            axes = _axes(Relations(func, parts, squares=True), parts)
            if meetings(list(operations(func.regions[0])), axes):
                raise Conflict("accesses are ordered across its parts")
        except Conflict as conflict:
            cx.missed(
                func,
                f"sums take more registers than threads have, and are not made in {parts} turns: "
                f"{conflict}",
                category="schedule",
                name="TurnsFailed",
            )
            return
        make_in_turns(func, axes, parts)
        cx.count("turns", parts)

    def _chosen(self, func: ir.Operation, target: Target) -> int:
        """Blocks that a cluster has best where nobody asks."""
        if not target.clusters or target.multicast or not _by_warps(func, target, self.mma):
            return _chosen(func, target)
        return _for_warps(func, target)

    def _cut(self, func: ir.Operation, parts: int, before: int, cx: PassContext) -> None:
        """Cut tiles in `parts`, in a kernel that is cut for `before` blocks."""
        if not cx.target.clusters:
            raise Conflict(f"{cx.target.name} has no clusters")
        if parts * before > MOST_CTAS:
            raise Conflict(f"a cluster has at most {MOST_CTAS} blocks")
        _separate_sources(func)
        dots = [op for op in operations(func.regions[0]) if op.operation.name == DOT]
        paired = self._paired(func, dots, parts, cx)
        alone = not cx.target.multicast
        axes = paired or _axes(Relations(func, parts, squares=alone), parts)
        meet = meetings(list(operations(func.regions[0])), axes)
        shared = {"multicast": cx.target.multicast, "before": before}
        cutting = Cutting(func, axes, parts, meet, **shared)
        cx.count("shared", cutting.run())
        if paired:
            two = ir.IntegerAttr.get(ir.IntegerType.get_signless(32), PAIR)
            for op in dots:
                op.attributes[BLOCKS] = two
            cx.count("paired", len(dots))
        cx.count("meetings", len(meet))
        cx.count("kernels")
        cx.count("tiles", len(axes))

    def _paired(
        self, func: ir.Operation, dots: Sequence[ir.OpView], parts: int, cx: PassContext
    ) -> dict[ir.Value, int] | None:
        """The axes along which tiles are cut for products of pairs; None if there are none, with a
        remark where the target has such products.
        """
        pairing = Pairing(cx.target, self.mma, asked_warps(func, cx.target.name), parts)
        if not dots or not pairing.exists:
            return None
        problem = pairing.problem(dots)
        if problem is None:
            try:
                return _axes(Relations(func, parts, pairs=True), parts)
            except Conflict as conflict:
                problem = str(conflict)
        cx.missed(
            dots[0].operation,
            f"is made by each block of the cluster alone, not by pairs together: {problem}",
            category="tensorcore",
            name="ProductsNotPaired",
        )
        return None


def _blocks(count: int) -> str:
    return "one block works" if count == 1 else f"a cluster of {count} blocks works"


def _axes(relations: Relations, parts: int) -> dict[ir.Value, int]:
    """The axis of each tile that is cut."""
    if not relations.program.seeds and not relations.program.carried:
        raise Conflict("it has neither products nor loops that carry tiles")
    states = cuts_of(relations.program, parts)
    if relations.pairs and any(
        states[seed.tile] not in seed.axes for seed in relations.program.seeds
    ):
        raise Conflict("a product is whole in every block")
    cuts = {value: states[number] for value, number in relations.ids.items()}
    return {value: axis for value, axis in cuts.items() if axis != WHOLE}


def _chosen(func: ir.Operation, target: Target) -> int:
    """As few blocks as let every product run on warpgroups that one block is too small for.

    H100, 4096^3 (model), TFLOP/s in one block and in two: f16 in tiles of 256 x 256 x 64 232 and
    718, e4m3 in tiles of 128 x 256 x 128, whose sums are there twice, 381 and 936.
    """
    ops = list(operations(func.regions[0]))
    if any(op.operation.name == DOT for op in ops):
        return max((_least(op, target) for op in ops if op.operation.name == DOT), default=1)
    return _for_carried(ops)


def _by_warps(func: ir.Operation, target: Target, mma: str) -> bool:
    """Whether warps multiply, and nothing else does."""
    families = made_by(func, target, mma, MANY_WARPS)
    return bool(families) and families <= {WARP, SCALED_FAMILY}


def _for_warps(func: ir.Operation, target: Target) -> int:
    """As few blocks as leave registers beside the sums of warps, or as let two small blocks be on
    an SM where one large one would be.

    RTX 5090, f16, 4096^3 (model, us, in 1 and in more blocks): tiles of 128 x 256 x 64 900 and
    791 (2), of 256 x 256 x 64 1048 and 791 (4): small blocks divide better among SMs, too.
    Elements of fewer bits are multiplied in less time than squares of that size are loaded: e4m3 of
    4 x 8192 x 8192 x 2000 in tiles of 128 x 256 x 128 1883 and 2365 (2). Only sums of those are cut
    that threads cannot hold: 8 x 12288 x 4096 x 2560, tiles of 256 x 256 x 128, 5407 and 4159 (2).
    With block scales, which are copied beside them, small blocks are better again: MXFP8 of 4096^3
    in tiles of 128 x 256 x 128 343 and 248 (2), MXFP4 by 128 x 256 x 256 180 and 131.
    """
    dots = [op for op in operations(func.regions[0]) if op.operation.name == DOT]
    fast = any(storage_bits(op.a.type.element_type) < _SLOW_BITS and not op.sfa for op in dots)
    threads, parts = MANY_WARPS * _LANES, 1
    largest = max(tile_bits(op.results[0]) for op in dots) // (threads * _REGISTER_BITS)
    while largest > parts * (_HELD if fast else _SUMS) and parts < PORTABLE_CTAS:
        parts *= 2
    if fast:
        return parts
    rows = least_rows(func) // ROWS_OF_FOUR
    if rows > parts and rows <= PORTABLE_CTAS and _parts_have_rows_of_four(func, rows):
        return rows
    return 2 if parts == 1 and len(dots) > 1 and _halves_fit(func, target) else parts


def _parts_have_rows_of_four(func: ir.Operation, parts: int) -> bool:
    """Whether chained products of as many blocks have 64 rows each, for four warps: small blocks
    hide each other's phases.

    RTX 5090 (model), attention of 16 heads, 4096 x 4096, us, of one block and of parts: heads of
    128 by 128 x 64 944 and 808 (2), by 256 x 64 950 (2) and 832 (4), of 256 by 128 x 64 2243 and
    1589, of 64 by 256 x 64 461 (2) and 397 (4).
    """
    if not are_chained_powers(func):
        return False
    with _part_of(func, parts) as part:
        return part is not None and have_rows_of_four(part)


@contextmanager
def _part_of(func: ir.Operation, parts: int) -> Iterator[ir.Operation | None]:
    """A copy of a kernel as each of so many blocks that share nothing would have it; None where it
    cannot be cut.
    """
    part = func.clone(ip=False)
    try:
        for _ in range(parts.bit_length() - 1):
            _separate_sources(part)
            Cutting(part, _axes(Relations(part, 2, squares=True), 2), 2, multicast=False).run()
    except Conflict:
        yield None
    else:
        yield part
    finally:
        part.operation.erase()


def _turns(func: ir.Operation) -> int:
    """In how many parts sums have to be made so that the threads of a block hold each of them.

    A100, f16, 4096^3, tiles of 256 x 256 x 64 (model, us): 1376 at once, with 2,644 bytes of
    spills, 702 in two turns, with 112.
    """
    dots = [op for op in operations(func.regions[0]) if op.operation.name == DOT]
    bits = max((tile_bits(op.results[0]) for op in dots), default=0)
    parts = 1
    while bits // (MANY_WARPS * _LANES * _REGISTER_BITS) > parts * _HELD:
        parts *= 2
    return parts


def _halves_fit(func: ir.Operation, target: Target) -> bool:
    """Whether a block's four warps have the registers for half of its tiles where they have not for
    all, and two such blocks fit into an SM with two stages: each computes while the other one
    multiplies, and threads that meet are half as many.

    RTX 5090, attention of 32 heads of 4096 x 64, tiles of 128 x 64 (model, us): 877 and 751.
    """
    room = min(target.max_registers, target.registers // (FEW_WARPS * _LANES * 2))
    if peak_registers(func, FEW_WARPS) + OTHER_REGISTERS <= room:
        return False
    with _part_of(func, 2) as half:
        if half is None or peak_registers(half, FEW_WARPS) + OTHER_REGISTERS > room:
            return False
        return 2 * _STAGES * operand_bytes(half) <= target.max_shared


def _for_carried(ops: Sequence[ir.OpView]) -> int:
    """As few blocks as leave registers beside the tiles that a loop carries.

    Two sums of 32 x 1024 in f32 (model, us, in 1, 2, 4 and 8 blocks): H100 15.1, 4.6, 4.4 and 4.1,
    B200 26.2, 3.9, 3.1 and 2.6; in one block, whose registers they would fill, most are spilled.
    """
    bits = max((sum(map(tile_bits, op.results)) for op in ops if _is_loop(op)), default=0)
    each = bits // (MANY_WARPS * _LANES * _REGISTER_BITS)
    parts = 1
    while each > _CARRIED and each > parts * _CARRIED_CUT and parts < PORTABLE_CTAS:
        parts *= 2
    return parts


def _is_loop(op: ir.OpView) -> bool:
    return op.operation.name in ("scf.for", "scf.while")


def _least(dot: ir.OpView, target: Target) -> int:
    if dot.sfa is not None:
        return _least_for_scales(dot, target)
    tier = WarpgroupTier()
    whole = product_of(dot, list(dot.operands)[:3], target, MANY_WARPS)
    if whole.shape[0] == 1:
        whole = replace(whole, rank=2)  # no batch: instructions for matrices take it

    def fits(product: Product) -> bool:
        ways = (product, transposed(dot, product))
        return any(way is not None and isinstance(tier.choose(way), str) for way in ways)

    return next((parts for parts in (1, 2, 4) if fits(whole.part(parts))), 1)


def _least_for_scales(dot: ir.OpView, target: Target) -> int:
    """As few blocks as have columns of tensor memory for sums and block scales: sums of 256 x 256
    alone take all of one block's.
    """
    fitting = (n for n in (1, 2, 4) if scaled_choice(dot, target, TENSOR, MANY_WARPS, n))
    return next(fitting, 1)


def _separate_sources(func: ir.Operation) -> None:
    """A source of its own for each use: each may be cut in its own way."""
    for op in list(operations(func.regions[0])):
        if op.operation.name not in SOURCES or not is_tile(op.results[0]):
            continue
        uses = list(op.results[0].uses)
        for use in uses[1:]:
            clone = op.operation.clone(ip=ir.InsertionPoint(op))
            use.owner.operands[use.operand_number] = clone.results[0]
