"""Sparse, weight-stationary and block-scaled `tcgen05.mma` against a model written per element.

Where rows and metadata are: PTX ISA, "Data path layout organization" and "Sparsity selector", and
the fragments that CUTLASS gives for accumulators (`tmem_frg`, `tmem_frg_ws`), A, metadata
(`tmem_e_frg`, `tmem_e_frg_ws`) and scale factors (`tmem_sf_frg`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import pytest
from support import tensor_memory as tm
from tile_sim import Module, SimError

Kernel = Callable[..., Module]
A_AT, META_AT, SCALE_A, SCALE_B, COLUMNS = 128, 160, 168, 176, 184
A_SHARED, B_SHARED, ROOM = 0, 16384, 49152
SPARSE_K = {"tf32": 16, "f16": 32, "mxf4": 128, "mxf4nvf4": 128}


@dataclass(frozen=True)
class Case:
    kind: str
    a: str
    b: str
    d: str
    m: int
    n: int
    group: int = 1
    ws: bool = False
    sparse: bool = True
    selector: int = 0
    tensor_a: bool = False
    half: int = 0
    mask: int | None = None
    shift_code: int = 0
    scale: str = ""
    blocks: int = 0
    words: str = ""

    @property
    def k(self) -> int:
        full = SPARSE_K.get(self.kind, 64)
        return full if self.sparse else full // 2

    @property
    def packed(self) -> bool:
        return self.kind in ("mxf4", "mxf4nvf4")

    @property
    def rows(self) -> int:
        return self.m // self.group

    @property
    def banks(self) -> int:
        """How often the rows fit into the lanes, each time for other columns."""
        dense_pair = self.group == 2 and not self.sparse and self.m == 128
        return 128 // self.rows if self.ws or dense_pair else 1

    def lane(self, bank: int, row: int) -> int:
        if self.banks == 1 and self.rows == 64:
            return row // 16 * 32 + row % 16 + self.half
        return bank * self.rows + row


def metadata_place(case: Case, lane: int, chunk: int) -> tuple[int, int, int]:
    """(lane, column, first bit) of the four bits of a chunk of the row in a lane.

    CUTLASS, 16-bit types: ((8,2,8),(16,2)):((1,16 bits,16),(1 bit,8)) for (row, k); 32-bit ones
    alike with (8,2) and 2 bits along k; narrower ones (128,64):(1,1 bit).
    """
    per = {"tf32": 2, "f16": 4, "mxf4": 8, "mxf4nvf4": 8}.get(case.kind, 4)
    bit = chunk * 4
    if case.kind not in ("tf32", "f16"):
        return lane, bit // 32, bit % 32
    k, half = chunk * per, case.k // 2
    to = lane % 8 + 16 * (lane // 16) + 8 * (k // half)
    return to, case.selector, 16 * (lane // 8 % 2) + bit % 16


def compressed(
    rng: np.random.Generator, case: Case, rows: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(what is stored, the full matrix, the codes): every row of every chunk drawn by itself."""
    if not case.sparse:
        full = tm.integers(rng, (rows, case.k))
        return full, full, np.zeros((rows, 0), int)
    width, kept = (2, 1) if case.kind == "tf32" else (4, 2)
    group = 2 if case.packed else 1
    chunks = case.k // (width * group)
    stored = tm.integers(rng, (rows, case.k // 2))
    full, codes = np.zeros((rows, case.k)), np.zeros((rows, chunks), int)
    options = list(combinations(range(width), kept)) + ([(2, 1)] if kept == 2 else [])
    for row, chunk in np.ndindex(rows, chunks):
        places = options[int(rng.integers(len(options)))]
        for i, place in enumerate(places):
            to = (chunk * width + place) * group
            at = (chunk * kept + i) * group
            full[row, to : to + group] = stored[row, at : at + group]
        codes[row, chunk] = (0b1110 if places[0] else 0b0100) if kept == 1 else (
            places[0] | places[1] << 2
        )  # fmt: skip
    return stored, full, codes


def words_of(x: np.ndarray, case: Case) -> np.ndarray:
    """Rows of A as they stand in tensor memory."""
    container = "packed" if case.packed else "bytes"
    return tm.rows_as_bytes(tm.cast(x, case.a), case.a, container).copy().view(np.uint32)


class Problem:
    """Inputs of one product in memory, and what tensor memory has to hold afterwards."""

    def __init__(self, case: Case, seed: int = 1) -> None:
        self.case = case
        self.rng = np.random.default_rng(seed)
        self.start = tm.garbage(case.group, COLUMNS)
        self.image = np.zeros((case.group, ROOM), np.uint8)
        self.b_words = 0
        # [cta][bank]: A in shared memory is the same for all banks, its metadata are not.
        empty: list[np.ndarray] = [np.zeros((0, 0))] * case.banks
        self.full = [list(empty) for _ in range(case.group)]
        for cta in range(case.group):
            self._place_a(cta)
        self._place_b()
        if case.blocks:
            self._place_scales()

    def _place_a(self, cta: int) -> None:
        case, signed = self.case, self.case.a != "u8"
        shared = None
        for bank in range(case.banks):
            stored, full, codes = compressed(self.rng, case, case.rows)
            if not case.tensor_a and shared is not None:
                stored, full = shared, self._rebuilt(shared, codes)
            shared = stored
            self.full[cta][bank] = full if signed else np.abs(full)
            for row in range(case.rows):
                self._place_codes(cta, case.lane(bank, row), codes[row])
            if case.tensor_a:
                words = words_of(stored, case)
                for row in range(case.rows):
                    part = slice(A_AT, A_AT + words.shape[1])
                    self.start[cta, case.lane(bank, row), part] = words[row]
        if not case.tensor_a:
            assert shared is not None
            self.a_word = self._share(cta, A_SHARED, shared, case.a)

    def _rebuilt(self, stored: np.ndarray, codes: np.ndarray) -> np.ndarray:
        """The full matrix of another bank: the same values, other places."""
        case = self.case
        if not case.sparse:
            return stored
        full = np.zeros((len(stored), case.k))
        for row, chunk in np.ndindex(*codes.shape):
            code = int(codes[row, chunk])
            if case.kind == "tf32":
                full[row, 2 * chunk + (code == 0b1110)] = stored[row, chunk]
                continue
            for i, place in enumerate((code & 3, code >> 2)):
                full[row, 4 * chunk + place] = stored[row, 2 * chunk + i]
        return full

    def _place_codes(self, cta: int, lane: int, codes: np.ndarray) -> None:
        for chunk, code in enumerate(codes):
            to, column, bit = metadata_place(self.case, lane, chunk)
            word = int(self.start[cta, to, META_AT + column]) & ~(15 << bit)
            self.start[cta, to, META_AT + column] = word | int(code) << bit

    def _share(self, cta: int, at: int, x: np.ndarray, name: str) -> int:
        container = "packed" if self.case.packed else "groups"
        raw, word = tm.k_major(tm.rows_as_bytes(tm.cast(x, name), name, container))
        self.image[cta, at : at + len(raw)] = raw
        return word | at >> 4

    def _place_b(self) -> None:
        """Each CTA of a pair has half of the columns; room for those that a shift brings in."""
        case = self.case
        extra = 32 if case.ws else 0
        self.b = tm.integers(self.rng, (case.n + extra, case.k))
        parts = np.split(self.b, case.group) if case.group == 2 else [self.b]
        for cta, part in enumerate(parts):
            self.b_word = self._share(cta, B_SHARED, part, case.b)
        if case.b == "u8":
            self.b = np.abs(self.b)

    def _place_scales(self) -> None:
        case = self.case
        low, high = (126, 130) if case.scale == "ue8m0" else (6, 9)
        self.codes_a = self.rng.integers(low, high, (case.group, case.rows, case.blocks))
        self.codes_b = self.rng.integers(low, high, (case.n, case.blocks))
        shift = 0 if case.scale == "ue8m0" else 3
        halves = 2 if case.group == 2 and case.m == 128 else 1
        for cta in range(case.group):
            for row, block, quarter in np.ndindex(case.rows, case.blocks, 4):
                lane = 32 * quarter + row % 32
                self._byte(
                    cta,
                    lane,
                    SCALE_A + row // 32,
                    block,
                    int(self.codes_a[cta, row, block]) << shift,
                )
            part = case.n // halves
            for row, block, copy in np.ndindex(case.n, case.blocks, 4 // halves):
                lane = row // part * 64 + 32 * copy + row % part % 32
                column = SCALE_B + row % part // 32
                self._byte(cta, lane, column, block, int(self.codes_b[row, block]) << shift)

    def _byte(self, cta: int, lane: int, column: int, which: int, value: int) -> None:
        word = int(self.start[cta, lane, column]) & ~(255 << 8 * which)
        self.start[cta, lane, column] = word | int(value) << 8 * which

    # --- the answer -------------------------------------------------------------------------

    def factors(self, codes: np.ndarray) -> np.ndarray:
        bias = 127 if self.case.scale == "ue8m0" else 7
        return np.repeat(2.0 ** (codes - bias), self.case.k // self.case.blocks, axis=-1)

    def expected(self) -> np.ndarray:
        case, out = self.case, self.start.copy()
        source = columns_of_b(case)
        for cta, row, column in np.ndindex(case.group, case.rows, case.n):
            bank, within = divmod(column, case.n // case.banks)
            left = self.full[cta][bank][row]
            right = np.zeros(case.k) if source[column] < 0 else self.b[source[column]]
            if case.blocks:
                left = left * self.factors(self.codes_a[cta, row])
                right = right * self.factors(self.codes_b[column])
            out[cta, case.lane(bank, row), within] = pattern(float(left @ right), case.d)
        return out

    def run(self, kernel: Kernel, issue: str | None = None) -> np.ndarray:
        case = self.case
        body = tm.text(issue or self.issue(), COLUMNS, ROOM, case.group)
        out = np.zeros_like(self.start)
        module = kernel(body, tm.PARAMS, target="sm_100a")
        module.launch(
            "k", (case.group, 1, 1), (128, 1, 1), [self.image, self.start, out],
            cluster=(case.group, 1, 1),
        )  # fmt: skip
        return out

    def issue(self) -> str:
        case = self.case
        word = tm.idesc(case.a, case.b, case.d, case.m, case.n, case.packed)
        if case.blocks:
            word &= ~(3 << 4)
        word |= case.sparse << 2 | case.selector | case.shift_code << 30
        word |= (case.scale == "ue8m0") << 23
        a = "[%r41]" if case.tensor_a else "%rd21"
        operands = ["[%r40]", a, "%rd22", *(["[%r42]"] if case.sparse else []), "%r45"]
        operands += ["[%r43]", "[%r44]"] if case.blocks else []
        operands += ["%p4"] + ([] if case.mask is None else ["%rd23"])
        name = "tcgen05.mma" + ".ws" * case.ws + ".sp" * case.sparse
        name += f".cta_group::{case.group}.kind::{case.kind}" + ".block_scale" * bool(case.blocks)
        lane = case.half << 16
        return f"""
        add.u32 %r40, %r6, {lane}; add.u32 %r41, %r6, {lane + A_AT};
        add.u32 %r42, %r6, {lane + META_AT}; add.u32 %r43, %r6, {SCALE_A};
        add.u32 %r44, %r6, {SCALE_B}; mov.b32 %r45, {word};
        add.u64 %rd21, %rd20, {0 if case.tensor_a else self.a_word};
        add.u64 %rd22, %rd20, {self.b_word};
        mov.b64 %rd23, {case.mask or 0};
        {name}{case.words} {", ".join(operands)};
        """


def pattern(value: float, kind: str) -> int:
    if kind == "f16":
        return int(np.float16(value).view(np.uint16))
    if kind == "s32":
        return int(np.int32(value).view(np.uint32))
    return int(np.float32(value).view(np.uint32))


def columns_of_b(case: Case) -> list[int]:
    """For each column of D that of B, -1 for zeros: spans are counted out one by one."""
    if case.mask is None:
        return list(range(case.n))
    shift, found = case.mask >> 56 & 63, []
    for part in range(case.banks):
        zeros = bool(case.mask >> 32 + part & 1)
        left = (case.mask >> 40 & 255 if zeros else case.mask >> 48 & 255) + 1
        left -= case.mask >> 8 * part & 255
        for _ in range(case.n // case.banks):
            column = len(found)
            found.append(-1 if zeros and case.mask >> 39 & 1 else column + shift)
            left -= 1
            if left == 0:
                zeros = not zeros
                left = (case.mask >> 40 & 255 if zeros else case.mask >> 48 & 255) + 1
    return found


def mask(starts: tuple[int, ...], first: int, skip: int, use: int, shift: int = 0) -> int:
    low = sum(count << 8 * i for i, count in enumerate(starts))
    return low | first << 32 | 1 << 39 | skip << 40 | use << 48 | shift << 56


NVF4 = ("mxf4nvf4", "e2m1", "e2m1", "f32")
F16, TF32 = ("f16", "f16", "f16", "f32"), ("tf32", "tf32", "tf32", "f32")
SPARSE = [
    Case(*F16, 128, 32), Case("f16", "f16", "f16", "f16", 128, 16, selector=1),
    Case("f16", "bf16", "bf16", "f32", 64, 24, selector=1), Case(*TF32, 128, 16),
    Case(*TF32, 64, 8, selector=1, half=16),
    Case("f8f6f4", "e4m3", "e5m2", "f32", 128, 16), Case("f8f6f4", "e2m1", "e3m2", "f16", 64, 16),
    Case("f8f6f4", "e2m3", "e2m1", "f32", 128, 16), Case("i8", "s8", "u8", "s32", 128, 16),
    Case("i8", "u8", "s8", "s32", 64, 32, half=16),
    Case(*F16, 128, 16, tensor_a=True, selector=1),
    Case(*F16, 64, 16, tensor_a=True, half=16),
    Case("f8f6f4", "e3m2", "e4m3", "f32", 128, 16, tensor_a=True),
    Case("f8f6f4", "e2m1", "e4m3", "f32", 128, 16, tensor_a=True),
    Case("f16", "bf16", "f16", "f32", 256, 32, group=2),
    Case(*F16, 128, 32, group=2, selector=1),
    Case(*F16, 128, 32, group=2, half=16, tensor_a=True),
    Case("i8", "s8", "s8", "s32", 256, 32, group=2),
]  # fmt: skip
STATIONARY = [
    Case(*F16, m, 64, ws=True, sparse=sparse, tensor_a=tensor)
    for m in (32, 64, 128) for sparse in (False, True) for tensor in (False, True)
] + [
    Case(*TF32, 32, 128, ws=True, selector=1),
    Case("f8f6f4", "e4m3", "e2m1", "f16", 64, 64, ws=True),
    Case("i8", "s8", "u8", "s32", 32, 64, ws=True),
    Case("i8", "u8", "u8", "s32", 64, 64, ws=True, sparse=False, words=".collector::b2::fill"),
    Case(*F16, 128, 64, ws=True, sparse=False, mask=mask((2,), 0, 2, 4)),
    Case(*F16, 64, 64, ws=True, mask=mask((3, 1), 2, 2, 4)),
    Case(
        *F16, 32, 64, ws=True, sparse=False, mask=mask((0, 1, 2, 1), 3, 2, 3, 2), shift_code=1
    ),
    Case(
        *F16, 64, 64, ws=True, sparse=False, mask=mask((0, 0), 0, 1, 6, 32), shift_code=3
    ),
]  # fmt: skip
DENSE = [Case(*F16, 128, 32, group=2, sparse=False, tensor_a=True)]
SCALED = [
    Case("mxf8f6f4", "e4m3", "e2m1", "f32", 128, 32, scale="ue8m0", blocks=1),
    Case("mxf8f6f4", "e2m3", "e5m2", "f32", 256, 64, group=2, scale="ue8m0", blocks=1),
    Case("mxf4", "e2m1", "e2m1", "f32", 128, 48, scale="ue8m0", blocks=2),
    Case("mxf4", "e2m1", "e2m1", "f32", 128, 16, scale="ue8m0", blocks=2, tensor_a=True),
    Case(*NVF4, 128, 32, scale="ue4m3", blocks=4, words=".scale_vec::4X"),
    Case(*NVF4, 256, 64, group=2, scale="ue8m0", blocks=2, words=".block32"),
    Case(
        "mxf8f6f4", "e4m3", "e4m3", "f32", 128, 96, group=2, sparse=False, scale="ue8m0", blocks=1
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", [*SPARSE, *STATIONARY, *DENSE, *SCALED], ids=str)
def test_product(kernel: Kernel, case: Case) -> None:
    """All of tensor memory is compared: what is not an accumulator stays as it was."""
    problem = Problem(case)
    np.testing.assert_array_equal(problem.run(kernel), problem.expected())


def _noticed(kernel: Kernel, problem: Problem, issue: str, wanted: np.ndarray) -> bool:
    """Whether the answer is another, or metadata come out that no chunk may have."""
    try:
        return bool((problem.run(kernel, issue) != wanted).any())
    except SimError as error:
        return error.kind == "bad-metadata"


@pytest.mark.parametrize(("which", "selector"), [(0, 1), (1, 0), (3, 1)])
def test_a_wrong_selector_is_noticed(kernel: Kernel, which: int, selector: int) -> None:
    problem = Problem(SPARSE[which])
    issue = Problem(replace(SPARSE[which], selector=selector)).issue()
    assert _noticed(kernel, problem, issue, problem.expected())


@pytest.mark.parametrize("case", [SPARSE[0], STATIONARY[3], SPARSE[3]], ids=str)
def test_one_wrong_metadata_bit_is_noticed(kernel: Kernel, case: Case) -> None:
    for bit in (0, 7, 13, 21, 30):
        problem = Problem(case)
        problem.start[0, 37, META_AT] ^= np.uint32(1 << bit)
        wanted = problem.expected()
        wanted[0, 37, META_AT] = problem.start[0, 37, META_AT]
        assert _noticed(kernel, problem, problem.issue(), wanted)


def refused(kernel: Kernel, case: Case, old: str = "", new: str = "") -> SimError:
    problem = Problem(case)
    issue = problem.issue()
    assert old in issue
    with pytest.raises(SimError) as caught:
        problem.run(kernel, issue.replace(old, new))
    return caught.value


STATIC = Case(*F16, 64, 64, ws=True, sparse=False, mask=mask((0,), 0, 2, 3))


def test_what_no_product_may_be(kernel: Kernel) -> None:
    case = SPARSE[0]
    assert "lane 16" in str(refused(kernel, case, "%r40, %r6, 0", "%r40, %r6, 1048576"))
    assert "even column" in str(refused(kernel, case, f"{META_AT}", f"{META_AT + 1}"))
    assert "descriptor says sparse" in str(
        refused(kernel, replace(case, sparse=False), "mov.b32 %r45, ", "or.b32 %r45, 4, ")
    )
    assert "selector 2" in str(refused(kernel, replace(case, selector=2)))
    assert "no shape M 64, N 256" in str(refused(kernel, replace(STATIONARY[3], m=64, n=256)))
    assert "is not legal here" in str(
        refused(kernel, case, "kind::f16", "kind::f16.collector::b0::use")
    )
    assert "shifts by 9" in str(
        refused(kernel, replace(STATIC, mask=mask((0,), 0, 2, 3, 9), shift_code=1))
    )
    assert "start count 4" in str(refused(kernel, replace(STATIC, mask=mask((4,), 0, 2, 3))))
    assert "reserved bits" in str(
        refused(kernel, replace(STATIC, mask=(STATIC.mask or 0) | 1 << 36))
    )


def test_scale_factors_that_are_missing_in_a_quarter(kernel: Kernel) -> None:
    problem = Problem(SCALED[0])
    problem.start[0, 64 + 5, SCALE_A] ^= np.uint32(1)
    with pytest.raises(SimError, match="differ between the quarters"):
        problem.run(kernel)


def test_columns_that_count_as_zero_are_not_read(kernel: Kernel) -> None:
    """Infinities there have no effect (a product by zero would be no number)."""
    case = replace(STATIC, m=128, mask=mask((0,), 0, 2, 3))
    problem, source = Problem(case), columns_of_b(STATIC_WIDE)
    problem.b[[i for i, s in enumerate(source) if s < 0]] = np.inf
    problem._share(0, B_SHARED, problem.b, case.b)
    problem.b[np.isinf(problem.b)] = 0
    np.testing.assert_array_equal(problem.run(kernel), problem.expected())


STATIC_WIDE = replace(STATIC, m=128)


def test_elements_left_out_meet_no_infinity(kernel: Kernel) -> None:
    """Metadata select the elements of B: what a zero of A would meet is not looked at."""
    case = replace(SPARSE[0], n=8)
    problem = Problem(case)
    stored = tm.integers(problem.rng, (128, 16))
    problem._share(0, A_SHARED, stored, case.a)
    problem.full[0][0] = np.zeros((128, 32))
    problem.full[0][0].reshape(128, 8, 4)[:, :, [0, 2]] = stored.reshape(128, 8, 2)
    for row in range(128):
        problem._place_codes(0, row, np.full(8, 0b1000))
    problem.b.reshape(8, 8, 4)[:, :, [1, 3]] = np.inf
    problem._share(0, B_SHARED, problem.b, case.b)
    problem.b[np.isinf(problem.b)] = 0
    np.testing.assert_array_equal(problem.run(kernel), problem.expected())


def test_lanes_whose_output_is_disabled(kernel: Kernel) -> None:
    case = SPARSE[0]
    problem = Problem(case)
    issue = problem.issue().replace("%p4;", "{%r50, %r51, %r52, %r53}, %p4;")
    issue = "mov.b32 %r50, 3; mov.b32 %r51, 0; mov.b32 %r52, 256; mov.b32 %r53, 0;" + issue
    wanted = problem.expected()
    wanted[0, [0, 1, 72]] = problem.start[0, [0, 1, 72]]
    np.testing.assert_array_equal(problem.run(kernel, issue), wanted)
