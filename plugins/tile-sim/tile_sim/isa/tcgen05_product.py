"""The product that a `tcgen05.mma` starts: its operands, wherever they are, and its result.

Beyond what the PTX ISA says in words, three readings, all shared by CUTLASS: rows 64 and up of a
pair's D (layout B) and all of layouts E and G read A and the metadata from the lanes of their own
bank; the sparsity selector picks a column of an aligned pair; `.ashift` moves A after the product
has read it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tile_sim.errors import SimError
from tile_sim.isa.matrixread import observe_matrices, read_matrices
from tile_sim.isa.mma import finish, read_accumulator
from tile_sim.machine.access import PENDING, UNWRITTEN, WRITTEN
from tile_sim.machine.tmem import LANES, Cells
from tile_sim.machine.wave import Wave
from tile_sim.numeric import datapath, elements, sparsity
from tile_sim.numeric.columnmask import source_columns
from tile_sim.numeric.descriptors import decode_tcgen05
from tile_sim.numeric.elements import Element
from tile_sim.numeric.umma import Instruction

Array = np.ndarray


@dataclass(frozen=True)
class Variant:
    """The static part of a `tcgen05.mma`; `blocks` counts scale factors along K (0: none)."""

    kind: str
    group: int
    sparse: bool
    ws: bool
    ashift: bool
    blocks: int


@dataclass(frozen=True)
class Work:
    """One product: addresses and descriptors as the issuing thread gave them."""

    d: int
    a: int
    b: int
    accumulate: bool
    a_in_tmem: bool
    scale_a: int
    scale_b: int
    scale_d: int
    metadata: int
    mask: int
    disabled: tuple[int, ...]


class Product:
    """The product of one CTA, or of a pair, which splits M and N between its CTAs."""

    def __init__(
        self, wave: Wave, cta: int, form: Instruction, work: Work, variant: Variant,
        thread: int | None = None,
    ) -> None:  # fmt: skip
        self.wave, self.form, self.work, self.variant = wave, form, work, variant
        self.thread = thread  # whose work happens in order
        pair = variant.group == 2
        self.ctas = [cta & ~1, cta | 1] if pair else [cta]
        if pair and (cta & 1 or wave.cluster_size % 2):
            raise SimError("bad-instruction", ".cta_group::2 is issued by the even CTA of a pair")
        self.path = datapath.choose(form.m, variant.group, variant.sparse, variant.ws)
        self.lane = self._check_lanes()
        self.columns = self._columns_of_b()
        self.places = [self._accumulators(cta) for cta in self.ctas]
        if variant.ashift and form.m not in (128, 256):
            raise SimError("bad-instruction", f".ashift needs M 128 or 256, not {form.m}")

    # --- where things are -------------------------------------------------------------------

    def _check_lanes(self) -> int:
        """The lane that the addresses of D, A and the metadata name, which has to be the same."""
        named = {"D": self.work.d}
        if self.work.a_in_tmem:
            named["A"] = self.work.a
        if self.variant.sparse:
            named["the metadata"] = self.work.metadata
            if self.work.metadata & 1:
                raise SimError("tmem", "tcgen05.mma.sp: metadata start at an even column")
        lane = self.work.d >> 16
        for what, address in named.items():
            if address >> 16 not in self.path.lanes_legal or address >> 16 != lane:
                raise SimError(
                    "tmem",
                    f"tcgen05.mma: {what} at lane {address >> 16}, accumulators at lane {lane}; "
                    f"legal are {' and '.join(map(str, self.path.lanes_legal))}, the same for all",
                )
        return lane

    def _columns_of_b(self) -> Array | None:
        """With .ws: for each column of D that of B, or -1."""
        if not self.variant.ws:
            return None
        form = self.form
        return source_columns(self.work.mask, form.m, form.n, form.max_shift)

    def _bank_columns(self, bank: int) -> slice:
        width = self.form.n // self.path.banks
        return slice(bank * width, (bank + 1) * width)

    def _accumulators(self, cta: int) -> tuple[Array, Array]:
        """Lane and column of each accumulator of a CTA, `[rows, n]`."""
        width = self.form.n // self.path.banks
        base = self.work.d & 0xFFFF
        self.wave.tmem.require(cta, base, width, "tcgen05.mma")
        lanes = [self.path.lanes(bank) for bank in range(self.path.banks)]
        lane = np.repeat(np.stack(lanes, axis=1), width, axis=1) + self.lane
        column = np.broadcast_to(np.arange(self.form.n) % width + base, lane.shape)
        return lane, column

    def _enabled(self, which: int) -> Array:
        """Lanes that the result goes to, of the CTA at this position."""
        words = self.work.disabled[4 * which : 4 * which + 4] or (0,) * 4
        raw = np.array(words, "<u4").view(np.uint8)
        return np.unpackbits(raw, bitorder="little") == 0

    def mark(self) -> list[Cells]:
        """Accumulators may not be read until the product is done; these are they."""
        state, marked = self.wave.tmem.state, []
        for which, (cta, (lane, column)) in enumerate(zip(self.ctas, self.places, strict=True)):
            live = self._enabled(which)[lane]
            cells = (cta, lane[live], column[live])
            if self.work.accumulate and (state[cells] == UNWRITTEN).any():
                raise SimError("uninitialised", "tcgen05.mma adds to accumulators never written")
            state[cells] = PENDING
            marked.append(cells)
        return marked

    def forget(self) -> None:
        """In place of `run`: accumulators may be read, and are what they were."""
        for which, (cta, (lane, column)) in enumerate(zip(self.ctas, self.places, strict=True)):
            live = self._enabled(which)[lane]
            self.wave.tmem.state[(cta, lane[live], column[live])] = WRITTEN
        self.wave.progress += 1

    def observe(self, row: int) -> None:
        """Tell the checker what the operands in shared and tensor memory are."""
        form, pair = self.form, len(self.ctas)
        self._observe_tensor(row)
        chosen, columns = self._selected(form.n // pair)
        sides = [(self.work.b, form.b, (columns, form.k), form.b_k_major, "B", chosen)]
        if not self.work.a_in_tmem:
            extent = (form.m // pair, self._stored_k())
            sides.append((self.work.a, form.a, extent, form.a_k_major, "A", None))
        for cta in self.ctas:
            for word, element, extent, major, side, select in sides:
                observe_matrices(
                    self.wave, np.array([row]), cta, word, decode_tcgen05, element, extent, major,
                    f"operand {side} of tcgen05.mma", select,
                )  # fmt: skip

    def _observe_tensor(self, row: int) -> None:
        """The accumulators, and A if it is in tensor memory."""
        watch = self.wave.monitor.tensor
        for which, cta in enumerate(self.ctas):
            if self.work.a_in_tmem:
                lanes = np.concatenate([self.path.lanes(b) for b in range(self.path.banks)])
                column = (self.work.a & 0xFFFF) + np.arange(self._a_words())[None, :]
                watch.access(row, cta, lanes[:, None] + self.lane, column, False, "tcgen05.mma")
            lane, column = self.places[which]
            live = self._enabled(which)[lane]
            watch.access(row, cta, lane[live], column[live], True, "tcgen05.mma")

    def _stored_k(self) -> int:
        return self.form.k // 2 if self.variant.sparse else self.form.k

    # --- the product ------------------------------------------------------------------------

    def run(self) -> None:
        # Each CTA of a pair holds half of the columns of B.
        part = self.form.n // len(self.ctas)
        right = np.concatenate([self._b(cta, part) for cta in self.ctas])
        for which, cta in enumerate(self.ctas):
            scaled = right
            if self.variant.blocks:
                halves = self.path.banks
                where, first = self.work.scale_b, self.form.b_scale_id
                scaled = right * self._scales(cta, where, self.form.n, first, halves)
            self._one(which, cta, scaled)
        if self.variant.ashift:
            words = self._a_words()
            for cta in self.ctas:
                self.wave.tmem.shift_down(cta, self.work.a & 0xFFFF, words, "tcgen05.mma.ashift")

    def _one(self, which: int, cta: int, right: Array) -> None:
        form, tmem = self.form, self.wave.tmem
        shared = None if self.work.a_in_tmem else self._shared_a(cta)
        parts = []
        for bank in range(self.path.banks):
            packed = self._tensor_a(cta, bank) if shared is None else shared
            parts.append(self._part(cta, bank, packed, right[self._bank_columns(bank)].T))
        sign = -1.0 if form.negate_a != form.negate_b else 1.0
        total = sign * np.concatenate(parts, axis=1)
        lane, column = self.places[which]
        if self.work.accumulate:
            old = self._old(tmem.data[cta, lane, column])
            total = total + old * 2.0**-self.work.scale_d
        result = finish(total, form.accumulator, form.saturate)
        raw = result.view(np.uint16).astype(np.uint32) if form.accumulator == "f16" else result
        live = self._enabled(which)[lane]
        tmem.write(cta, lane[live], column[live], raw.view(np.uint32)[live])

    def _part(self, cta: int, bank: int, packed: Array, right: Array) -> Array:
        """The columns of one bank: A as stored, B `[k, columns]`."""
        kept = None
        left = packed
        if self.variant.sparse:
            codes = self._metadata(cta, bank)
            left, kept = sparsity.expand(packed, codes, self.form.a.bits, sparsity.LISTED)
        if self.variant.blocks:
            where, first = self.work.scale_a, self.form.a_scale_id
            left = left * self._scales(cta, where, self.path.rows, first, 1)
        return left @ right if kept is None else sparsity.multiply(left, kept, right)

    def _old(self, raw: Array) -> Array:
        if self.form.accumulator == "f16":
            raw = raw.astype(np.uint16)
        return read_accumulator(np.ascontiguousarray(raw), self.form.accumulator)

    # --- operands in shared memory ----------------------------------------------------------

    def _selected(self, n: int) -> tuple[Array | None, int]:
        """The columns of B that are read, and how far they reach; None for all N of them."""
        if self.columns is None:
            return None, n
        chosen = self.columns[self.columns >= 0]
        return chosen, int(chosen.max(initial=0)) + 1

    def _b(self, cta: int, n: int) -> Array:
        form = self.form
        chosen, reach = self._selected(n)
        extent = (reach, form.k)
        found = self._shared(cta, self.work.b, form.b, extent, form.b_k_major, "B", chosen)
        if self.columns is None or chosen is None:
            return found
        out = np.zeros((n, form.k))
        out[self.columns >= 0] = found
        return out

    def _shared_a(self, cta: int) -> Array:
        form, extent = self.form, (self.path.rows, self._stored_k())
        return self._shared(cta, self.work.a, form.a, extent, form.a_k_major, "A", None)

    def _shared(
        self, cta: int, word: int, element: Element, extent: tuple[int, int], k_major: bool,
        side: str, select: Array | None,
    ) -> Array:  # fmt: skip
        padded = self.form.kind in ("f8f6f4", "mxf8f6f4") and element.name in _NARROW
        stored = elements.ELEMENTS["u8"] if padded else element
        if padded and not k_major:
            raise SimError("bad-descriptor", f"operand {side}: .{element.name} has to be K-major")
        found = read_matrices(
            self.wave, np.array([cta]), np.array([word], object), decode_tcgen05, stored, extent,
            k_major, f"operand {side} of tcgen05.mma", select,
        )[0]  # fmt: skip
        return _unpadded(found, element) if padded else found

    # --- operands in tensor memory ----------------------------------------------------------

    def _a_words(self) -> int:
        """Columns of A in tensor memory."""
        return self._stored_k() * max(self.form.a.bits, 4) // 32

    def _tensor_a(self, cta: int, bank: int) -> Array:
        if not self.form.a_k_major:
            raise SimError("bad-descriptor", "A in tensor memory has to be K-major")
        raw = self._words(cta, self.path.lanes(bank), self.work.a, self._a_words(), "operand A")
        return self.form.a.decode(elements.unpack(raw, self.form.a.bits))

    def _words(self, cta: int, lanes: Array, address: int, count: int, what: str) -> Array:
        """Words `[lanes, count]` from the column of an address on."""
        what = f"{what} of tcgen05.mma"
        first = address & 0xFFFF
        self.wave.tmem.require(cta, first, count, what)
        lane = np.broadcast_to((lanes + self.lane)[:, None], (len(lanes), count))
        column = np.broadcast_to(first + np.arange(count)[None, :], lane.shape)
        return self.wave.tmem.read(np.full_like(lane, cta), lane, column, what, self.thread)

    def _metadata(self, cta: int, bank: int) -> Array:
        """The 4 bits of each chunk of each row, `[rows, chunks]`.

        8- and 4-bit types: a row's chunks are in its own lane, 8 to a column. Wider types: lane i
        and lane i + 8 (of 16) hold the first and the second half of the chunks, the low halves of
        their words for row i and the high halves for row i + 8.
        """
        chunks = self.form.k // sparsity.chunk_elements(self.form.a.bits)
        row, chunk = self.path.lanes(bank)[:, None], np.arange(chunks)[None, :]
        if self.form.a.bits >= 16:
            lane = row // 16 * 16 + row % 8 + 8 * (chunk // 4)
            column = np.full_like(lane, self.form.selector)
            nibble = row % 16 // 8 * 4 + chunk % 4
        else:
            lane, column = row + 0 * chunk, chunk // 8 + 0 * row
            nibble = chunk % 8
        what, first = "metadata of tcgen05.mma", self.work.metadata & 0xFFFF
        self.wave.tmem.require(cta, first, 2, what)
        where = np.full_like(lane, cta), lane + self.lane, column + first
        words = self.wave.tmem.read(*where, what)
        return words >> (4 * nibble).astype(np.uint32) & np.uint32(15)

    def _scales(self, cta: int, where: int, count: int, first_byte: int, halves: int) -> Array:
        """Factors `[count, k]`: row r in lane r % 32 of column r / 32, its bytes from the id.

        All four quarters of the lanes have to hold the same; where D has two banks, B's factors
        of each half of the columns are in the half of the lanes that uses them.
        """
        what, blocks = "scale factors of tcgen05.mma", self.variant.blocks
        if first_byte % blocks or first_byte + blocks > 4:
            raise SimError("bad-descriptor", f"scale factor id {first_byte} with {blocks} blocks")
        part, row = count // halves, np.arange(count)
        column = (where & 0xFFFF) + row % part // 32
        self.wave.tmem.require(cta, where & 0xFFFF, -(-part // 32), what)
        lane = row // part * (LANES // halves) + row % part % 32
        copies = np.stack(
            [
                self.wave.tmem.read(np.full(count, cta), lane + 32 * quarter, column, what)
                for quarter in range(4 // halves)
            ]
        )
        raw = copies.view(np.uint8).reshape(*copies.shape, 4)
        raw = raw[..., first_byte : first_byte + blocks]
        if (raw != raw[0]).any():
            raise SimError("tmem", f"{what} differ between the quarters of the lanes")
        factors = elements.scale_values(raw[0], self.form.scale)
        return np.repeat(factors, self.form.k // blocks, axis=1)


_NARROW = ("e2m3", "e3m2", "e2m1")


def _unpadded(bytes_: Array, element: Element) -> Array:
    """6- and 4-bit types in shared memory: each 16 elements at the start of 16 bytes."""
    groups = bytes_.astype(np.uint8).reshape(len(bytes_), -1, 16)
    bits = 4 if element.name == "e2m1" else 6
    values = elements.unpack_fields(groups[..., : 2 * bits], bits).reshape(len(bytes_), -1)
    return element.decode(values << np.uint8(2) if bits == 4 else values)
