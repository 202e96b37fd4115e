"""tcgen05.mma with block scales: which products run on it, and how scales lie. No MLIR here.

A scale of one byte is shared by so many elements along K. Scales lie in tensor memory: that of row
r of A (or column r of B) in row r % 32 of each warp's quarter and in column r / 32, the bytes of a
column four along K. `tcgen05.cp` brings 128 rows of four scales there at a time, from 512 bytes of
shared memory in the same order: 32 rows of 16 bytes (PTX ISA, "Block scaling for tcgen05.mma").

Elements of four bits are read two to a byte, along K: A and B of such products are tiles of bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from tile_cute.atoms import MmaAtom, MmaRow, find_mma
from tile_cute.atoms.descriptors import SmemOperand
from tile_cute.atoms.tensor_memory import COLUMNS
from tile_cute.atoms.types import BITS
from tile_cute.linear import LinearLayout, permute_dims
from tile_cute.linear.layout import is_power_of_two

from tile_tileas.dots import is_of_bytes
from tile_tileas.mma.tensor import (
    MAX_ACCUMULATORS,
    TENSOR,
    TensorPlan,
    TensorTier,
    atom_title,
    product_problem,
    steps,
)
from tile_tileas.mma.tier import Planned, Product, Unfit

#: Rows that one copy brings, and scales of each.
COPIED_ROWS, COPIED_SCALES = 128, 4
#: Columns of tensor memory, and bytes of shared memory, that one copy takes.
_COPIED_COLUMNS, _COPIED_BYTES = 4, 512
_QUARTER = 32
_BYTE = 8
#: Kinds that read two elements of four bits from a byte; others find each in a byte of its own.
_PACKED = ("mxf4", "mxf4nvf4")
#: How `tcgen05.cp` finds those bytes: groups of eight rows of 16 bytes, one behind the other.
COPIED = SmemOperand("none", "K", 16, 128, (), ())


@dataclass(frozen=True)
class ScaleCopy:
    """One `tcgen05.cp`: bytes behind the beginning of the scales in shared memory, and columns
    behind their beginning in tensor memory.
    """

    offset: int
    column: int


@dataclass(frozen=True)
class ScalePlan:
    """Scales of one operand.

    Attributes:
        rows: of A, or columns of B; a multiple of 128.
        count: scales along K, a multiple of four.
        part: rows that one instruction takes.
        each: scales along K that one instruction takes.
    """

    rows: int
    count: int
    part: int
    each: int

    @property
    def columns(self) -> int:
        """Columns of tensor memory."""
        return self.rows // _QUARTER * (self.count // COPIED_SCALES)

    @property
    def shared(self) -> LinearLayout:
        """The scales in shared memory: offset -> (row, place along K)."""
        low = [*steps(1, 1, COPIED_SCALES), *steps(0, _QUARTER, COPIED_ROWS)]
        low += steps(0, 1, _QUARTER)
        high = [*steps(1, COPIED_SCALES, self.count), *steps(0, COPIED_ROWS, self.rows)]
        return LinearLayout({"offset": [*low, *high]}, (self.rows, self.count))

    @property
    def tensor(self) -> LinearLayout:
        """The scales in tensor memory: (row, column, byte in it) -> (row, place along K)."""
        row = [*steps(0, 1, _QUARTER), (0, 0), (0, 0)]
        inside = max(self.part, COPIED_ROWS)  # of fewer rows the rest is there, and not read
        column = steps(0, _QUARTER, inside)
        column += [*steps(1, COPIED_SCALES, self.count), *steps(0, inside, self.rows)]
        bases = {"row": row, "column": column, "element": steps(1, 1, COPIED_SCALES)}
        return LinearLayout(bases, (self.rows, self.count))

    @property
    def copies(self) -> tuple[ScaleCopy, ...]:
        """What brings all of them, in order of shared memory."""
        rows, groups = self.rows // COPIED_ROWS, self.count // COPIED_SCALES
        return tuple(
            ScaleCopy(
                (row * groups + group) * _COPIED_BYTES,
                self._column(row * COPIED_ROWS, group * COPIED_SCALES),
            )
            for row, group in product(range(rows), range(groups))
        )

    def place(self, part: int, step: int) -> tuple[int, int]:
        """The column, and the first byte in it, of scales of an instruction."""
        first = step * self.each
        return self._column(part * self.part, first), first % COPIED_SCALES

    def _column(self, row: int, scale: int) -> int:
        """The column of a row and a place along K."""
        inside = max(self.part, COPIED_ROWS)
        groups = self.count // COPIED_SCALES
        block = row // inside * groups + scale // COPIED_SCALES
        return block * (inside // _QUARTER) + row % inside // _QUARTER


@dataclass(frozen=True)
class ScaledTensorPlan(TensorPlan):
    """How a product with block scales is cut into instructions, and where its scales lie."""

    @property
    def scales(self) -> tuple[ScalePlan, ScalePlan]:
        """Those of A and of B, as they are stored."""
        scale = self.atom.row.scale
        assert scale is not None, "its atoms take scales"
        m, n, k = self.shape
        count = padded(k // scale.vector, COPIED_SCALES)
        each = self.atom.k // scale.vector
        return (
            ScalePlan(padded(m, COPIED_ROWS), count, self.atom.m, each),
            ScalePlan(padded(n, COPIED_ROWS), count, self.atom.n, each),
        )

    @property
    def packing(self) -> int:
        """Two to a byte, of the kinds that read them so."""
        return 2 if is_packed(self.atom) else 1

    @property
    def taken(self) -> int:
        """Columns of tensor memory, those of scales included."""
        return self.columns + sum(scale.columns for scale in self.scales)

    @property
    def scale_buffers(self) -> tuple[LinearLayout, LinearLayout]:
        """Scales of A (M x scales) and of B (scales x N) in shared memory."""
        a, b = self.scales
        return a.shared, permute_dims(b.shared, (1, 0))

    @property
    def scale_places(self) -> tuple[LinearLayout, LinearLayout]:
        """The same in tensor memory."""
        a, b = self.scales
        return a.tensor, permute_dims(b.tensor, (1, 0))


def padded(extent: int, least: int) -> int:
    """An extent of scales as it is stored: what there is of a whole copy, repeated."""
    return max(extent, least)


def _fitting_rows(product: Product) -> list[MmaRow]:
    """Dense instructions of one CTA for the product's types and scales."""
    a, b, acc = product.types
    found = find_mma(product.chip, family=f"{TENSOR}.block_scale", a=a, b=b, acc=acc, sparse=False)
    return [
        row
        for row in found
        if row.cta_group == 1
        and row.scale is not None
        and (row.scale.type, row.scale.vector) == product.scale
    ]


@lru_cache(maxsize=1)
def _atoms() -> dict[str, MmaAtom]:
    rows = find_mma(family=f"{TENSOR}.block_scale", sparse=False)
    one = [row for row in rows if row.cta_group == 1]
    return {atom_title(atom): atom for row in one for atom in row.atoms() if _is_usable(atom)}


def is_packed(atom: MmaAtom) -> bool:
    """Whether an instruction reads two elements from a byte."""
    return atom.row.kind in _PACKED


def _is_usable(atom: MmaAtom) -> bool:
    """Elements of a byte in memory, or two of them in one: others would have to be spread."""
    row = atom.row
    whole = BITS[row.a] == BITS[row.b] == _BYTE
    return is_power_of_two(atom.n) and (whole or is_packed(atom))


def reads_packed(atom: str) -> bool:
    """Whether an instruction of this name takes A and B as bytes of two elements."""
    found = _atoms().get(atom)
    return is_of_bytes(atom) or (found is not None and is_packed(found))


class ScaledTensorTier(TensorTier):
    """tcgen05.mma with block scales, of one CTA. Tiles of 128 rows and more."""

    def choose(self, product: Product) -> str | Unfit:
        """The instruction with the most columns."""
        assert product.scale is not None, "asked about products with scales alone"
        if not find_mma(product.chip, family=f"{TENSOR}.block_scale", sparse=False):
            return Unfit("")
        a, b, acc = product.types
        scale, vector = product.scale
        rows = _fitting_rows(product)
        if not rows:
            return Unfit(f"it does not multiply {a} by {b} into {acc} with one {scale} for "
                         f"{vector} elements")  # fmt: skip
        problem = product_problem(product, 128)
        if problem is not None:
            return problem
        usable = (atom for row in rows for atom in row.atoms() if _is_usable(atom))
        atoms = [atom for atom in usable if product.packed or not is_packed(atom)]
        if not atoms:
            return Unfit(f"{a} lies a byte an element in shared memory, and it reads it packed")
        return _instruction(product, atoms)

    def has(self, atom: str) -> bool:
        """Whether `atom` is such an instruction of an N that is a power of two."""
        return atom in _atoms()

    def plan(self, planned: Planned) -> ScaledTensorPlan:
        """The plan of a product whose instruction is one of these. Extents are those of A and B as
        they lie in memory: K counts bytes of two elements where it reads these.
        """
        atom, (m, n, k) = _atoms()[planned.atom], planned.shape[1:]
        each = 2 if is_packed(atom) else 1
        return ScaledTensorPlan(atom, (m, n, each * k), planned.num_warps)


def _instruction(product: Product, atoms: list[MmaAtom]) -> str | Unfit:
    _, m, n, k = product.shape
    fitting = [atom for atom in atoms if not (m % atom.m or n % atom.n or k % atom.k)]
    if not fitting:
        return Unfit(f"no instruction of it divides tiles of {m}x{n}x{k}")
    atom = max(fitting, key=lambda atom: (atom.m, atom.n))
    plan = ScaledTensorPlan(atom, (m, n, k), product.num_warps)
    if plan.taken > COLUMNS:
        return Unfit(f"its sums and scales take {plan.taken} columns of tensor memory, and a "
                     f"multiprocessor has {COLUMNS}")  # fmt: skip
    if plan.registers > MAX_ACCUMULATORS:
        return Unfit(f"its sums would take {plan.registers} registers of a thread with "
                     f"{product.num_warps} warps")  # fmt: skip
    return atom_title(atom)
