"""`wgmma.*`: matrix products of a warpgroup (sm_90a)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from tile_sim.errors import SimError
from tile_sim.isa.common import B32, B64, PRED
from tile_sim.isa.matrixread import observe_matrices, read_matrices
from tile_sim.isa.mma import finish, multiply, read_accumulator, take_shape
from tile_sim.isa.sparse import metadata_codes
from tile_sim.isa.warp import full
from tile_sim.machine.group import Group, merge
from tile_sim.machine.wave import Wave
from tile_sim.numeric import elements, fragments, sparsity
from tile_sim.numeric.descriptors import decode_wgmma
from tile_sim.numeric.elements import ELEMENTS, Element
from tile_sim.program.decode import Decode, Exec, Sync, instruction
from tile_sim.ptx.syntax import Vector

Array = np.ndarray
# K of a dense instruction by bits of an element of A (a sparse one has twice that); which
# accumulators go with which operands; sparsity selectors by bits of an element.
_K = {16: 16, 32: 8, 8: 32, 1: 256}
_LEGAL: dict[str, tuple[tuple[str, ...], ...]] = {
    "f32": (("f16",), ("bf16",), ("tf32",), ("e4m3", "e5m2")),
    "f16": (("f16",), ("e4m3", "e5m2")),
    "s32": (("s8", "u8"), ("b1",)),
}
_SELECTORS = {16: (0, 1), 32: (0, 1), 8: (0,)}


def warpgroup_sync(execute: Exec) -> Sync:
    """All threads of the four warps of a warpgroup have to come here together."""

    def arrive(new: Group | None, parked: Group | None) -> tuple[Group | None, Group | None]:
        g = merge([x for x in (new, parked) if x is not None])
        wave = g.wave
        number = wave.cta_of * 256 + wave.warpid[:, 0] // 4
        whole = g.active.all(axis=1)
        mine = number[g.rows]
        here = whole & (np.bincount(mine[whole], minlength=int(mine.max()) + 1)[mine] == 4)
        return g.of_rows(here), g.of_rows(~here)

    return Sync(arrive, execute, "aligned")


@dataclass(frozen=True)
class Form:
    """The static part of a `wgmma.mma_async`."""

    n: int
    k: int
    a: Element
    b: Element
    accumulator: str
    negate_a: bool
    negate_b: bool
    a_k_major: bool
    b_k_major: bool
    saturate: bool
    bit_op: str | None
    selector: int | None = None

    @property
    def stored_k(self) -> int:
        """Columns of A as they are stored."""
        return self.k if self.selector is None else self.k // 2


@cache
def accumulator_places(n: int) -> tuple[Array, Array]:
    """Row (of the warp's 16) and column of element i of lane l: `[n / 2, 32]`."""
    lane, i = np.arange(32)[None, :], np.arange(n // 2)[:, None]
    return lane // 4 + 8 * (i // 2 % 2), 8 * (i // 4) + lane % 4 * 2 + i % 2


def _bits(accumulator: str) -> int:
    return 16 if accumulator == "f16" else 32


def from_registers(registers: Array, n: int, accumulator: str) -> Array:
    """`[registers, warps, 32]` to `[warpgroups, 64, n]` in binary64."""
    rows, columns = accumulator_places(n)
    raw = registers
    if _bits(accumulator) == 16:
        pairs = np.ascontiguousarray(registers).view("<u2").reshape(*registers.shape, 2)
        raw = pairs.transpose(0, 3, 1, 2).reshape(n // 2, *registers.shape[1:])
    values = read_accumulator(np.ascontiguousarray(raw), accumulator)
    out = np.empty((registers.shape[1], 16, n))
    out[:, rows, columns] = values.transpose(1, 0, 2)
    return out.reshape(-1, 64, n)


def to_registers(matrix: Array, n: int) -> Array:
    """`[warpgroups, 64, n]` in its own type to `[registers, warps, 32]`."""
    rows, columns = accumulator_places(n)
    per_warp = matrix.reshape(-1, 16, n)
    values = per_warp[:, rows, columns].transpose(1, 0, 2)
    if matrix.dtype.itemsize == 4:
        return np.ascontiguousarray(values).view(np.uint32)
    pairs = values.reshape(n // 4, 2, *values.shape[1:]).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(pairs).view(np.uint32)[..., 0]


@instruction("wgmma.mma_async.sync.aligned", "wgmma.mma_async.sp.sync.aligned")
def mma_async(cx: Decode) -> Sync:
    sparse = "sp" in cx.ins.mods
    shape = take_shape(cx)
    saturate = cx.flag("satfinite")
    bit_op = cx.option("and")
    if bit_op:
        cx.flag("popc")
    names = [mod for mod in cx.mods if mod in ELEMENTS]
    for name in names:
        cx.mods.remove(name)
    if len(names) != 3:
        cx.fail("needs the types of D, A and B")
    d, a, b = names
    cx.done()
    if not any(a in types and b in types for types in _LEGAL.get(d, ())):
        cx.fail(f"cannot multiply .{a} by .{b} into .{d}")
    _check_shape(cx, shape, ELEMENTS[a], d, sparse)
    in_registers = isinstance(cx.operand(1), Vector)
    constants = _constants(cx, a, in_registers, 6 if sparse else 4)
    selector = _selector(cx, ELEMENTS[a]) if sparse else None
    form = Form(
        shape[1], shape[2], ELEMENTS[a], ELEMENTS[b], d, *constants, saturate, bit_op, selector
    )
    return _decode_product(cx, form, in_registers)


def _check_shape(cx: Decode, shape: tuple[int, int, int], a: Element, d: str, sparse: bool) -> None:
    m, n, k = shape
    if sparse and a.bits == 1:
        cx.fail("there is no sparse product of .b1")
    wanted = _K[a.bits] * (2 if sparse else 1)
    if m != 64 or k != wanted or not 8 <= n <= 256 or n % 8:
        cx.fail(f"no shape m{m}n{n}k{k} for .{a.name}")
    if d == "s32" and n > 32 and n % 16:
        cx.fail(f"n{n} is not legal for integers")


def _selector(cx: Decode, a: Element) -> int:
    found = cx.constant(4)
    if found not in _SELECTORS[a.bits]:
        cx.fail(f"sparsity selector {found} is too large for .{a.name}")
    return found


def _constants(cx: Decode, a: str, in_registers: bool, first: int) -> tuple[bool, bool, bool, bool]:
    """Negations of A and B, and whether they are K-major (not transposed); operand `first` on."""
    rest = [cx.constant(i) for i in range(first, len(cx.operands))]
    if a in ("s8", "u8", "b1"):
        wanted = 0
    elif a in ("f16", "bf16"):
        wanted = 3 if in_registers else 4
    else:
        wanted = 2
    if len(rest) != wanted:
        cx.fail(f"takes {first + wanted} operands, found {len(cx.operands)}")
    if any(scale not in (1, -1) for scale in rest[:2]) or any(t not in (0, 1) for t in rest[2:]):
        cx.fail("input scales are 1 or -1, transpositions 0 or 1")
    negate = (rest[0] == -1, rest[1] == -1) if rest else (False, False)
    transposed = ([0, *rest[2:]] if in_registers else rest[2:]) or [0, 0]
    if wanted < 3:
        transposed = [0, 0]
    return negate[0], negate[1], not transposed[0], not transposed[1]


def _decode_product(cx: Decode, form: Form, in_registers: bool) -> Sync:
    items = cx.vector(0)
    count = form.n * _bits(form.accumulator) // 64
    if len(items) != count:
        cx.fail(f"needs {count} accumulator registers, found {len(items)}")
    slots = [cx.slot(item, B32) for item in items]
    a = [cx.src(item, B32) for item in cx.vector(1)] if in_registers else [cx.src(1, B64)]
    if in_registers and len(a) != 4:
        cx.fail("A takes four registers")
    sparse = form.selector is not None
    b, scale = cx.src(2, B64), cx.src(5 if sparse else 3, PRED)
    metadata = cx.src(3, B32) if sparse else None
    cx.program.accumulators.update(slots)
    accumulators = [cx.reg(item, B32).index for item in items]
    fragments = [cx.reg(item, B32).index for item in cx.vector(1)] if in_registers else []
    cx.program.product_registers.update(accumulators, fragments)

    def execute(g: Group) -> None:
        wave, rows = g.wave, np.asarray(g.rows)
        # Copies: the registers may change before the product is done.
        keep = full(g, scale(g))[:, 0].reshape(-1, 4).copy()
        _uniform(keep, "scale-d")
        desc_b = _descriptors(full(g, b(g)))
        if in_registers:
            source = np.stack([full(g, get(g)) for get in a], axis=-1).copy()
        else:
            source = _descriptors(full(g, a[0](g)))
        codes = None if metadata is None else _codes(form, full(g, metadata(g)).copy())
        ctas = wave.cta_of[rows].reshape(-1, 4)[:, 0]
        if wave.monitor is not None:
            wave.monitor.product(rows, accumulators, fragments, (form.n, form.k, form.accumulator))
            _observe(wave, form, rows, ctas, desc_b, None if in_registers else source)

        def run(positions: Array, accumulators: Array) -> Array:
            left = _operand_a(wave, form, source, ctas, positions, in_registers)
            right = read_matrices(
                wave, ctas[positions], desc_b[positions], decode_wgmma, form.b,
                (form.n, form.k), form.b_k_major, "operand B of wgmma",
            )  # fmt: skip
            total = _multiply(form, left, right, None if codes is None else codes[positions])
            old = from_registers(accumulators, form.n, form.accumulator)
            total = total + np.where(keep[positions][:, :1, None], old, 0.0)
            return to_registers(finish(total, form.accumulator, form.saturate), form.n)

        wave.products.issue(rows, slots, run)

    return warpgroup_sync(execute)


def _codes(form: Form, words: Array) -> Array:
    """Metadata of each warpgroup, `[warpgroups, 64, chunks]`: as in `mma.sp`, by warp."""
    assert form.selector is not None
    found = metadata_codes(words, form.a.bits, form.k, form.selector)
    return found.reshape(-1, 64, found.shape[-1])


def _multiply(form: Form, left: Array, right: Array, codes: Array | None) -> Array:
    """A as stored and B as `[warpgroups, n, k]`."""
    left, b = _signed(left, form.negate_a), _transposed(right, form)
    if codes is None:
        return multiply(left, b, form.bit_op)
    full_a, kept = sparsity.expand(left, codes, form.a.bits, sparsity.LISTED)
    return sparsity.multiply(full_a, kept, b)


def _observe(
    wave: Wave, form: Form, rows: Array, ctas: Array, desc_b: Array, desc_a: Array | None
) -> None:
    """Each warp of a warpgroup reads, and knows that it has read when it has waited itself."""
    for i, cta in enumerate(ctas):
        mine = rows[4 * i : 4 * i + 4]
        sides = [(desc_b, form.b, (form.n, form.k), form.b_k_major, "B")]
        if desc_a is not None:
            sides.append((desc_a, form.a, (64, form.stored_k), form.a_k_major, "A"))
        for words, element, extent, major, side in sides:
            where = observe_matrices(
                wave, mine, int(cta), int(words[i]), decode_wgmma, element, extent, major,
                f"operand {side} of wgmma",
            )  # fmt: skip
            wave.products.reads(mine, where)


def _signed(x: Array, negate: bool) -> Array:
    return -x if negate else x


def _transposed(right: Array, form: Form) -> Array:
    return _signed(right.transpose(0, 2, 1), form.negate_b)


def _uniform(values: Array, what: str) -> None:
    if (values != values[:, :1]).any():
        raise SimError("divergent", f"{what} differs between the warps of a warpgroup")


def _descriptors(words: Array) -> Array:
    """One descriptor for each warpgroup."""
    lanes = words.reshape(-1, 4, 32)
    if (lanes != lanes[:, :1, :1]).any():
        raise SimError("divergent", "a matrix descriptor differs between threads of a warpgroup")
    return lanes[:, 0, 0].copy()


def _operand_a(
    wave: Wave, form: Form, source: Array, ctas: Array, positions: Array, in_registers: bool
) -> Array:
    if not in_registers:
        return read_matrices(
            wave, ctas[positions], source[positions], decode_wgmma, form.a,
            (64, form.stored_k), form.a_k_major, "operand A of wgmma",
        )  # fmt: skip
    order, _ = fragments.a_order(16, form.stored_k, form.a.bits)
    registers = source.reshape(-1, 4, 32 * 4)[positions].reshape(-1, 32 * 4)
    flat = elements.unpack(np.ascontiguousarray(registers), form.a.bits)
    values = form.a.decode(flat[:, order])
    return values.reshape(-1, 64, form.stored_k)


@instruction("wgmma.fence.sync.aligned")
def fence(cx: Decode) -> Sync:
    """Says nothing about values: check mode wants it where registers change hands."""
    cx.done(0)

    def execute(g: Group) -> None:
        if g.wave.monitor is not None:
            g.wave.monitor.registers.fence(np.asarray(g.rows))

    return warpgroup_sync(execute)


@instruction("wgmma.commit_group.sync.aligned")
def commit_group(cx: Decode) -> Sync:
    cx.done(0)
    return warpgroup_sync(lambda g: g.wave.products.commit(np.asarray(g.rows)))


@instruction("wgmma.wait_group.sync.aligned")
def wait_group(cx: Decode) -> Sync:
    cx.done(1)
    left = cx.constant(0)
    return warpgroup_sync(lambda g: g.wave.products.wait(np.asarray(g.rows), left))
