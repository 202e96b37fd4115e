"""Which tcgen05.mma multiplies two tiles, and how its accumulator lies. No MLIR here.

A product is M x K by K x N. One thread begins it for the whole block; A and B lie in shared memory
in the canonical layouts of the instruction, the accumulator in tensor memory, from where warps read
it when all is done. What one instruction does not cover is repeated along M, N and K.

A pair of blocks of a cluster makes one product together where M is that of one of them: each has
its own rows of A and of the accumulator, and one half of the columns of B. The first one's thread
begins the instructions of both.
PTX ISA, "TensorCore 5th generation instructions".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from tile_cute.atoms import MmaAtom, MmaRow, find_mma
from tile_cute.atoms.tensor_memory import COLUMNS, Datapath, datapath
from tile_cute.atoms.types import BITS
from tile_cute.errors import LayoutError
from tile_cute.linear import LinearLayout
from tile_cute.linear.layout import is_power_of_two, log2

from tile_tileas.mma.families import TENSOR
from tile_tileas.mma.operands import operand_buffer
from tile_tileas.mma.tier import Planned, Product, Unfit

#: Warps that together reach all rows of tensor memory, a quarter each (PTX ISA, "tcgen05.ld").
WARPS = 4
#: Registers of a thread that hold an accumulator once it has left tensor memory. All that there
#: are: it leaves once, behind its loop.
MAX_ACCUMULATORS = 256
#: Rows of one instruction in a block; 64 of a block alone take as long as 128 (machine.tcgen05), so
#: that these come first. A pair's take half as long.
_ROWS = (128, 64)
_WORD_BITS = 32
#: tcgen05.ld 16x256b: columns that one such piece has, and which bit of a row says which piece.
_PIECE_COLUMNS, _PIECE_BIT = 8, 4


@dataclass(frozen=True)
class TensorPlan:
    """How a product is cut into instructions, and where its accumulator lies.

    Attributes:
        atom: one instruction.
        shape: M, N, K of the product.
        num_warps: of the block.
    """

    atom: MmaAtom
    shape: tuple[int, int, int]
    num_warps: int

    @property
    def ctas(self) -> int:
        """Blocks of a cluster that make the product together, 1 or 2."""
        return self.atom.row.cta_group

    @property
    def rows_each(self) -> int:
        """Rows of one instruction that a block has."""
        return self.atom.m // self.ctas

    @property
    def counts(self) -> tuple[int, int, int]:
        """Instructions along M, N and K."""
        m, n, k = self.shape
        return m // self.rows_each, n // self.atom.n, k // self.atom.k

    @property
    def columns(self) -> int:
        """Columns of tensor memory that the accumulator takes."""
        return self.counts[0] * (self.shape[1] >> self._banks)

    @property
    def packing(self) -> int:
        """Elements of A and B, along K, that share a place in memory."""
        return 1

    @property
    def taken(self) -> int:
        """Columns of tensor memory that the product needs in all."""
        return self.columns

    def column(self, m: int, n: int) -> int:
        """The first column of the accumulator of instruction (m, n)."""
        return m * (self.shape[1] >> self._banks) + n * (self.atom.n >> self._banks)

    @property
    def registers(self) -> int:
        """Registers of a thread for the accumulator, once it has been read."""
        m, n, _ = self.shape
        return m * n * BITS[self.atom.row.acc] // (_WORD_BITS * 32 * self.num_warps)

    @property
    def majors(self) -> tuple[str, ...]:
        """Orders in shared memory of A and B."""
        return self.atom.row.majors

    @property
    def buffer(self) -> LinearLayout:
        """The accumulator in tensor memory: (row, column) -> (m, n). Columns of an instruction of
        a pair are of one block's half of B, then of the other's, which lie beside each other, or
        in rows of their own where a block has only 64.
        """
        m, n, _ = self.shape
        each = self.atom.n // self.ctas
        of_others = self._others if not self._banks else []
        column = [*steps(1, 1, each), *of_others, *steps(1, each, n // self.ctas)]
        column += steps(0, self.rows_each, m)
        return LinearLayout({"row": self._rows_of_memory, "column": column}, (m, n))

    @property
    def _banks(self) -> int:
        """Bits of memory rows that choose columns: 1 where a block of a pair has 64 rows."""
        return len(self._datapath.banks)

    @property
    def _others(self) -> list[tuple[int, int]]:
        """The step from columns of one block's half of B to those of the other's."""
        return [(0, self.shape[1] // self.ctas)] * (self.ctas - 1)

    @property
    def _datapath(self) -> Datapath:
        return datapath(self.atom.m, self.ctas, weight_stationary=False)

    @property
    def _rows_of_memory(self) -> list[tuple[int, int]]:
        """What each bit of a row of tensor memory stands for."""
        path = self._datapath
        rows = [(v, 0) for v in path.rows]
        for bit, step in zip(path.banks, self._others, strict=False):
            rows[bit] = step
        return rows

    @property
    def held(self) -> LinearLayout | None:
        """A in tensor memory: (row, column, element) -> (m, k), elements packed along K, rows as
        those of the accumulator; None where that has shares of its columns in rows of their own.
        """
        return self.held_every(self.held_columns)

    def held_every(self, columns: int) -> LinearLayout | None:
        """The same, rows of each instruction so many `columns` behind those of the one before, a
        power of two that is no less than they take: as they lie over a wider tile.
        """
        m, _, k = self.shape
        if self._banks:
            return None
        word = _WORD_BITS // BITS[self.atom.row.a]
        between = [(0, 0)] * log2(columns // self.held_columns)
        rows = steps(0, self.rows_each, m)
        bases = {
            "row": self._rows_of_memory,
            "column": [*steps(1, word, k), *(between if rows else []), *rows],
            "element": steps(1, 1, word),
        }
        return LinearLayout(bases, (m, k))

    @property
    def held_columns(self) -> int:
        """Columns of A of one instruction along M, where A is in tensor memory."""
        return self.shape[2] * BITS[self.atom.row.a] // _WORD_BITS

    def held_column(self, k: int) -> int:
        """The first column of step `k` of A among those of one instruction along M."""
        return k * self.atom.k * BITS[self.atom.row.a] // _WORD_BITS

    @property
    def fragments(self) -> LinearLayout:
        """C as warps read it in pieces of 16 rows: four lanes to a row, as fragments of mma.sync
        are (tcgen05.ld 16x256b).
        """
        m, n, _ = self.shape
        lane = [(0, 2), (0, 4), (1, 0), (2, 0), (4, 0)]
        piece = self._rows_of_memory[_PIECE_BIT]
        rows = [piece] if any(piece) else []
        register = [(0, 1), (8, 0)]
        return self._spread(lane, register, rows, steps(1, _PIECE_COLUMNS, n), m)

    @property
    def left_fragments(self) -> LinearLayout | None:
        """A as threads make it to be held in tensor memory, which they store as they read C; None
        where it is not held there.
        """
        m, _, k = self.shape
        return None if self.held is None else replace(self, shape=(m, k, k)).fragments

    @property
    def rows(self) -> LinearLayout | None:
        """C with a row, or a part of one, in each thread (tcgen05.ld 32x32b); None where M of 64
        leaves every other 16 rows of tensor memory unused.
        """
        m, n, _ = self.shape
        if self.rows_each != _ROWS[0]:
            return None
        return self._spread(steps(0, 1, 32), [], [], steps(1, 1, n), m)

    def _spread(
        self,
        lane: list[tuple[int, int]],
        register: list[tuple[int, int]],
        rows: list[tuple[int, int]],
        columns: list[tuple[int, int]],
        m: int,
    ) -> LinearLayout:
        """Four warps have a quarter of memory's rows each. Further ones take other tiles along M,
        then `rows`, then the upper `columns`; registers hold what is left.
        """
        warp = self._rows_of_memory[-log2(WARPS) :]
        inside = [step for step in columns if step not in warp]
        free = [*inside, *rows, *reversed(steps(0, self.rows_each, m))]
        for _ in range(log2(self.num_warps // WARPS)):
            warp.append(free.pop() if free else (0, 0))
        left = sorted(free, key=lambda step: step[0])  # columns, then rows
        bases = {"register": [*register, *left], "lane": lane, "warp": warp}
        return LinearLayout(bases, (m, self.shape[1]))


def steps(dim: int, first: int, end: int) -> list[tuple[int, int]]:
    """Bases `first`, twice that, ... below `end`, along `dim`."""
    values = []
    while first < end:
        values.append(first)
        first *= 2
    return [(value, 0) if dim == 0 else (0, value) for value in values]


def _rows_of(chip: str | None, a: str, b: str, acc: str, ctas: int) -> list[MmaRow]:
    """Dense instructions of so many CTAs for these types."""
    found = find_mma(chip, family=TENSOR, a=a, b=b, acc=acc, sparse=False, scaled=False)
    return [row for row in found if row.cta_group == ctas and not row.weight_stationary]


@lru_cache(maxsize=1)
def _atoms() -> dict[str, MmaAtom]:
    """Instructions by the names that products say."""
    found = find_mma(family=TENSOR, sparse=False, scaled=False)
    rows = [row for row in found if not row.weight_stationary]
    return {atom_title(atom): atom for row in rows for atom in _usable(row)}


def _usable(row: MmaRow) -> list[MmaAtom]:
    """Its instructions of an N that is a power of two."""
    return [atom for atom in row.atoms() if is_power_of_two(atom.n)]


def ctas_of(atom: str) -> int:
    """How many blocks of a cluster make a product by the instruction `atom` together."""
    found = _atoms().get(atom)
    return 1 if found is None else found.row.cta_group


def atom_title(atom: MmaAtom) -> str:
    """What a product says of its instruction: types and shape are not in the mnemonic."""
    row, (m, n, k) = atom.row, atom.shape
    return f"{atom.instruction}.m{m}n{n}k{k}.{row.acc}.{row.a}.{row.b}"


def checked(plan: TensorPlan) -> TensorPlan:
    """A plan whose instruction divides its product.

    Raises:
        LayoutError: it does not.
    """
    least = plan.rows_each, plan.atom.n, plan.atom.k
    if any(size % step for size, step in zip(plan.shape, least, strict=True)) or (
        plan.num_warps % WARPS
    ):
        m, n, k = plan.shape
        raise LayoutError(f"{atom_title(plan.atom)} does not divide a product of {m}x{n}x{k}")
    return plan


class TensorTier:
    """tcgen05.mma of one CTA or of a pair: sm_100, 103, 110. Each has 64 rows or more."""

    family = TENSOR

    def choose(self, product: Product) -> str | Unfit:
        """The instruction with the most rows and columns.

        Sums of 8-bit floats are f32 all the way here, so that `promotes` says nothing (NVIDIA's
        compiler, too, adds outside of the tensor cores on sm_90 alone).
        """
        a, b, acc = product.types
        if not find_mma(product.chip, family=TENSOR, sparse=False):
            return Unfit("")
        rows = _rows_of(product.chip, a, b, acc, product.ctas)
        if not rows:
            return Unfit(f"it does not multiply {a} by {b} into {acc}")
        problem = product_problem(product, _ROWS[-1])
        return problem if problem is not None else _instruction(product, rows[0])

    def has(self, atom: str) -> bool:
        """Whether `atom` is a dense tcgen05.mma of an N that is a power of two."""
        return atom in _atoms()

    def plan(self, planned: Planned) -> TensorPlan:
        """The plan of a product whose instruction is one of these."""
        return TensorPlan(_atoms()[planned.atom], planned.shape[1:], planned.num_warps)

    def accumulator(self, planned: Planned, *, whole_rows: bool) -> LinearLayout:
        """Fragments; with `whole_rows` a row to each thread, where that splits no row."""
        plan = self.plan(planned)
        rows = plan.rows
        if whole_rows and rows is not None and not any(n for _, n in rows.bases["warp"]):
            return rows
        return plan.fragments


def product_problem(product: Product, rows: int) -> Unfit | None:
    """What of the product's shape, block or memory does not fit instructions of at least so many
    rows.
    """
    batch, m, n, k = product.shape
    if product.rank != 2 or batch != 1:
        return Unfit("it multiplies matrices, not batches of them")
    if not product.num_warps or product.num_warps % WARPS:
        return Unfit(f"tensor memory is read by {WARPS} warps together, and the block has "
                     f"{product.num_warps}")  # fmt: skip
    if m % rows:
        return Unfit(f"it has {rows} rows or more, and the tile {m}")
    a, b, _ = product.types
    for name, element, extent, order in zip(
        "AB", (a, b), (m, n // product.ctas), product.orders, strict=True
    ):
        side = "MN"["AB".index(name)]
        if order == "MN" and operand_buffer(extent, k, BITS[element], "MN") is None:
            return Unfit(f"{name} lies along {side} in memory, and {extent} {element} are no row "
                         "of a swizzle that it reads there")  # fmt: skip
    wanted = (m * k * BITS[a] + n // product.ctas * k * BITS[b]) // 8
    if wanted > product.max_shared:
        return Unfit(f"its operands take {wanted} bytes of shared memory, and a block has "
                     f"{product.max_shared}")  # fmt: skip
    return None


def _instruction(product: Product, row: MmaRow) -> str | Unfit:
    _, m, n, k = product.shape
    fitting = [
        atom
        for atom in _usable(row)
        if not (m % (atom.m // product.ctas) or n % atom.n or k % atom.k)
    ]
    if not fitting:
        return Unfit(f"no instruction of it divides tiles of {m}x{n}x{k}")
    atom = max(fitting, key=lambda atom: (atom.m, atom.n))
    plan = TensorPlan(atom, (m, n, k), product.num_warps)
    if plan.columns > COLUMNS:
        return Unfit(f"its sums take {plan.columns} columns of tensor memory, and a "
                     f"multiprocessor has {COLUMNS}")  # fmt: skip
    if plan.registers > MAX_ACCUMULATORS:
        return Unfit(f"its sums would take {plan.registers} registers of a thread with "
                     f"{product.num_warps} warps")  # fmt: skip
    return atom_title(atom)
