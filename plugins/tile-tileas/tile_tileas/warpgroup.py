"""Which wgmma multiplies two tiles, and where its operands lie. No MLIR here.

A product is M x K by K x N. Warpgroups stand along M as far as it reaches in steps of 64 rows, then
along N; what remains is repeated in registers: one atom's fragment, then N, then M. B lies in
shared memory, A there or in registers, in the canonical layouts of the instruction.
PTX ISA, "Asynchronous warpgroup level matrix instructions".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from tile_cute.atoms import MmaAtom, find_mma
from tile_cute.atoms.descriptors import SPANS, SmemOperand, canonical_buffer, match_operand
from tile_cute.atoms.types import BITS
from tile_cute.errors import LayoutError
from tile_cute.linear import LinearLayout
from tile_cute.linear.layout import log2

FAMILY = "wgmma"
#: Warps of a warpgroup.
WARPS = 4
#: Registers of a thread that accumulators may take; the rest holds addresses and descriptors.
MAX_ACCUMULATORS = 200
_WORD_BITS = 32


@dataclass(frozen=True)
class WarpgroupPlan:
    """How the warpgroups of a block share a product.

    Attributes:
        atom: one instruction.
        grid: warpgroups along M and N.
        counts: atoms of one warpgroup along M, N and K.
        shape: M, N, K of the product.
    """

    atom: MmaAtom
    grid: tuple[int, int]
    counts: tuple[int, int, int]
    shape: tuple[int, int, int]

    @property
    def steps(self) -> tuple[int, int]:
        """From one atom of a warpgroup to its next along M and N, in elements."""
        return self.atom.m * self.grid[0], self.atom.n

    @property
    def accumulators(self) -> int:
        """Registers of a thread for the accumulator."""
        words = self.atom.n * BITS[self.atom.row.acc] // (2 * _WORD_BITS)
        return self.counts[0] * self.counts[1] * words

    def origin(self, warpgroup: int) -> tuple[int, int]:
        """(M, N) of the first atom of a warpgroup."""
        along_m, along_n = warpgroup % self.grid[0], warpgroup // self.grid[0]
        return self.atom.m * along_m, self.counts[1] * self.atom.n * along_n

    @property
    def accumulator(self) -> LinearLayout:
        """C: (register, lane, warp) -> (m, n)."""
        own = self.atom.c_layout
        assert own is not None, "wgmma accumulates in registers"
        m, n, _ = self.shape
        registers, warps = list(own.bases["register"]), list(own.bases["warp"])
        registers += _steps(1, self.atom.n, self.counts[1])
        registers += _steps(0, self.steps[0], self.counts[0])
        warps += _steps(0, self.atom.m, self.grid[0])
        warps += _steps(1, self.counts[1] * self.atom.n, self.grid[1])
        bases = {"register": registers, "lane": own.bases["lane"], "warp": warps}
        return LinearLayout(bases, (m, n))

    @property
    def a_fragment(self) -> LinearLayout:
        """A in registers: (register, lane, warp) -> (m, k); atoms along K, then along M."""
        own = self.atom.a_layout
        assert own is not None, "wgmma takes A from registers, too"
        m, _, k = self.shape
        registers, warps = list(own.bases["register"]), list(own.bases["warp"])
        registers += _steps(1, self.atom.k, self.counts[2])
        registers += _steps(0, self.steps[0], self.counts[0])
        warps += _steps(0, self.atom.m, self.grid[0])
        warps += [(0, 0)] * log2(self.grid[1])
        bases = {"register": registers, "lane": own.bases["lane"], "warp": warps}
        return LinearLayout(bases, (m, k))


def _steps(dim: int, first: int, count: int) -> list[tuple[int, int]]:
    """Bases of `count` parts along `dim`, `first` elements apart."""
    values = [first << bit for bit in range(log2(count))]
    return [(value, 0) if dim == 0 else (0, value) for value in values]


@lru_cache(maxsize=256)
def plan_warpgroups(
    chip: str, ptx_types: tuple[str, str, str], shape: tuple[int, int, int], num_warps: int
) -> WarpgroupPlan | None:
    """The plan with the widest instruction; None where the product or the warps do not fit.

    `ptx_types` are those of A, B and the accumulator, `shape` is (M, N, K), powers of two.
    """
    if num_warps % WARPS:
        return None
    a, b, acc = ptx_types
    rows = find_mma(chip, family=FAMILY, a=a, b=b, acc=acc, sparse=False)
    m, n, k = shape
    for row in rows:
        for grid in _grids(m, num_warps // WARPS):
            atoms = [atom for atom in row.atoms() if _fits(atom, shape, grid)]
            if atoms:
                atom = max(atoms, key=lambda atom: atom.n)
                counts = (m // (atom.m * grid[0]), n // (atom.n * grid[1]), k // atom.k)
                plan = WarpgroupPlan(atom, grid, counts, shape)
                if plan.accumulators <= MAX_ACCUMULATORS:
                    return plan
    return None


def _grids(m: int, warpgroups: int) -> Iterator[tuple[int, int]]:
    """Ways to place the warpgroups; along M first, so that each reads B whole and A in part."""
    along_m = warpgroups
    while along_m:
        yield along_m, warpgroups // along_m
        along_m //= 2


def _fits(atom: MmaAtom, shape: tuple[int, int, int], grid: tuple[int, int]) -> bool:
    m, n, k = shape
    return not (m % (atom.m * grid[0]) or n % (atom.n * grid[1]) or k % atom.k)


@lru_cache(maxsize=256)
def operand_buffer(
    extent: int, k: int, bits: int, major: str
) -> tuple[LinearLayout, SmemOperand] | None:
    """The buffer (offset -> (mn, k)) of an operand with the widest swizzle its rows fill.

    Wider swizzles have fewer bank conflicts and larger boxes. None if no canonical layout fits.
    """
    row = (k if major == "K" else extent) * bits // 8
    for swizzle in ("128B", "64B", "32B", "none"):
        if row < SPANS[swizzle]:
            continue
        try:
            buffer = canonical_buffer(extent, k, bits, major, swizzle)
            return buffer, match_operand(buffer, bits)
        except LayoutError:
            continue
    return None
