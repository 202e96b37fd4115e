"""Tensor memory: columns taken and given back, copies, products begun by one thread."""

from __future__ import annotations

from tile_cute.atoms.descriptors import SmemOperand, blackwell_descriptor
from tile_cute.atoms.records import TENSOR
from tile_cute.atoms.tensor_access import TensorAccess, packing, tensor_access
from tile_cute.atoms.types import BITS
from tile_cute.errors import LayoutError
from tile_cute.linear import LinearLayout
from tile_tileas.dialect.barriers import LEADER, PAIR, TEAM
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dialect.tensor import MET, STEPS, tensor_columns
from tile_tileas.dot_plan import atom_name, product_shape
from tile_tileas.mma.operands import read_operand
from tile_tileas.mma.tensor import WARPS, TensorPlan
from tile_tileas.mma.tensor_scaled import COPIED, ScaledTensorPlan
from tile_tileas.mma.tier import Planned
from tile_tileas.mma.tiers import planned_tensor

from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_nvptx.passes.tileas.device import tensor_memory as device
from tile_nvptx.passes.tileas.rules.cluster import meet_in_cluster
from tile_nvptx.passes.tileas.rules.synchronization import (
    first_thread,
    leader,
    leads_pair,
    run,
    team_of,
)
from tile_nvptx.passes.tileas.ruleset import rules, text
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.shared import when
from tile_nvptx.passes.tileas.thread.state import LANE_BITS, LANES, Kernel, tile_layout
from tile_nvptx.passes.tileas.thread.types import count_of, element_of, storage_type, vector_of

_UGE = 9  # arith.CmpIPredicate
#: Descriptors count in 16 bytes, and have 14 bits for that: an address in a cluster says above
#: those of which block it is (PTX ISA, "Shared memory descriptor").
_UNIT_BITS, _PLACE = 4, (1 << 14) - 1
_WORD_BYTES, _WORD_BITS = 4, 32


def _last_warp(cx: Kernel) -> ir.Value:
    """i1: the thread is one of the agent's last warp, which begins no copies and no products."""
    index, first = cx.state.thread_index(cx), LANES * (cx.state.num_warps - 1)
    return cx.state.once(cx, ("last warp",), lambda b: b.compare(_UGE, index, b.constant(first)))


@rules.on("nv_tileas.alloc_tmem")
def alloc_tmem(op: ir.OpView, cx: Kernel) -> None:
    """alloc_tmem => tcgen05.alloc by a warp"""
    with when(cx, _last_warp(cx)):
        run(cx, device.allocate(op.columns.value, pair=PAIR in op.attributes), op.operands[0])
    run(cx, device.fence("before"))


@rules.on("nv_tileas.tmem_address")
def tmem_address(op: ir.OpView, cx: Kernel) -> ir.Value:
    """tmem_address => a load of what the warp has been given, behind a barrier"""
    b = Builder(cx)
    run(cx, device.fence("after"))
    return b.load(op.operands[0], b.i32, _WORD_BYTES)


@rules.on("nv_tileas.dealloc_tmem")
def dealloc_tmem(op: ir.OpView, cx: Kernel) -> None:
    """dealloc_tmem => tcgen05.dealloc by a warp, behind a barrier"""
    pair = PAIR in op.attributes
    if MET not in op.attributes:
        run(cx, device.fence("before"))
        if pair:
            meet_in_cluster(cx)
        else:
            Builder(cx).barrier()
    run(cx, device.fence("after"))
    with when(cx, _last_warp(cx)):
        run(cx, device.release(op.columns.value, pair=pair), op.operands[0])


@rules.on("nv_tileas.tmem_buffer")
def tmem_buffer(op: ir.OpView, cx: Kernel) -> ir.Value:
    """tmem_buffer => its address"""
    return Builder(cx).with_constant("addi", op.operands[0], op.column.value)


@rules.on("nv_tileas.tmem_view")
def tmem_view(op: ir.OpView, cx: Kernel) -> ir.Value:
    """tmem_view => its address"""
    return Builder(cx).binary("addi", op.operands[0], op.operands[1])


@rules.on("nv_tileas.tmem_columns")
def tmem_columns(op: ir.OpView, cx: Kernel) -> ir.Value:
    """tmem_columns => the same address"""
    return op.operands[0]


@rules.on("nv_tileas.tmem_fence")
def tmem_fence(op: ir.OpView, cx: Kernel) -> None:
    """tmem_fence => tcgen05.fence"""
    with when(cx, leader(cx, op) if LEADER in op.attributes else None):
        run(cx, device.fence(text(op, "side")))


# -- copies ----------------------------------------------------------------------------------------


def _access(cx: Kernel, tile: ir.Value, buffer: ir.Value, most: int | None = None) -> TensorAccess:
    known = Buffer.of(cx.before(buffer))
    assert known is not None
    assert known.layout is not None, "buffers in tensor memory are made with their layouts"
    try:
        layouts = tile_layout(cx, tile), known.layout
        return tensor_access(*layouts) if most is None else tensor_access(*layouts, most)
    except LayoutError as error:
        raise cx.error(f"has no code: {error}") from error


def _place(cx: Kernel, access: TensorAccess, address: ir.Value) -> ir.Value:
    """The warp's own address."""
    moved = cx.state.linear(cx, (*[0] * LANE_BITS, *access.warps))
    return address if moved is None else Builder(cx).binary("addi", address, moved)


def _is_packed(cx: Kernel, buffer: ir.Value) -> bool:
    """Whether words of a buffer in tensor memory hold several elements."""
    known = Buffer.of(cx.before(buffer))
    assert known is not None
    return known.layout is not None and bool(packing(known.layout))


def _words(type_: ir.Type, *, packed: bool) -> int:
    """Registers of a thread that move a vector of that type."""
    bits = storage_type(element_of(type_)).width if packed else _WORD_BITS
    return count_of(type_) * bits // _WORD_BITS


def load(cx: Kernel, source: ir.Value, result: ir.Value, registers: int | None = None) -> ir.Value:
    """The thread's part of a tile in tensor memory, where a word holds one element or is full; so
    many registers of it after each other, if it says so.
    """
    b, access = Builder(cx), _access(cx, result, source, registers)
    type_ = cx.type(result.type)
    stored = storage_type(element_of(type_))
    packed = _is_packed(cx, source)
    words = vector_of(_words(type_, packed=packed), b.i32)
    place = _place(cx, access, source)
    made = device.load(access, apart=registers is not None)
    found = cx.state.helpers.call(cx, *made, [place], words).result
    if stored.width < _WORD_BITS and not packed:
        narrow = vector_of(count_of(type_), ir.IntegerType.get_signless(stored.width))
        found = cx.create("arith.trunci", [found], [narrow]).result
    return b.from_storage(b.bitcast(found, vector_of(count_of(type_), stored)), element_of(type_))


def store(cx: Kernel, value: ir.Value, destination: ir.Value) -> None:
    """Write the thread's part of a tile; of warps that hold the same, the first one does."""
    b, access = Builder(cx), _access(cx, value, destination)
    stored = b.to_storage(value)
    width = element_of(stored.type).width
    packed = _is_packed(cx, destination)
    if packed:
        words = b.bitcast(stored, vector_of(_words(stored.type, packed=True), b.i32))
    else:
        bits = vector_of(count_of(stored.type), ir.IntegerType.get_signless(width))
        words = b.bitcast(stored, bits)
    if width < _WORD_BITS and not packed:
        wide = vector_of(count_of(stored.type), b.i32)
        words = cx.create("arith.extui", [words], [wide]).result
    layout: LinearLayout = tile_layout(cx, value)
    with when(cx, cx.state.speaks(cx, 0, layout.free_mask("warp"))):
        place = _place(cx, access, destination)
        cx.state.helpers.call(cx, *device.store(access), [place, words], None)


# -- products --------------------------------------------------------------------------------------


@rules.on("nv_tileas.team")
def team(op: ir.OpView, cx: Kernel) -> ir.Value:
    """team => the thread's index by that of a team's threads"""
    return team_of(cx, op)


@rules.on("nv_tileas.umma")
def umma(op: ir.OpView, cx: Kernel) -> None:
    """umma => tcgen05.mma of all its parts, by one thread"""
    a, b, accumulator, accumulate = op.operands
    plan = _plan(op, cx)
    held, right_side = _held(op, cx, plan), _in_memory(op, cx, plan, 1)
    left_side = _in_memory(op, cx, plan, 0) if held is None else held
    steps = None
    if STEPS in op.attributes:
        first, end = ir.DenseI32ArrayAttr(op.attributes[STEPS])
        if end > plan.counts[2]:
            raise error_at(op, f"has {plan.counts[2]} steps along K, not {end}")
        steps = first, end
    of_team = TEAM in op.attributes
    made = device.TensorProduct(plan, left_side, right_side, steps, of_team=of_team)
    with when(cx, leads_pair(cx) if plan.ctas > 1 else leader(cx, op)):
        left = a if isinstance(left_side, int) else _descriptor(cx, a, left_side)
        right = _descriptor(cx, b, right_side)
        flag = cx.create("arith.extui", [accumulate], [Builder(cx).i32]).result
        if of_team:
            left, accumulator = _of_team(op, cx, made, left, accumulator)
        run(cx, device.multiply(made), accumulator, left, right, flag)


def _of_team(
    op: ir.OpView, cx: Kernel, made: device.TensorProduct, left: ir.Value, accumulator: ir.Value
) -> tuple[ir.Value, ir.Value]:
    """Where the rows begin that the thread's team has of A and of the sum."""
    if any(made.left_of(m) != m * made.left_of(1) for m in range(made.plan.counts[0])):
        raise error_at(op, "has rows of teams that lie unevenly")
    b, number = Builder(cx), team_of(cx, op)
    further = b.with_constant("muli", number, made.left_of(1))
    if not isinstance(made.a, int):
        further = cx.create("arith.extui", [further], [b.i64]).result
    sums = b.with_constant("muli", number, made.plan.column(1, 0))
    return b.binary("addi", left, further), b.binary("addi", accumulator, sums)


@rules.on("nv_tileas.umma_scaled")
def umma_scaled(op: ir.OpView, cx: Kernel) -> None:
    """umma_scaled => tcgen05.cp of the scales, then tcgen05.mma of all parts, by one thread"""
    a, b, accumulator, accumulate, *rest = op.operands
    scales, places = rest[:2], rest[2:]
    plan = _plan(op, cx)
    assert isinstance(plan, ScaledTensorPlan), "verified"
    _check_scales(op, cx, plan)
    operands = [_in_memory(op, cx, plan, at) for at in (0, 1)]
    made = device.ScaledProduct(plan, operands[0], operands[1])
    with when(cx, first_thread(cx)):
        for scale, value, place in zip(plan.scales, scales, places, strict=True):
            run(cx, device.copy_scales(scale), place, _descriptor(cx, value, COPIED))
        left, right = (
            _descriptor(cx, base, operand) for base, operand in zip((a, b), operands, strict=True)
        )
        flag = cx.create("arith.extui", [accumulate], [Builder(cx).i32]).result
        run(cx, device.multiply_scaled(made), accumulator, left, right, flag, *places)


def _check_scales(op: ir.OpView, cx: Kernel, plan: ScaledTensorPlan) -> None:
    """Scales lie as they are copied and read."""
    found = [Buffer.of(cx.before(value)) for value in list(op.operands)[4:]]
    layouts = [buffer.layout for buffer in found if buffer is not None]
    if layouts != [*plan.scale_buffers, *plan.scale_places]:
        raise error_at(op, f"has scales that do not lie as {plan.atom} takes them")


def _plan(op: ir.OpView, cx: Kernel) -> TensorPlan:
    shapes = [Buffer.of(cx.before(value)) for value in list(op.operands)[:3]]
    a, _, c = (tuple(one.shape) for one in shapes if one is not None)
    # Which warps read the accumulator is the affair of those; another agent may begin products.
    planned = Planned(atom_name(op), product_shape(a, c), 2, WARPS)
    try:
        plan = planned_tensor(planned)
    except LayoutError as error:
        raise error_at(op, f"has no code: {error}") from error
    known = shapes[2]
    if known is None or known.layout != plan.buffer:
        raise error_at(op, f"has an accumulator that is no tile of {plan.atom}: {c}")
    return plan


def _held(op: ir.OpView, cx: Kernel, plan: TensorPlan) -> int | None:
    """Columns from rows of A of one instruction to those of the next, where A is in tensor memory
    and lies as the instruction reads it; None where it is not there.
    """
    buffer = Buffer.of(cx.before(op.operands[0]))
    assert buffer is not None, "verified"
    if buffer.space != TENSOR:
        return None
    each = tensor_columns(buffer) // plan.counts[0]
    if buffer.layout != plan.held_every(max(each, plan.held_columns)):
        raise error_at(op, f"has an operand that does not lie as {plan.atom} reads it")
    return each


def _in_memory(op: ir.OpView, cx: Kernel, plan: TensorPlan, at: int) -> SmemOperand:
    """How an operand is found in its buffer."""
    buffer = Buffer.of(cx.before(op.operands[at]))
    assert buffer is not None, "verified"
    row = plan.atom.row
    bits = BITS[row.a if at == 0 else row.b] * plan.packing
    if buffer.layout is None:
        raise error_at(op, "reads a buffer without a layout")
    try:
        return read_operand(buffer.layout, "ab"[at], bits)
    except LayoutError as error:
        raise error_at(op, f"cannot read a buffer: {error}") from error


def _descriptor(cx: Kernel, base: ir.Value, operand: SmemOperand) -> ir.Value:
    """i64: the descriptor of the beginning of a buffer."""
    b = Builder(cx)
    place = cx.create("llvm.ptrtoint", [base], [b.i32]).result
    units = b.with_constant("andi", b.with_constant("shrui", place, _UNIT_BITS), _PLACE)
    wide = cx.create("arith.extui", [units], [b.i64]).result
    return b.binary("ori", wide, b.constant(blackwell_descriptor(0, operand), b.i64))
