"""Products of warps whose instruction takes block scales: mma.sync with `.block_scale`.

PTX ISA, "mma" with block scaling: 8-bit floats and, in bytes, f4E2M1FN with a power of two for 32
elements (mxf8f6f4), f4E2M1FN with one for 32 (mxf4), or with a number for 16 (mxf4nvf4). Elements
of the latter that are there as bytes of two, as they lie in memory, are taken as such bytes.
"""

from __future__ import annotations

from tile_cute.linear import LinearLayout

from tile_tileas.dots import (
    SCALED_FAMILY,
    atom_named,
    choose_scaled_atom,
    fragment,
    has_atom,
    name_of_bytes,
    preferred_grid,
)
from tile_tileas.mma.tier import Planned, Product, Unfit


class BlockScaledTier:
    """The largest such instruction whose shape divides the tiles."""

    family = SCALED_FAMILY

    def choose(self, product: Product) -> str | Unfit:
        """The name of a row of the registry: M, N and K of these are one."""
        assert product.scale is not None, "asked about products with scales alone"
        _, *sizes = product.shape
        m, n, k = sizes
        atom = choose_scaled_atom(product.chip, product.types, product.scale, (m, n, k))
        if atom is not None:
            atoms = product.shape[0] * (m // atom.m) * (n // atom.n)
            if atoms >= product.num_warps:
                packed = product.packed and product.rank == 2
                return (name_of_bytes(atom) if packed else None) or atom.row.name
            # As in tileiras, which matters for scales of f8E4M3FN: the instruction takes no sign,
            # and the language promises none, but programs with tiles this small have negative ones.
            return Unfit(
                f"{atoms} of its {atom.m}x{atom.n} are fewer than {product.num_warps} warps"
            )
        if choose_scaled_atom(product.chip, ("e4m3", "e4m3", "f32"), ("ue8m0", 32), (16, 8, 32)):
            a, b, acc = product.types
            scale, vector = product.scale
            return Unfit(
                f"no instruction multiplies {a} by {b} into {acc} in tiles of {m}x{n}x{k} with one "
                f"{scale} for {vector} elements"
            )
        return Unfit("")

    def has(self, atom: str) -> bool:
        """Whether the registry has a warp-level MMA of this name that takes scales."""
        return has_atom(atom, SCALED_FAMILY)

    def accumulator(self, planned: Planned, *, whole_rows: bool) -> LinearLayout:
        """Fragments, as those of `mma.sync`."""
        atom = atom_named(planned.atom)
        grid = preferred_grid(atom, planned.shape, planned.num_warps, whole_rows)
        return fragment(atom, "c", planned.shape, planned.rank, grid)
