"""Which wgmma multiplies two tiles, and where its operands lie. No MLIR here.

A product is M x K by K x N. Warpgroups stand along M as far as it reaches in steps of 64 rows, then
along N; what remains is repeated in registers: one atom's fragment, then N, then M. B lies in
shared memory, A there or in registers, in the canonical layouts of the instruction.
PTX ISA, "Asynchronous warpgroup level matrix instructions".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from tile_cute.atoms import MmaAtom, find_mma
from tile_cute.atoms.types import BITS
from tile_cute.errors import LayoutError
from tile_cute.linear import LinearLayout
from tile_cute.linear.layout import log2

from tile_tileas.mma.families import WARPGROUP
from tile_tileas.mma.interleaved import (
    BITS_READ,
    MARK,
    Bases,
    as_read,
    interleaved_rows,
    placed,
)
from tile_tileas.mma.tier import Planned, Product, Unfit

#: Warps of a warpgroup.
WARPS = 4
#: Registers of a thread that accumulators may take; the rest holds addresses and descriptors.
MAX_ACCUMULATORS = 200
#: Those that accumulators and fragments of A may take that threads read.
MAX_READ = 224
_ROWS = 64  # of each instruction
_WORD_BITS = 32


@dataclass(frozen=True)
class WarpgroupPlan:
    """How the warpgroups of a block share a product.

    Attributes:
        atom: one instruction.
        grid: warpgroups along M and N.
        counts: atoms of one warpgroup along M, N and K.
        shape: M, N, K of the product.
        along_m: A lies along M in shared memory, and threads read its fragments there.
    """

    atom: MmaAtom
    grid: tuple[int, int]
    counts: tuple[int, int, int]
    shape: tuple[int, int, int]
    along_m: bool = False

    @property
    def name(self) -> str:
        """What a product says of its instruction."""
        return self.atom.instruction + (MARK if self.along_m else "")

    @property
    def steps(self) -> tuple[int, int]:
        """From one atom of a warpgroup to its next along M and N, in elements."""
        return self.atom.m * self.grid[0], self.atom.n

    @property
    def accumulators(self) -> int:
        """Registers of a thread for the accumulator."""
        return self.counts[0] * self.counts[1] * self.atom_registers

    @property
    def atom_registers(self) -> int:
        """Those of one atom."""
        return self.atom.n * BITS[self.atom.row.acc] // (2 * _WORD_BITS)

    def origin(self, warpgroup: int) -> tuple[int, int]:
        """(M, N) of the first atom of a warpgroup."""
        along_m, along_n = warpgroup % self.grid[0], warpgroup // self.grid[0]
        return self.atom.m * along_m, self.counts[1] * self.atom.n * along_n

    @property
    def warps(self) -> tuple[int, int, int]:
        """Warps along B, M and N."""
        return 1, WARPS * self.grid[0], self.grid[1]

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
        bases: Bases = {"register": registers, "lane": list(own.bases["lane"]), "warp": warps}
        return LinearLayout(self._placed(bases), (m, n))

    @property
    def a_fragment(self) -> LinearLayout:
        """A in registers: (register, lane, warp) -> (m, k); atoms along K, then along M."""
        bases, (m, _, k) = self._fragment, self.shape
        return LinearLayout(self._placed(bases), (m, k))

    @property
    def a_read(self) -> LinearLayout:
        """A along M as threads read it: its fragments, or bytes still to be put together."""
        return as_read(self.a_fragment, BITS[self.atom.row.a])

    @property
    def fragments(self) -> int:
        """Registers of a thread for A, if it is there."""
        return 4 * self.counts[0] * self.counts[2]

    def _placed(self, bases: Bases) -> Bases:
        """`bases` with rows where the tile has them."""
        if not self.along_m:
            return bases
        m, _, k = self.shape
        own = LinearLayout(self._fragment, (m, k))
        rows = interleaved_rows(own, self.grid[0], BITS[self.atom.row.a])
        return placed(bases, rows)

    @property
    def _fragment(self) -> Bases:
        """Of A in registers, with rows as atoms count them."""
        own = self.atom.a_layout
        assert own is not None, "wgmma takes A from registers, too"
        registers, warps = list(own.bases["register"]), list(own.bases["warp"])
        registers += _steps(1, self.atom.k, self.counts[2])
        registers += _steps(0, self.steps[0], self.counts[0])
        warps += _steps(0, self.atom.m, self.grid[0])
        warps += [(0, 0)] * log2(self.grid[1])
        return {"register": registers, "lane": list(own.bases["lane"]), "warp": warps}


def _steps(dim: int, first: int, count: int) -> list[tuple[int, int]]:
    """Bases of `count` parts along `dim`, `first` elements apart."""
    values = [first << bit for bit in range(log2(count))]
    return [(value, 0) if dim == 0 else (0, value) for value in values]


@lru_cache(maxsize=256)
def plan_warpgroups(
    chip: str,
    ptx_types: tuple[str, str, str],
    shape: tuple[int, int, int],
    num_warps: int,
    max_accumulators: int = MAX_ACCUMULATORS,
    *,
    promotes: bool = False,
) -> WarpgroupPlan | None:
    """The plan with the widest instruction; None where the product or the warps do not fit.

    `ptx_types` are those of A, B and the accumulator, `shape` is (M, N, K), powers of two;
    `max_accumulators` are registers of a thread, for one atom more if it `promotes`.
    """
    if num_warps % WARPS:
        return None
    a, b, acc = ptx_types
    rows = find_mma(chip, family=WARPGROUP, a=a, b=b, acc=acc, sparse=False)
    m, n, k = shape
    for row in rows:
        for grid in _grids(m, num_warps // WARPS):
            atoms = [atom for atom in row.atoms() if _fits(atom, shape, grid)]
            for atom in sorted(atoms, key=lambda atom: -atom.n)[: 2 if promotes else 1]:
                counts = (m // (atom.m * grid[0]), n // (atom.n * grid[1]), k // atom.k)
                plan = WarpgroupPlan(atom, grid, counts, shape)
                if plan.accumulators + promotes * plan.atom_registers <= max_accumulators:
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


# -- the tier --------------------------------------------------------------------------------------


class WarpgroupTier:
    """wgmma: sm_90a alone. Tiles of 64 rows and more, of blocks of whole warpgroups."""

    family = WARPGROUP

    def choose(self, product: Product) -> str | Unfit:
        """The instruction, N included, with the widest N."""
        a, b, acc = product.types
        if not find_mma(product.chip, family=WARPGROUP, sparse=False):
            return Unfit("")
        if not find_mma(product.chip, family=WARPGROUP, a=a, b=b, acc=acc, sparse=False):
            return Unfit(f"it does not multiply {a} by {b} into {acc}")
        return _problem(product) or _instruction(product)

    def has(self, atom: str) -> bool:
        """Whether `atom` is a dense wgmma of an N that is a power of two."""
        return atom.removesuffix(MARK) in _atoms()

    def accumulator(self, planned: Planned, *, whole_rows: bool) -> LinearLayout:
        """Fragments; warpgroups stand along M first, so that rows stay whole anyway."""
        return planned_warpgroups(planned).accumulator


def _problem(product: Product) -> Unfit | None:
    """What of the product's shape, block or memory does not fit."""
    batch, m, n, k = product.shape
    if product.rank != 2 or batch != 1:
        return Unfit("it multiplies matrices, not batches of them")
    if not product.num_warps or product.num_warps % WARPS:
        return Unfit(f"it is issued by {WARPS} warps together, and the block has "
                     f"{product.num_warps}")  # fmt: skip
    if m % _ROWS:
        return Unfit(f"it has {_ROWS} rows, and the tile {m}")
    a, b, acc = product.types
    (row,) = find_mma(product.chip, family=WARPGROUP, a=a, b=b, acc=acc, sparse=False)
    for name, side, element, order in zip("AB", "MN", (a, b), product.orders, strict=True):
        if order and order not in row.majors and (name == "B" or BITS[element] not in BITS_READ):
            return Unfit(f"it reads {element} along K, and {name} lies along {side} "
                         "in memory: each element would be turned by itself")  # fmt: skip
    wanted = (m * k * BITS[a] + n * k * BITS[b]) // 8
    if wanted > product.max_shared:
        return Unfit(f"its operands take {wanted} bytes of shared memory, and a block has "
                     f"{product.max_shared}")  # fmt: skip
    return None


def _instruction(product: Product) -> str | Unfit:
    _, m, n, k = product.shape
    shape, warps = (m, n, k), product.num_warps
    plan = plan_warpgroups(product.chip, product.types, shape, warps, promotes=product.promotes)
    if plan is not None and product.orders[0] in ("", *plan.atom.row.majors):
        return plan.name
    if plan is not None:
        plan = replace(plan, along_m=True)
        taken = plan.accumulators + plan.fragments + product.promotes * plan.atom_registers
        if taken > MAX_READ:
            return Unfit(f"sums and fragments of A, which lies along M, would take {taken} "
                         f"registers of a thread with {warps} warps")  # fmt: skip
        return plan.name
    whole = plan_warpgroups(product.chip, product.types, shape, warps, m * n)
    if whole is None:
        return Unfit(f"no instruction of it divides tiles of {m}x{n}x{k} among {warps} warps")
    sums = "sums inside and outside of the tensor cores" if product.promotes else "sums"
    taken = whole.accumulators + product.promotes * whole.atom_registers
    return Unfit(f"{sums} would take {taken} registers of a thread with {warps} warps")


@lru_cache(maxsize=1)
def _atoms() -> dict[str, MmaAtom]:
    """Dense instructions whose N is a power of two, by their text."""
    rows = find_mma(family=WARPGROUP, sparse=False)
    atoms = (atom for row in rows for atom in row.atoms())
    return {atom.instruction: atom for atom in atoms if atom.c_layout is not None}


def planned_warpgroups(
    planned: Planned, warps: tuple[int, int, int] | None = None
) -> WarpgroupPlan:
    """The plan of a product whose instruction is chosen; `warps` says where warps stand, if known.

    Raises:
        LayoutError: the instruction does not divide the product so.
    """
    name = planned.atom.removesuffix(MARK)
    atom, shape, along_m = _atoms()[name], planned.shape[1:], name != planned.atom
    m, n, k = shape
    groups = planned.num_warps // WARPS
    grids = _grids(m, groups) if warps is None else [(warps[1] // WARPS, warps[2])]
    for grid in grids:
        if _fits(atom, shape, grid) and grid[0] * grid[1] == groups:
            counts = (m // (atom.m * grid[0]), n // (atom.n * grid[1]), k // atom.k)
            return WarpgroupPlan(atom, grid, counts, shape, along_m)
    raise LayoutError(f"{atom} does not divide a product of {m}x{n}x{k} among {groups} warpgroups")
