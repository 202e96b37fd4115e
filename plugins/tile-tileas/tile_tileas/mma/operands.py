"""How operands of wgmma and tcgen05 lie in shared memory. No MLIR here.

PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout" and "tcgen05 Shared Memory
Layout".
"""

from __future__ import annotations

from functools import lru_cache

from tile_cute.atoms.descriptors import SPANS, SmemOperand, canonical_buffer, match_operand
from tile_cute.errors import LayoutError
from tile_cute.linear import LinearLayout, memory_access, permute_dims
from tile_cute.linear.plans import ACCESS_COST, WAVEFRONT_COST

#: Where buffers of operands begin, in bytes: the widest swizzle repeats after so many (PTX ISA,
#: "Strides", "Swizzling modes"), and descriptors count from there.
OPERAND_ALIGNMENT = 1024
#: Swizzles of operands, the widest first, and that of 32-bit elements along M or N, which tcgen05
#: alone reads so.
_SWIZZLES, _COARSE = ("128B", "64B", "32B", "none"), ("128B_32B_atom",)


@lru_cache(maxsize=256)
def operand_buffer(
    extent: int, k: int, bits: int, major: str
) -> tuple[LinearLayout, SmemOperand] | None:
    """The buffer (offset -> (mn, k)) of an operand with the widest swizzle its rows fill.

    Wider swizzles have fewer bank conflicts and larger boxes. None if no canonical layout fits.
    """
    row = (k if major == "K" else extent) * bits // 8
    for swizzle in _COARSE if major == "MN" and bits == 32 else _SWIZZLES:
        if row < SPANS[swizzle]:
            continue
        try:
            buffer = canonical_buffer(extent, k, bits, major, swizzle)
            return buffer, match_operand(buffer, bits)
        except LayoutError:
            continue
    return None


@lru_cache(maxsize=256)
def staged_operand(
    source: LinearLayout, operand: str, bits: int, majors: tuple[str, ...]
) -> LinearLayout | None:
    """The buffer (offset -> tile) that threads fill most cheaply with an operand they hold.

    `source` is the layout in which they hold it; `operand` is "a" (M x K) or "b" (K x N), of
    elements of `bits` bits; `majors` are the orders that the instruction reads. None if no
    canonical layout fits.
    """
    extent, k = source.shape if operand == "a" else reversed(source.shape)
    found: list[LinearLayout] = []
    for major in majors:
        made = operand_buffer(extent, k, bits, major)
        if made is not None:
            found.append(made[0] if operand == "a" else permute_dims(made[0], (1, 0)))

    def cost(buffer: LinearLayout) -> int:
        store = memory_access(buffer, source, bits)
        return ACCESS_COST * len(store.accesses[0]) + WAVEFRONT_COST * store.wavefronts

    return min(found, key=cost, default=None)


def read_operand(buffer: LinearLayout, operand: str, bits: int) -> SmemOperand:
    """What the descriptor of an operand in `buffer` (offset -> tile) says.

    Raises:
        LayoutError: the buffer's layout is not canonical.
    """
    return match_operand(buffer if operand == "a" else permute_dims(buffer, (1, 0)), bits)
