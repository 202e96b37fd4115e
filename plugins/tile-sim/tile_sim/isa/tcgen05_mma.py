"""`tcgen05.mma`: one thread starts a product whose accumulators are in tensor memory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tile_sim.errors import SimError
from tile_sim.isa.bulk import lanes_of
from tile_sim.isa.common import B64, PRED, U32
from tile_sim.isa.matrixread import observe_matrices, read_matrices
from tile_sim.isa.mma import finish, multiply, read_accumulator
from tile_sim.isa.tcgen05 import take_cta_group
from tile_sim.machine.access import PENDING, UNWRITTEN
from tile_sim.machine.group import Group
from tile_sim.machine.local import threads
from tile_sim.machine.tmem import Step
from tile_sim.machine.wave import Wave
from tile_sim.numeric import elements, umma
from tile_sim.numeric.descriptors import decode_tcgen05
from tile_sim.numeric.elements import Element
from tile_sim.numeric.umma import Instruction
from tile_sim.program.decode import Decode, Exec, Getter, instruction
from tile_sim.ptx.syntax import Address, Name, Vector

Array = np.ndarray
_VECTORS = {"block16": "4X", "block32": "2X", "1X": "1X", "2X": "2X", "4X": "4X"}


@dataclass(frozen=True)
class Work:
    """One product: addresses and descriptors as the issuing thread gave them."""

    d: int
    a: int
    b: int
    accumulate: bool
    a_in_tmem: bool
    scale_a: int = 0
    scale_b: int = 0
    scale_d: int = 0


@instruction("tcgen05.mma")
def mma(cx: Decode) -> Exec:
    if cx.flag("sp") or cx.flag("ws"):
        cx.fail("sparse and weight-stationary products are not supported")
    group = take_cta_group(cx)
    kind = cx.prefixed("kind::")
    if kind not in umma.KINDS:
        cx.fail(f"unknown kind {kind!r}")
    scaled = cx.flag("block_scale")
    if scaled != (kind in umma.SCALED):
        cx.fail(
            f".kind::{kind} and .block_scale do not go together" if scaled else "needs .block_scale"
        )
    vector = cx.prefixed("scale_vec::") or cx.option("block16", "block32")
    while cx.prefixed("collector::"):
        pass
    if cx.flag("ashift"):
        cx.fail(".ashift is not supported")
    cx.done()
    blocks = _blocks(cx, kind, vector) if scaled else 0
    operands = _Operands(cx, scaled)

    def execute(g: Group) -> None:
        columns = operands.read(g)
        for i, (thread, row) in enumerate(zip(threads(g), g.lane_rows(), strict=True)):
            work, word = columns[i]
            form = umma.decode(word, kind, group)
            product = Product(g.wave, int(g.wave.cta_of[row]), form, work, blocks, group == 2)
            product.mark()
            if g.wave.counters is not None:
                g.wave.counters.products(g.wave, form.m * form.n * form.k)
            if g.wave.monitor is not None:
                product.observe(int(row))
            g.wave.tmem.issue(int(thread), Step(product.run))

    return execute


def _blocks(cx: Decode, kind: str, vector: str | None) -> int:
    """Scale factors along K."""
    default = {"mxf8f6f4": "1X", "mxf4": "2X"}.get(kind)
    name = _VECTORS.get(vector or default or "")
    legal = {"mxf8f6f4": ("1X",), "mxf4": ("2X",), "mxf4nvf4": ("2X", "4X")}[kind]
    if vector == "block32" and kind == "mxf8f6f4":
        name = "1X"
    if name is None or name not in legal:
        cx.fail(f"scale vector {vector} does not fit .kind::{kind}")
    return int(name[0])


class _Operands:
    """Decoded operands: `[d], a, b, idesc {, [sfa], [sfb]} {, lanes}, enable {, scale-d}`."""

    def __init__(self, cx: Decode, scaled: bool) -> None:
        rest = list(cx.operands)
        self.d = self._tensor(cx, rest.pop(0))
        first = rest.pop(0)
        self.a_in_tmem = isinstance(first, Address)
        self.a = self._tensor(cx, first) if self.a_in_tmem else cx.src(first, B64)
        self.b, self.idesc = cx.src(rest.pop(0), B64), cx.src(rest.pop(0), U32)
        self.scales: list[Getter] = []
        if scaled:
            self.scales = [self._tensor(cx, rest.pop(0)), self._tensor(cx, rest.pop(0))]
        if rest and isinstance(rest[0], Vector):
            cx.fail("disable-output-lane is not supported")
        self.enable = cx.src(rest.pop(0), PRED)
        self.scale_d = cx.src(rest.pop(0), U32) if rest else None

    def _tensor(self, cx: Decode, operand: object) -> Getter:
        if not isinstance(operand, Address) or not isinstance(operand.base, Name):
            cx.fail("needs a tensor memory address [taddr]")
        return cx.src(operand.base, U32)

    def read(self, g: Group) -> list[tuple[Work, int]]:
        d, a, b, words = (lanes_of(g, get) for get in (self.d, self.a, self.b, self.idesc))
        enable = lanes_of(g, self.enable)
        scales = [lanes_of(g, get) for get in self.scales] or [[0] * len(d)] * 2
        shift = [0] * len(d) if self.scale_d is None else lanes_of(g, self.scale_d)
        return [
            (
                Work(
                    d[i], a[i], b[i], bool(enable[i]), self.a_in_tmem, scales[0][i], scales[1][i],
                    shift[i],
                ),
                words[i],
            )
            for i in range(len(d))
        ]  # fmt: skip


class Product:
    """The product of one CTA, or of a pair, which splits M and N between its CTAs."""

    def __init__(
        self, wave: Wave, cta: int, form: Instruction, work: Work, blocks: int, pair: bool
    ) -> None:
        self.wave = wave
        self.form = form
        self.work = work
        self.blocks = blocks
        self.ctas = [cta & ~1, cta | 1] if pair else [cta]
        if pair and (cta & 1 or wave.cluster_size % 2):
            raise SimError("bad-instruction", ".cta_group::2 is issued by the even CTA of a pair")
        self.places = [self._accumulators(i) for i in range(len(self.ctas))]

    # --- where things are -------------------------------------------------------------------

    def _accumulators(self, which: int) -> tuple[Array, Array]:
        """Lane and column of each accumulator of a CTA, `[rows, n]`."""
        m, n = self.form.m // len(self.ctas), self.form.n
        row, column = np.arange(m)[:, None], np.arange(n)[None, :]
        base_lane, base = self.work.d >> 16, self.work.d & 0xFFFF
        width = n
        if m == 128:
            lane, place = row + 0 * column, column + 0 * row
        elif len(self.ctas) == 2:
            # M 128 over a pair: the upper lanes hold the second half of the columns.
            width = n // 2
            lane, place = row + np.where(column < width, 0, 64), column % width + 0 * row
        else:
            # M 64: 16 rows in each quarter of the lanes.
            lane, place = row % 16 + row // 16 * 32 + 0 * column, column + 0 * row
        if base_lane and not (m == 64 and base_lane == 16):
            raise SimError("tmem", f"tcgen05.mma: accumulators at lane {base_lane}")
        self.wave.tmem.require(self.ctas[which], base, width, "tcgen05.mma")
        return lane + base_lane, place + base

    def mark(self) -> None:
        """Accumulators may not be read until the product is done."""
        for cta, (lane, column) in zip(self.ctas, self.places, strict=True):
            state = self.wave.tmem.state
            if self.work.accumulate and (state[cta, lane, column] == UNWRITTEN).any():
                raise SimError("uninitialised", "tcgen05.mma adds to accumulators never written")
            state[cta, lane, column] = PENDING

    def observe(self, row: int) -> None:
        """Tell the checker what the operands in shared memory are."""
        form, pair = self.form, len(self.ctas)
        sides = [(self.work.b, form.b, form.n // pair, form.b_k_major, "B")]
        if not self.work.a_in_tmem:
            sides.append((self.work.a, form.a, form.m // pair, form.a_k_major, "A"))
        for cta in self.ctas:
            for word, element, mn, major, side in sides:
                observe_matrices(
                    self.wave, row, cta, word, decode_tcgen05, element, (mn, form.k), major,
                    f"operand {side} of tcgen05.mma",
                )  # fmt: skip

    # --- the product ------------------------------------------------------------------------

    def run(self) -> None:
        form, pair = self.form, len(self.ctas)
        # Each CTA of a pair holds half of the columns of B.
        right = np.concatenate([self._b(cta, form.n // pair) for cta in self.ctas])
        if self.blocks:
            right = right * self._scales(self.ctas[0], self.work.scale_b, form.n, form.b_scale_id)
        for cta, places in zip(self.ctas, self.places, strict=True):
            self._one(cta, places, right)

    def _one(self, cta: int, places: tuple[Array, Array], right: Array) -> None:
        form, tmem = self.form, self.wave.tmem
        rows = form.m // len(self.ctas)
        left = self._a(cta, rows)
        if self.blocks:
            left = left * self._scales(cta, self.work.scale_a, rows, form.a_scale_id)
        sign = -1.0 if form.negate_a != form.negate_b else 1.0
        total = sign * multiply(left, right.T, None)
        if self.work.accumulate:
            old = self._old(tmem.data[(cta, *places)])
            total = total + old * 2.0**-self.work.scale_d
        result = finish(total, form.accumulator, form.saturate)
        if form.accumulator == "f16":
            tmem.write(cta, *places, result.view(np.uint16).astype(np.uint32))
        else:
            tmem.write(cta, *places, result.view(np.uint32))

    def _old(self, raw: Array) -> Array:
        if self.form.accumulator == "f16":
            raw = raw.astype(np.uint16)
        return read_accumulator(np.ascontiguousarray(raw), self.form.accumulator)

    def _b(self, cta: int, n: int) -> Array:
        form = self.form
        return self._shared(cta, self.work.b, form.b, n, form.b_k_major, "B")

    def _a(self, cta: int, rows: int) -> Array:
        form = self.form
        if not self.work.a_in_tmem:
            return self._shared(cta, self.work.a, form.a, rows, form.a_k_major, "A")
        bits = max(form.a.bits, 4)
        words = form.k * bits // 32
        lane = np.arange(rows) if rows == 128 else np.arange(64) % 16 + np.arange(64) // 16 * 32
        column = (self.work.a & 0xFFFF) + np.arange(words)
        self.wave.tmem.require(cta, int(column[0]), words, "tcgen05.mma")
        lanes = np.broadcast_to((lane + (self.work.a >> 16))[:, None], (rows, words))
        columns = np.broadcast_to(column[None, :], (rows, words))
        raw = self.wave.tmem.read(
            np.full_like(lanes, cta), lanes, columns, "operand A of tcgen05.mma"
        )
        return form.a.decode(elements.unpack(raw, bits))

    def _shared(
        self, cta: int, word: int, element: Element, mn: int, k_major: bool, side: str
    ) -> Array:
        what = f"operand {side} of tcgen05.mma"
        decode = decode_tcgen05
        if self.form.kind in ("f8f6f4", "mxf8f6f4") and element.name in ("e2m3", "e3m2", "e2m1"):
            return self._padded(cta, word, element, mn, what)
        one = np.array([cta])
        extent = (mn, self.form.k)
        return read_matrices(
            self.wave, one, np.array([word], object), decode, element, extent, k_major, what
        )[0]

    def _padded(self, cta: int, word: int, element: Element, mn: int, what: str) -> Array:
        """6- and 4-bit types: each 16 elements packed at the start of 16 bytes."""
        raw = elements.ELEMENTS["u8"]
        bytes_ = read_matrices(
            self.wave, np.array([cta]), np.array([word], object), decode_tcgen05, raw,
            (mn, self.form.k), True, what,
        )[0].astype(np.uint8)  # fmt: skip
        groups = bytes_.reshape(mn, -1, 16)
        bits = 4 if element.name == "e2m1" else 6
        packed = np.unpackbits(groups[..., : 2 * bits], axis=-1, bitorder="little")
        fields = packed.reshape(mn, -1, bits)
        values = (fields << np.arange(bits, dtype=np.uint8)).sum(axis=-1, dtype=np.uint8)
        return element.decode(values << np.uint8(2) if bits == 4 else values)

    def _scales(self, cta: int, where: int, count: int, first_byte: int) -> Array:
        """Factors `[count, k]`: row r in lane r % 32 of column r / 32, its bytes from the id."""
        column = (where & 0xFFFF) + np.arange(count) // 32
        lane = np.arange(count) % 32
        self.wave.tmem.require(cta, int(column[0]), -(-count // 32), "scale factors of tcgen05.mma")
        words = self.wave.tmem.read(
            np.full(count, cta), lane, column, "scale factors of tcgen05.mma"
        )
        if first_byte % self.blocks or first_byte + self.blocks > 4:
            raise SimError(
                "bad-descriptor", f"scale factor id {first_byte} with {self.blocks} blocks"
            )
        raw = words.view(np.uint8).reshape(count, 4)[:, first_byte : first_byte + self.blocks]
        factors = elements.scale_values(raw, self.form.scale)
        return np.repeat(factors, self.form.k // self.blocks, axis=1)
