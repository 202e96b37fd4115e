"""Tiles of MMA atoms: how the operands of a whole block tile lie in the registers of its warps."""

from collections.abc import Sequence

from tile_cute.atoms.records import REGISTERS, MmaAtom
from tile_cute.errors import LayoutError
from tile_cute.linear.layout import LinearLayout, is_power_of_two, log2


def tiled_fragment(
    atom: MmaAtom, operand: str, tile: tuple[int, int, int], warps: tuple[int, int] = (1, 1)
) -> LinearLayout:
    """The layout of "a" (M x K), "b" (K x N) or "c" (M x N) of an M x N x K tile.

    `warps` stand along M and N (in units of the atom's own threads: warp groups for wgmma), M
    fastest; A is replicated over the warps along N, B over those along M. What remains is
    repeated in registers: the low register bits are one atom's operand, then K, then N, then M,
    so that the registers of one atom call are neighbours. A tile smaller than the warps is
    replicated over the surplus ones. LayoutError for an operand that is not in registers and a
    tile that the atom does not divide.
    """
    base, dims = _base(atom, operand)
    sizes = dict(zip("mnk", tile, strict=True))
    step = {"m": atom.m, "n": atom.n, "k": atom.k}
    for name in "mnk":
        if sizes[name] % step[name] or not is_power_of_two(sizes[name] // step[name]):
            raise LayoutError(
                f"{atom} does not tile {tile[0]}x{tile[1]}x{tile[2]}: {name.upper()} "
                f"{sizes[name]} is no power-of-two multiple of {step[name]}"
            )
    shape = [sizes[name] for name in dims]
    reached = dict(step)
    bases = {space: list(base.bases[space]) for space in base.spaces}
    for name, count in zip("mn", warps, strict=True):
        for _ in range(log2(count)):
            if reached[name] >= sizes[name]:
                bases.setdefault("warp", []).append((0,) * len(dims))
                continue
            bases.setdefault("warp", []).append(_unit(dims, name, reached[name]))
            reached[name] *= 2
    for name in "knm":
        while name in dims and reached[name] < sizes[name]:
            bases.setdefault("register", []).append(_unit(dims, name, reached[name]))
            reached[name] *= 2
    return LinearLayout(bases, shape)


def _base(atom: MmaAtom, operand: str) -> tuple[LinearLayout, str]:
    layouts = {"a": (atom.a_layout, "mk"), "b": (atom.b_layout, "kn"), "c": (atom.c_layout, "mn")}
    if operand not in layouts:
        raise LayoutError(f"an MMA has operands a, b and c, not '{operand}'")
    layout, dims = layouts[operand]
    residency = atom.row.residency["abc".index(operand)]
    if layout is None or REGISTERS not in (residency if operand == "a" else (residency,)):
        raise LayoutError(f"operand {operand} of {atom} is not held in registers as a bit layout")
    if operand == "a" and atom.row.sparse:
        raise LayoutError(f"A of {atom} is compressed; tile its stored columns instead")
    return layout, dims


def _unit(dims: str, name: str, value: int) -> tuple[int, ...]:
    return tuple(value if dim == name else 0 for dim in dims)


def warp_grid(tile: Sequence[int], atom: MmaAtom, warps: int) -> tuple[int, int]:
    """Warps along (M, N) so that each warp's part is as square as possible; M gets the first."""
    m, n = 1, 1
    while m * n < warps:
        rows, columns = tile[0] // (m * atom.m), tile[1] // (n * atom.n)
        taller = tile[0] // m >= tile[1] // n
        if rows > 1 and (taller or columns <= 1):
            m *= 2
        elif columns > 1:
            n *= 2
        else:
            m *= 2
    return m, n
