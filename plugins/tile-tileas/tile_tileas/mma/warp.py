"""Products of warps: mma.sync on fragments in registers."""

from __future__ import annotations

from tile_cute.linear import LinearLayout

from tile_tileas.dots import atom_named, choose_atom, fragment, has_atom, preferred_grid
from tile_tileas.mma.families import WARP
from tile_tileas.mma.tier import Planned, Product, Unfit


class WarpTier:
    """The largest `mma.sync` whose shape divides the tiles."""

    family = WARP

    def choose(self, product: Product) -> str | Unfit:
        """The name of a row of the registry: M, N and K of these are one."""
        _, *sizes = product.shape
        m, n, k = sizes
        atom = choose_atom(product.chip, product.types, (m, n, k))
        if atom is None:
            a, b, acc = product.types
            return Unfit(f"no instruction multiplies {a} by {b} into {acc} in tiles of {m}x{n}x{k}")
        return atom.row.name

    def has(self, atom: str) -> bool:
        """Whether the registry has a warp-level MMA of this name."""
        return has_atom(atom)

    def accumulator(self, planned: Planned, *, whole_rows: bool) -> LinearLayout:
        """Fragments, of warps that stand as they do best."""
        atom = atom_named(planned.atom)
        grid = preferred_grid(atom, planned.shape, planned.num_warps, whole_rows)
        return fragment(atom, "c", planned.shape, planned.rank, grid)
