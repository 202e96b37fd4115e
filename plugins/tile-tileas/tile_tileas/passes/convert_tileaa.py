"""convert-tileaa-to-tileas: memory, shape and reduction operations get their nv_tileas form.

Elementwise operations, views of memory and tokens have no nv_tileas twin and stay as they are
until the LLVM level (the bridge set).
"""

from __future__ import annotations

from dataclasses import dataclass

from tile_cute.atoms.tensor_memory import COLUMNS
from tile_tileaa.dialect.accesses import operands_by_name
from tile_tileaa.dialect.extended import NOT_COMPILED
from tile_tileaa.dialect.types import element_of, is_float
from tile_tileaa.passes.cudatile.gather import ViewAddresses

from tile_core.convert import KEEP, Conversion, Replacement
from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, error_at, option
from tile_core.target import Target
from tile_tileas.analysis.axis import AxisAnalysis
from tile_tileas.analysis.bounds import BoundsAnalysis
from tile_tileas.analysis.pressure import peak_registers
from tile_tileas.analysis.tokens import TokenOrder
from tile_tileas.copying.ahead import SPECIALIZE
from tile_tileas.kernel_products import (
    ROWS,
    chained_columns,
    least_rows,
    made_by,
    makes_powers,
    operand_bytes,
)
from tile_tileas.mma.families import FAMILIES, TENSOR
from tile_tileas.one_warpgroup import OneWarpgroup
from tile_tileas.passes.ruleset import DotState, rules
from tile_tileas.tma.refusals import SINCE, SOURCES, Knowledge

#: Attribute of a kernel: how it is launched.
SPEC = "nv_tileaa.kernel_spec"
#: Attribute of kernels whose tiles are cut: over how many blocks of a cluster (i32).
PLANNED_CTAS = "nv_tileas.num_ctas"
_FEW_WARPS = 4
#: Registers of a thread for addresses, fragments of a step, flags; measured on products.
OTHER_REGISTERS = 95
#: Tiles, of the registers that a thread may have, with which most of these are not spilt.
_PART = 0.6
#: The same where all products are tcgen05's, and their operands fit beside those of other blocks.
#: Sums come from tensor memory when they are read, operands never are in registers, and few tiles
#: are whole at once. B200 (model), causal attention of 128 x 128 x 64: 1.4, spills of 216 bytes,
#: 535.6 us with one block and 428.8 with two.
_PART_IN_TENSOR = 1.5
#: The same of chained products (`pipelining.tcgen05_paired`), whose sums fit beside those of other
#: blocks. B200 (model), attention of 128 x 128 x 128: 1.8, spills of 112 bytes, and of 548 with a
#: mask; 293 us with one block and 260 with two, causal 629 and 566.
_PART_CHAINED = 1.8
#: Blocks of a multiprocessor whose chained products are made in turn.
_PAIR, _FOUR = 2, 4
#: Warps of all of them, each of which has 128 registers: fewer spill.
_WARPS_IN_TURN = 16
#: What a thread needs whatever its tiles are.
_LEAST_REGISTERS = 32

_SAME_NAME = (
    "atomic_cas", "atomic_rmw", "cat", "extract_slice", "insert_slice", "load", "multimem", "store",
    "tiled_load", "tiled_store", "view",
)  # fmt: skip


@rules.on(*(f"nv_tileaa.{name}" for name in _SAME_NAME))
def same_name(op: ir.OpView, cx: Conversion) -> list[ir.Value]:
    """nv_tileaa.x => nv_tileas.x, operands one to one, attributes kept"""
    new = cx.create(
        op.name.replace("nv_tileaa", "nv_tileas"),
        list(op.operands),
        [result.type for result in op.results],
        _volatile(_attributes(op)),
    )
    return list(new.results)


def _volatile(attributes: dict[str, ir.Attribute]) -> dict[str, ir.Attribute]:
    """Volatile accesses are relaxed ones of the whole system (PTX ISA, "ld.volatile")."""
    weak = "mem_semantic" in attributes and (
        ir.StringAttr(attributes["mem_semantic"]).value == "weak"
    )
    if "volatile" in attributes and weak:
        attributes["mem_semantic"] = ir.StringAttr.get("relaxed")
        attributes["mem_scope"] = ir.StringAttr.get("sys")
    return attributes


@rules.on("nv_tileaa.clampf")
def clampf(op: ir.OpView, cx: Conversion) -> ir.Value:
    """clampf(x, low, high) => min(max(x, low), high)"""
    names = ("maximumf", "minimumf") if "propagate_nan" in op.attributes else ("maxnumf", "minnumf")
    value, *limits = op.operands
    for name, limit in zip(names, limits, strict=True):
        value = cx.create(f"arith.{name}", [value, limit], [value.type]).result
    return value


@rules.on("nv_tileaa.tiled_atomic_rmw")
def tiled_atomic_rmw(op: ir.OpView, cx: Conversion) -> list[ir.Value]:
    """tiled_atomic_rmw => atomic_rmw through pointers, masked where the tile leaves the memref"""
    given, coords = operands_by_name(op), list(op.coords)
    value, token = given["value"], [given["token"]] if "token" in given else []
    where = ViewAddresses(op, cx, given["view"], "nv_tileas.view").of(coords)
    attributes = _volatile(_attributes(op))
    attributes.pop("in_bounds", None)
    mode = ir.StringAttr(attributes["rmw_mode"]).value
    if mode == "add" and is_float(element_of(value.type)):
        attributes["rmw_mode"] = ir.StringAttr.get("addf")
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([1, 1, 1, len(token)])
    made = cx.create(
        "nv_tileas.atomic_rmw",
        [where.pointers, value, where.inside, *token],
        [result.type for result in op.results],
        attributes,
    )
    return list(made.results)


@rules.on(*NOT_COMPILED)
def not_compiled(op: ir.OpView, cx: Conversion) -> Replacement:
    """what is declared and verified, but has no meaning that code could be made of"""
    raise error_at(
        op,
        f"is not supported by '{cx.name}': the specification describes no conversion of it",
        hint="write it with other operations: a product of tiles that are loaded for each place "
        "of the filter",
    )


@rules.on("nv_tileaa.expand_dims")
def expand_dims(op: ir.OpView, cx: Conversion) -> ir.Value:
    """expand_dims => view"""
    return cx.create("nv_tileas.view", list(op.operands), [op.results[0].type]).result


@rules.on(*(f"nv_tileaa.{name}" for name in ("reduce", "reduce_mixed", "scan", "scan_mixed")))
def fold(op: ir.OpView, cx: Conversion) -> list[ir.Value]:
    """nv_tileaa.reduce => nv_tileas.reduce, the region moved"""
    new = cx.create(
        op.operation.name.replace("nv_tileaa", "nv_tileas"),
        list(op.operands),
        [result.type for result in op.results],
        _attributes(op),
        regions=1,
    )
    op.regions[0].blocks[0].append_to(new.regions[0])
    cx.convert_region(new.regions[0])
    return list(new.results)


@rules.on("nv_tileaa.yield", "nv_tileaa.yield_mixed")
def yield_(op: ir.OpView, cx: Conversion) -> Replacement:
    """nv_tileaa.yield => nv_tileas.yield"""
    name = op.operation.name.replace("nv_tileaa", "nv_tileas")
    cx.create(name, list(op.operands), attributes=_attributes(op))
    op.operation.erase()
    return KEEP


def _attributes(op: ir.OpView) -> dict[str, ir.Attribute]:
    return {name: op.attributes[name] for name in op.attributes}


@dataclass(frozen=True)
class ConvertTileAAToTileAS(Pass):
    """Convert memory, shape and reduction operations of nv_tileaa to nv_tileas."""

    name = "convert-tileaa-to-tileas"
    anchor = "func.func"
    dependent_dialects = ("nv_tileas",)

    mma: str = option(
        FAMILIES[0], "the highest kind of instruction that products may run on", choices=FAMILIES
    )

    tma_descriptors: str = option(
        "off",
        "where tensor maps come from, which bring tiles past registers: 'host', 'device' or 'off'",
        choices=(*SOURCES, "off"),
    )
    strategy: str = option("unspecialize", "'none': no load runs ahead of its loop")
    occupancy: int = option(
        0, "blocks of a multiprocessor at once, for kernels without a hint; 0 leaves it open"
    )

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        self._attach_kernel_spec(op, cx)
        ruleset = rules.joined(cx.services.patterns(self.name))
        warps = num_warps(op) if SPEC in op.attributes else 0
        state = DotState(self.mma, warps)
        Conversion(ruleset, lambda type_: type_, (), cx, state).run(op)

    def _attach_kernel_spec(self, func: ir.Operation, cx: PassContext) -> None:
        """The launch record: module defaults, over which the hints for this target stand."""
        if "nv_tileaa.kernel" not in func.attributes:
            return
        parent = func.parent
        assert parent is not None, "a kernel stands in its gpu.module"
        module = parent.attributes
        for name in ("tt.num_warps", "tt.num_ctas"):
            if name not in module:
                raise error_at(parent, f"has no '{name}', which its kernels are launched with")
        hints = hints_of(func, cx.target.name)
        default, ctas = (
            ir.IntegerAttr(module[name]).value for name in ("tt.num_warps", "tt.num_ctas")
        )
        if self.occupancy:
            hints = {"occupancy": self.occupancy, **hints}
        elif not _in_cluster(func, ctas, hints) and hints.get("occupancy", _PAIR) >= _PAIR:
            hints = self._in_turn(func, cx, default, hints)
        spec = {
            "num_warps": self._warps(func, cx, default, hints),
            "num_ctas": _ctas(func, cx, ctas, hints),
        }
        if "occupancy" in hints:
            spec["occupancy"] = self._occupancy(func, cx, spec["num_warps"], hints["occupancy"])
        i32 = ir.IntegerType.get_signless(32)
        func.attributes[SPEC] = ir.DictAttr.get(
            {key: ir.IntegerAttr.get(i32, value) for key, value in spec.items()}
        )

    def _warps(
        self, func: ir.Operation, cx: PassContext, default: int, hints: dict[str, int]
    ) -> int:
        """The kernel's hint, else the module's number, else (0) the fewest whose registers suffice.

        Four warps, unless the tiles that are live at once would take more of a thread's registers
        than its share of the register file leaves beside addresses and fragments; then eight, but
        for products that one warpgroup makes better alone.
        """
        asked = _asked_warps(hints, default)
        if asked:
            return asked
        room = (
            registers_of_thread(cx.target, _FEW_WARPS, hints.get("occupancy", 1)) - OTHER_REGISTERS
        )
        few = (
            peak_registers(func, _FEW_WARPS) <= room
            or self._few_in_turn(func, cx, hints.get("occupancy", 1))
            or self._one_group(func, cx)
        )
        return _FEW_WARPS if few else 2 * _FEW_WARPS

    def _few_in_turn(self, func: ir.Operation, cx: PassContext, blocks: int) -> bool:
        """Whether four warps are better off with chained products whose sums tensor memory keeps:
        of 64 rows eight have parts of rows, and meet for what folds them; and four blocks leave
        registers to four.

        B200 (model), attention of 16 heads, 4096 x 4096, two blocks of eight warps and of four, us:
        64 x 64 of heads of 128 274 and 247, 64 x 128 of 64 193 and 155; but 128 x 128 of heads of
        128 127 and 140, of 64 94 and 132.
        """
        columns = self._columns(func, cx, _FEW_WARPS) if makes_powers(func) else 0
        short = blocks >= _PAIR and least_rows(func) < ROWS
        return 0 < columns <= COLUMNS // blocks and (short or blocks >= _FOUR)

    def _in_turn(
        self, func: ir.Operation, cx: PassContext, default: int, hints: dict[str, int]
    ) -> dict[str, int]:
        """Four blocks at once, or two where no hint says how many, of chained products whose sums
        leave columns to all: one has powers while another one multiplies. Without powers there is
        not that much to hide.

        B200 (model), attention of 16 heads, 4096 x 4096, one block and two, us: 128 x 128 of heads
        of 128 164 and 127, causal 95 and 69, of 64 142 and 94, of 32 125 and 84; 128 x 64 236 and
        173. Two layers in one kernel: 25 and 37. Two blocks and four: 64 x 64 of heads of 64 198
        and 136.

        Tiles of 128 rows have four if a hint says so, of four warps then: faster where there are
        enough blocks, and slower where each has a multiprocessor to itself. 128 x 64 of heads of
        64, two blocks of eight warps and four of four: 64 blocks 46 us and 69, 256 59 and 78, 512
        117 and 103, 1024 226 and 195.
        """
        if self.tma_descriptors == "off" or self.strategy == "none" or not makes_powers(func):
            return hints
        if not self._columns(func, cx, _FEW_WARPS):
            return hints
        for blocks in (_FOUR, _PAIR) if least_rows(func) < ROWS else (_PAIR,):
            if blocks <= hints.get("occupancy", 1):
                return hints
            more = {**hints, "occupancy": blocks}
            warps = self._warps(func, cx, default, more)
            if blocks * warps > _WARPS_IN_TURN:
                continue
            needs = self._needs(func, cx, warps)
            if 0 < needs.columns <= COLUMNS // blocks and self._fits(needs, blocks, cx):
                cx.passed(
                    func,
                    f"{blocks} blocks of a multiprocessor at once: sums of chained products leave "
                    "columns of tensor memory to all, and one computes while another one "
                    "multiplies",
                    category="occupancy",
                    name="InTurn",
                )
                return more
        return hints

    def _columns(self, func: ir.Operation, cx: PassContext, warps: int) -> int:
        """Columns of chained products' sums; 0 where tcgen05 does not make all products."""
        return chained_columns(func) if self._in_tensor(func, cx, warps) else 0

    def _in_tensor(self, func: ir.Operation, cx: PassContext, warps: int) -> bool:
        """Whether tcgen05 makes all products of a kernel, which has some."""
        return made_by(func, cx.target, self.mma, warps) == {TENSOR}

    def _needs(self, func: ir.Operation, cx: PassContext, warps: int) -> _Needs:
        in_tensor = self._in_tensor(func, cx, warps)
        beside = cx.target.max_shared // max(1, operand_bytes(func)) if in_tensor else 0
        columns = chained_columns(func) if in_tensor else 0
        return _Needs(warps, peak_registers(func, warps), beside, columns)

    @staticmethod
    def _fits(needs: _Needs, blocks: int, cx: PassContext) -> bool:
        """Whether so many blocks run without most registers being spilt."""
        in_pairs = 0 < needs.columns <= COLUMNS // blocks
        part = _PART_CHAINED if in_pairs else _PART_IN_TENSOR
        part = part if blocks <= needs.beside else _PART
        given = registers_of_thread(cx.target, needs.warps, blocks)
        return _has_room(needs.registers, given, part, cx)

    def _occupancy(self, func: ir.Operation, cx: PassContext, warps: int, blocks: int) -> int:
        """As many blocks at once as the hint says, or as have columns of tensor memory, and run
        without most registers being spilt.
        """
        needs = self._needs(func, cx, warps)
        columns, wanted = needs.columns, needs.registers
        fitting = blocks
        while fitting > 1 and columns > COLUMNS // fitting:
            fitting -= 1
        if fitting != blocks:
            cx.missed(
                func,
                f"occupancy is {fitting}, not {blocks}: sums of chained products take {columns} "
                f"columns of tensor memory, of {COLUMNS // blocks} for each of so many blocks",
            )
            blocks = fitting
        while fitting > 1 and not self._fits(needs, fitting, cx):
            fitting -= 1
        if fitting != blocks:
            cx.missed(
                func,
                f"occupancy is {fitting}, not {blocks}: so many blocks leave "
                f"{registers_of_thread(cx.target, warps, blocks)} registers to a thread, and its "
                f"tiles alone take about {wanted}",
            )
        return fitting

    def _one_group(self, func: ir.Operation, cx: PassContext) -> bool:
        """Whether one warpgroup makes the kernel's products better alone."""
        if self.tma_descriptors == "off" or self.strategy == "none" or cx.target.sm < SINCE:
            return False
        axis, bounds = cx.analysis(AxisAnalysis, func), cx.analysis(BoundsAnalysis, func)
        agents = self.strategy == SPECIALIZE
        known = Knowledge(func, axis, bounds, TokenOrder(), self.tma_descriptors, agents)
        return OneWarpgroup(cx.target, self.mma, known).suffices(func)


def asked_warps(func: ir.Operation, target: str) -> int:
    """Warps of a block that the kernel's hint for `target` asks for, else the module; 0 if neither
    does.
    """
    parent = func.parent
    module = {} if parent is None else parent.attributes
    default = ir.IntegerAttr(module["tt.num_warps"]).value if "tt.num_warps" in module else 0
    return _asked_warps(hints_of(func, target), default)


def _asked_warps(hints: dict[str, int], default: int) -> int:
    if "num_worker_warps_per_cta" in hints:
        return min(8, max(4, hints["num_worker_warps_per_cta"]))  # as the hint's definition says
    return default


def _in_cluster(func: ir.Operation, default: int, hints: dict[str, int]) -> bool:
    """Whether several blocks make a tile block together, or a hint asks for it."""
    asked = wanted_ctas(hints, default)
    if PLANNED_CTAS not in func.attributes:
        return asked > 1
    return max(asked, ir.IntegerAttr(func.attributes[PLANNED_CTAS]).value) > 1


def _ctas(func: ir.Operation, cx: PassContext, default: int, hints: dict[str, int]) -> int:
    """Blocks of a cluster that `tileas-plan-cta` has cut the kernel's tiles for; 1 without it."""
    if PLANNED_CTAS in func.attributes:
        return ir.IntegerAttr(func.attributes[PLANNED_CTAS]).value
    if wanted_ctas(hints, default) > 1:
        cx.missed(func, "one block works on each tile block: nothing has cut tiles over several")
    return 1


def wanted_ctas(hints: dict[str, int], default: int) -> int:
    """Blocks of a cluster that the kernel's hint asks for, else the module's number."""
    return hints.get("num_cta_in_cga", default)


def registers_of_thread(target: Target, warps: int, blocks: int) -> int:
    """Registers of a thread if `blocks` blocks of `warps` warps are to run at once."""
    threads = warps * target.warp_size * max(1, blocks)
    return min(target.max_registers, target.registers // threads)


def _has_room(wanted: int, share: int, part: float, cx: PassContext) -> bool:
    fits = share >= _LEAST_REGISTERS and wanted <= part * share
    return share == cx.target.max_registers or fits


def hints_of(func: ir.Operation, target: str) -> dict[str, int]:
    """Integer hints for `target`, else those under `default`."""
    if "nv_tileaa.optimization_hints" not in func.attributes:
        return {}
    hints = ir.DictAttr(func.attributes["nv_tileaa.optimization_hints"])
    found: dict[str, int] = {}
    for key in ("default", target):
        if key in hints:
            for entry in ir.DictAttr(hints[key]):
                if isinstance(entry.attr, ir.IntegerAttr):
                    found[entry.name] = entry.attr.value
    return found


def num_warps(func: ir.Operation) -> int:
    """Warps of a block of this kernel.

    Raises:
        CompileError: the function has no launch record.
    """
    if SPEC not in func.attributes:
        raise error_at(func, "has no kernel_spec; run 'convert-tileaa-to-tileas' before")
    spec = ir.DictAttr(func.attributes[SPEC])
    return ir.IntegerAttr(spec["num_warps"]).value


@dataclass(frozen=True)
class _Needs:
    """What blocks of a kernel need: `registers` of a thread for its tiles, of so many `warps`, and
    `columns` of tensor memory for chained products; `beside`: blocks that shared memory has room
    for, where tensor memory has all sums.
    """

    warps: int
    registers: int
    beside: int
    columns: int


def num_ctas(func: ir.Operation) -> int:
    """Blocks of a cluster that work on a tile block of this kernel together; 1 if nothing says."""
    if SPEC not in func.attributes:
        return 1
    spec = ir.DictAttr(func.attributes[SPEC])
    return ir.IntegerAttr(spec["num_ctas"]).value if "num_ctas" in spec else 1


def occupancy(func: ir.Operation) -> int:
    """Blocks of a multiprocessor at once that hints ask for; 1 if none does."""
    if SPEC not in func.attributes:
        return 1
    spec = ir.DictAttr(func.attributes[SPEC])
    return max(1, ir.IntegerAttr(spec["occupancy"]).value if "occupancy" in spec else 1)
