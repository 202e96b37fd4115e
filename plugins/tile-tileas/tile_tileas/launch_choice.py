"""How many warps a block has, and how many blocks a multiprocessor at once: what hints, options and
the module ask for, else what the kernel's tiles and products are best served by.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from tile_cute.atoms.tensor_memory import COLUMNS

from tile_core.mlir import ir
from tile_core.passes import PassContext
from tile_tileas.analysis.pressure import peak_registers
from tile_tileas.few_warps import FEW_WARPS, MANY_WARPS, have_rows_of_four
from tile_tileas.hints import OCCUPANCY, WARPS, asked_ctas, asked_warps, hints_of
from tile_tileas.kernel_products import (
    ROWS,
    chained_columns,
    columns_at_once,
    in_no_loop,
    least_rows,
    made_by,
    makes_powers,
    operand_bytes,
)
from tile_tileas.kernel_spec import PLANNED_CTAS, registers_of_thread
from tile_tileas.mma.families import TENSOR, WARP

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
#: What the hint of blocks may be at most, as its definition says; verifiers let others pass.
_MOST_BLOCKS = 32
#: Blocks of a multiprocessor whose chained products are made in turn.
_PAIR, _FOUR = 2, 4
#: Warps of all of them, each of which has 128 registers: fewer spill.
_WARPS_IN_TURN = 16
#: What a thread needs whatever its tiles are.
_LEAST_REGISTERS = 32


@dataclass
class LaunchChoice:
    """Chooses for a kernel in nv_tileaa, which runs products on `highest` kind of instruction or on
    lower ones. `ahead`: tensor maps bring tiles ahead of loops; `one_group`: whether one warpgroup
    makes the kernel's products better alone; `occupancy`: blocks that an option asks for, or 0.
    """

    func: ir.Operation
    cx: PassContext
    highest: str
    ahead: bool
    occupancy: int
    one_group: Callable[[], bool]
    _made_by: dict[int, set[str | None]] = field(default_factory=dict, init=False)
    _peaks: dict[int, int] = field(default_factory=dict, init=False)

    def spec(self) -> dict[str, int]:
        """The launch record."""
        blocks = min(_MOST_BLOCKS, max(0, self._hints.get(OCCUPANCY, self.occupancy)))
        free = not self.occupancy and self._planned == 1
        if free and self._hints.get(OCCUPANCY, _PAIR) >= _PAIR:
            blocks = self._in_turn(blocks)
        if free and not blocks and self._waits_for_each:
            blocks = _PAIR
        warps, fitting = self._fitting(blocks) if blocks else (self._warps(1), 0)
        if self._asked_warps not in (0, warps):
            self.cx.missed(
                self.func,
                f"a block has {warps} warps, not the {self._asked_warps} of its hint, whose "
                f"threads would have to hold {self._tiles(self._asked_warps)} registers of tiles "
                "each",
            )
        spec = {"num_warps": warps, "num_ctas": self._ctas()}
        return {**spec, OCCUPANCY: fitting} if blocks else spec

    # -- warps --------------------------------------------------------------------------------

    def _warps(self, blocks: int) -> int:
        """The kernel's hint, else the module's number, else (0) the fewest whose registers suffice.

        Four warps, unless the tiles that are live at once would take more of a thread's registers
        than its share of the register file leaves beside addresses and fragments; then eight, but
        for products that one warpgroup makes better alone. Of more than two blocks eight warps have
        half of the registers each that four have, and half of the tiles, so that more is spilt. A
        hint of four is raised where their threads cannot hold the tiles.
        """
        if self._asked_warps:
            return MANY_WARPS if self._are_too_few else self._asked_warps
        room = registers_of_thread(self.cx.target, FEW_WARPS, blocks) - OTHER_REGISTERS
        few = (
            blocks > _PAIR
            or self._tiles(FEW_WARPS) <= room
            or self._few_in_turn(blocks)
            or self._rows_are_of_four
            or self._one_group_suffices
        )
        return FEW_WARPS if few else MANY_WARPS

    @cached_property
    def _rows_are_of_four(self) -> bool:
        """Whether warps multiply, and four have all rows (`few_warps.py`)."""
        return self._families(FEW_WARPS) == {WARP} and have_rows_of_four(self.func)

    @property
    def _are_too_few(self) -> bool:
        """Whether a hint asks for four warps, whose threads cannot hold tiles that those of eight
        may: products then go without tcgen05 or wgmma, or most is spilt.

        f16, 4096 x 4096 x 2048 (model, us, of four warps and of eight): 256 x 256 x 64 B200 809 and
        52, 128 x 256 x 64 H100 354 and 114.
        """
        held = self._tiles(FEW_WARPS) <= self.cx.target.max_registers
        return WARPS in self._hints and self._asked_warps == FEW_WARPS and not held

    def _few_in_turn(self, blocks: int) -> bool:
        """Whether two blocks of four warps are better off with chained products whose sums tensor
        memory keeps: of 64 rows eight have parts of rows, and meet for what folds them.

        B200 (model), attention of 16 heads, 4096 x 4096, two blocks of eight warps and of four, us:
        64 x 64 of heads of 128 274 and 247, 64 x 128 of 64 193 and 155; but 128 x 128 of heads of
        128 127 and 140, of 64 94 and 132.
        """
        short = blocks >= _PAIR and self._rows < ROWS
        return short and self._powers and self._have_columns(FEW_WARPS, blocks)

    # -- blocks of a multiprocessor -----------------------------------------------------------

    def _in_turn(self, asked: int) -> int:
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
        if not self.ahead or not self._powers or not self._columns(FEW_WARPS):
            return asked
        for blocks in (_FOUR, _PAIR) if self._rows < ROWS else (_PAIR,):
            if blocks <= asked:
                return asked
            warps = self._warps(blocks)
            few = blocks * warps <= _WARPS_IN_TURN
            if few and self._have_columns(warps, blocks) and self._fits(warps, blocks):
                self.cx.passed(
                    self.func,
                    f"{blocks} blocks of a multiprocessor at once: sums of chained products leave "
                    "columns of tensor memory to all, and one computes while another one "
                    "multiplies",
                    category="occupancy",
                    name="InTurn",
                )
                return blocks
        return asked

    @cached_property
    def _waits_for_each(self) -> bool:
        """Whether a block does nothing while its products are made, as no loop makes them, and
        another one has room to.

        B200 (model), transforms of 64 x 64 numbers by eight products of tf32, us, of one block and
        two: 712 and 430.
        """
        return in_no_loop(self.func) and self._fits(self._warps(_PAIR), _PAIR)

    def _fitting(self, blocks: int) -> tuple[int, int]:
        """Warps of a block, and as many blocks at once as the hint says, or as have columns of
        tensor memory, and run without most registers being spilt.
        """
        fitting, reason = blocks, None
        while fitting > 1 and (problem := self._problem(self._warps(fitting), fitting)):
            fitting, reason = fitting - 1, problem
        if reason:
            self.cx.missed(self.func, f"occupancy is {fitting}, not {blocks}: {reason}")
        return self._warps(fitting), fitting

    def _problem(self, warps: int, blocks: int) -> str | None:
        """Why not so many blocks run at once; None if they can."""
        columns, chained = self._columns(warps), "chained "
        if not columns and self._in_tensor(warps):
            columns, chained = self._at_once, ""
        if columns > COLUMNS // blocks:
            return (
                f"sums of {chained}products take {columns} columns of tensor memory, of "
                f"{COLUMNS // blocks} for each of {blocks} blocks"
            )
        if self._fits(warps, blocks):
            return None
        given = registers_of_thread(self.cx.target, warps, blocks)
        return (
            f"{blocks} blocks leave {given} registers to a thread, and its tiles alone take about "
            f"{self._held(warps)}"
        )

    def _fits(self, warps: int, blocks: int) -> bool:
        """Whether so many blocks run without most registers being spilt."""
        target = self.cx.target
        part = _PART_CHAINED if self._have_columns(warps, blocks) else _PART_IN_TENSOR
        if not self._in_tensor(warps) or blocks * max(1, self._operands) > target.max_shared:
            part = _PART
        given = registers_of_thread(target, warps, blocks)
        fits = given >= _LEAST_REGISTERS and self._held(warps) <= part * given
        return given == target.max_registers or fits

    # -- clusters -----------------------------------------------------------------------------

    def _ctas(self) -> int:
        """Blocks of a cluster that `tileas-plan-cta` has cut the kernel's tiles for."""
        if PLANNED_CTAS in self.func.attributes:
            return self._planned
        if self._planned > 1:
            self.cx.missed(
                self.func, "one block works on each tile block: nothing has cut tiles over several"
            )
        return 1

    @cached_property
    def _planned(self) -> int:
        """What `tileas-plan-cta` has cut tiles for; without it, what is asked for."""
        if PLANNED_CTAS in self.func.attributes:
            return ir.IntegerAttr(self.func.attributes[PLANNED_CTAS]).value
        return asked_ctas(self.func, self.cx.target.name)

    # -- what the kernel is like --------------------------------------------------------------

    @cached_property
    def _hints(self) -> dict[str, int]:
        return hints_of(self.func, self.cx.target.name)

    @cached_property
    def _asked_warps(self) -> int:
        return asked_warps(self.func, self.cx.target.name)

    @cached_property
    def _one_group_suffices(self) -> bool:
        return self.one_group()

    @cached_property
    def _powers(self) -> bool:
        return makes_powers(self.func)

    @cached_property
    def _rows(self) -> int:
        return least_rows(self.func)

    @cached_property
    def _operands(self) -> int:
        """Bytes of shared memory for one stage of what products read."""
        return operand_bytes(self.func)

    @cached_property
    def _chained(self) -> int:
        return chained_columns(self.func)

    @cached_property
    def _at_once(self) -> int:
        """Columns of other products' sums. B200 (model), gradients of keys and values of attention,
        128 heads of 128, 4096 x 4096 by 64 x 64, two blocks as hinted, of which one waits for
        columns: 7602 us, 3716 in one (tileiras 4035).
        """
        return columns_at_once(self.func)

    def _columns(self, warps: int) -> int:
        """Columns of chained products' sums; 0 where tcgen05 does not make all products."""
        return self._chained if self._chained and self._in_tensor(warps) else 0

    def _have_columns(self, warps: int, blocks: int) -> bool:
        """Whether products are chained, and tensor memory has columns for so many blocks' sums."""
        return 0 < self._columns(warps) <= COLUMNS // blocks

    def _in_tensor(self, warps: int) -> bool:
        """Whether tcgen05 makes all products of a kernel, which has some."""
        return self._families(warps) == {TENSOR}

    def _families(self, warps: int) -> set[str | None]:
        """The instructions that make the products of a kernel."""
        if warps not in self._made_by:
            self._made_by[warps] = made_by(self.func, self.cx.target, self.highest, warps)
        return self._made_by[warps]

    def _tiles(self, warps: int) -> int:
        """Registers of a thread of the tiles that are live at once."""
        if warps not in self._peaks:
            self._peaks[warps] = peak_registers(self.func, warps)
        return self._peaks[warps]

    def _held(self, warps: int) -> int:
        """The same without places, which are computed where registers are few.

        B200 (model), softmax of 4096 x 8192 f32 by gathers, four blocks as hinted: 49 us in one
        block, as places took twice what numbers do, and 39 in four. But warps are chosen with them:
        causal convolution 134 us in eight, 152 in four, sampled products 53 and 58.
        """
        return peak_registers(self.func, warps, with_places=False)
