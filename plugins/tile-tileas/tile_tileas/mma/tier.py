"""Tiers of instructions that multiply tiles, and the choice between them. No MLIR here.

A product runs on the first tier of its target that takes it: `choose` is the one place that
decides. What it decides is the name of an instruction, the `atom` of `nv_tileas.dot`, from which
`tier_named` gives the tier back; where the warps stand is written next to it once layouts are
assigned. Passes ask the tier, and none knows instructions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from tile_cute.linear import LinearLayout

from tile_tileas.mma.families import TENSOR

Extents = tuple[int, int, int, int]  # B, M, N, K
Warps = tuple[int, int, int]  # along B, M, N


@dataclass(frozen=True)
class Product:
    """A product before its instruction is chosen.

    Attributes:
        chip: "sm_90a".
        types: PTX types of A, B and the accumulator.
        shape: B, M, N, K; B is 1 for rank 2.
        rank: of the tiles, 2 or 3.
        num_warps: of the block.
        max_shared: bytes of shared memory that the block may have.
        promotes: sums are kept in f32 outside of the tensor cores, as those of 8-bit floats are
            without `fast_acc`.
        orders: how A and B lie in memory, along "K" or "MN"; "" if nobody knows.
        scale: PTX type of block scales, and how many elements along K have one; None without.
        packed: A and B are there as bytes of two elements of four bits along K, too.
        ctas: blocks of a cluster that make it together: M counts the rows of one of them, N the
            columns of all, of which each has its part of B.
    """

    chip: str
    types: tuple[str, str, str]
    shape: Extents
    rank: int
    num_warps: int
    max_shared: int
    promotes: bool = False
    orders: tuple[str, str] = ("", "")
    scale: tuple[str, int] | None = None
    packed: bool = False
    ctas: int = 1

    def part(self, parts: int) -> Product:
        """One of `parts` products, each of as many of the rows."""
        batch, m, n, k = self.shape
        return replace(self, shape=(batch, m // parts, n, k))


@dataclass(frozen=True)
class Planned:
    """A product on an instruction: what a `nv_tileas.dot` says of itself."""

    atom: str
    shape: Extents
    rank: int
    num_warps: int


@dataclass(frozen=True)
class Unfit:
    """Why a tier does not take a product; "" where its target has none of its instructions."""

    reason: str


class Tier(Protocol):
    """One kind of instruction: "fma", "mma.sync", "wgmma"."""

    family: str

    def choose(self, product: Product) -> str | Unfit:
        """The instruction for a product, or why there is none."""
        ...

    def has(self, atom: str) -> bool:
        """Whether `atom` is an instruction of this tier."""
        ...

    def accumulator(self, planned: Planned, *, whole_rows: bool) -> LinearLayout:
        """The layout in which the accumulator is best.

        With `whole_rows` a row stays in one warp as far as there are rows: something folds them.
        """
        ...


@dataclass(frozen=True)
class Choice:
    """An instruction, and what kept higher tiers from taking the product: (family, reason)."""

    atom: str
    refused: tuple[tuple[str, str], ...] = ()


def choose(product: Product, tiers: Sequence[Tier]) -> Choice | None:
    """The instruction of the first of `tiers` that takes the product; None if none does."""
    refused: list[tuple[str, str]] = []
    for tier in tiers:
        if product.ctas > 1 and tier.family != TENSOR:
            continue  # no other instruction reads the memory of two blocks
        found = tier.choose(product)
        if isinstance(found, str):
            return Choice(found, tuple(refused))
        if found.reason:
            refused.append((tier.family, found.reason))
    return None
