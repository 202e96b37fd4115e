"""Tensor-map copies: which box of global memory a shared-memory tile is, and whether it can be.

The tile's place in global memory is followed mode by mode: shared offset -> tile coordinate
(right inverse of the unswizzled shared layout) -> global coordinate (the CTA's V-map, a layout
with strides such as `1@0`). What remains after coalescing is the G-basis: one mode per dimension
of the box, fastest first. PTX ISA, "Tensors"; CUDA driver API, cuTensorMapEncodeTiled.
"""

from dataclasses import dataclass

from tile_cute import int_tuple as it
from tile_cute.errors import LayoutError
from tile_cute.int_tuple import Basis
from tile_cute.layout import Layout
from tile_cute.layout_algebra import coalesce, composition, right_inverse
from tile_cute.swizzle import BYTE_SWIZZLES, ComposedLayout
from tile_cute.tensor_map import MAX_BOX, MAX_RANK

STRIDE_BYTES = 16
_SPANS = {"none": None, "32B": 32, "64B": 64, "128B": 128, "128B_32B_atom": 128}


@dataclass(frozen=True)
class TmaTile:
    """A verified copy: `box` extents and `strides` (in elements, of global memory), fastest first.

    `elements` counts what one issue delivers to all receiving CTAs.
    """

    box: tuple[int, ...]
    strides: tuple[int, ...]
    basis: Layout
    swizzle: str
    elements: int

    @property
    def rank(self) -> int:
        return len(self.box)


def partition(
    smem: Layout | ComposedLayout,
    gmem: Layout,
    v_map: Layout,
    elem_bits: int,
    *,
    multicast: bool = False,
    num_multicast: int | None = None,
) -> TmaTile:
    """The box of a tile; LayoutError with the first thing that a tensor map cannot do.

    `v_map` leads from the coordinates of the shared tile to those of `gmem`.
    """
    if not isinstance(smem, Layout | ComposedLayout):
        raise LayoutError(
            f"invalid smem layout type, expected LayoutType or ComposedLayoutType, got {smem}"
        )
    if not isinstance(gmem, Layout):
        raise LayoutError(f"unsupported layout for the GMEM tensor, got {gmem}")
    plain = smem.outer if isinstance(smem, ComposedLayout) else smem
    if not (plain.is_static and v_map.is_static):
        raise LayoutError(
            f"expected the SMEM layout and the CTA V-map to be static, but got {smem} and {v_map}"
        )
    if gmem.has_basis or plain.has_basis:
        raise LayoutError(
            "expected the GMEM and SMEM layouts to have integer stride elements, "
            f"but got {gmem} and {smem}"
        )
    swizzle = _swizzle_name(smem, elem_bits)
    if len(plain) != len(v_map) or any(
        a.size != b.size for a, b in zip(plain, v_map, strict=False)
    ):
        raise LayoutError(
            "expected top-level shape equivalence between the SMEM layout and the CTA V-map, "
            f"but got {smem} and {v_map}"
        )
    basis = _basis(plain, v_map, smem)
    strides = tuple(_global_stride(step, gmem, basis) for _, step in basis.leaves())
    box = tuple(extent for extent, _ in basis.leaves())
    try:
        check_box(box, strides, elem_bits, swizzle)
    except LayoutError as error:
        raise LayoutError(f"Computed TMA layout is invalid, got {basis}: {error}") from error
    count = _receivers(multicast, num_multicast)
    return TmaTile(box, strides, basis, swizzle, plain.size * count)


def _swizzle_name(smem: Layout | ComposedLayout, elem_bits: int) -> str:
    if isinstance(smem, Layout):
        return "none"
    if smem.inner.is_identity:
        return "none"
    for name, pattern in BYTE_SWIZZLES.items():
        if not pattern.is_identity and pattern.recast(8, 1) == smem.inner.recast(elem_bits, 1):
            return name
    raise LayoutError(f"expected the SMEM layout to be a swizzle layout, but got {smem}")


def _basis(plain: Layout, v_map: Layout, smem: Layout | ComposedLayout) -> Layout:
    inverse = right_inverse(plain)
    if inverse.size != plain.size:
        raise LayoutError(f"failed to compute the TMA G-basis, got {smem}: it has gaps")
    try:
        basis = coalesce(composition(v_map, inverse))
    except LayoutError as error:
        raise LayoutError(f"failed to compute the TMA G-basis, got {smem}: {error}") from error
    if not all(isinstance(step, Basis) for _, step in basis.leaves()):
        raise LayoutError(f"failed to compute the TMA G-basis, got {smem} and {v_map}")
    return basis


def _global_stride(step: it.Leaf, gmem: Layout, basis: Layout) -> int:
    """Distance in global memory of one step along a mode of the G-basis."""
    assert isinstance(step, Basis)
    mode: Layout = gmem
    for index in step.path:
        mode = mode[index]
    leaves = mode.int_leaves()
    if len(leaves) != 1:
        raise LayoutError(
            f"Computed TMA layout is invalid, got {basis}: {step} of {gmem} is no single stride"
        )
    return int(step.count * leaves[0][1])


def check_box(box: tuple[int, ...], strides: tuple[int, ...], elem_bits: int, swizzle: str) -> None:
    """LayoutError, with everything that a tensor map cannot do of it.

    Args:
        box: extents, fastest first.
        strides: of global memory, in elements, fastest first.
    """
    faults = []
    if len(box) > MAX_RANK:
        faults.append(f"{len(box)} dimensions, at most {MAX_RANK}")
    if any(extent > MAX_BOX for extent in box):
        faults.append(f"a box of {max(box)}, at most {MAX_BOX}")
    if strides[0] != 1:
        faults.append(f"stride {strides[0]} in the fastest dimension")
    row = box[0] * elem_bits
    if row % (STRIDE_BYTES * 8):
        faults.append(f"rows of {row} bits, no multiple of 16 bytes")
    if swizzle not in _SPANS:
        raise LayoutError(f"'{swizzle}' is no swizzle of tensor maps; use {', '.join(_SPANS)}")
    span = _SPANS[swizzle]
    if span is not None and row > span * 8:
        faults.append(f"rows of {row // 8} bytes in a swizzle of {span}")
    if any(stride * elem_bits % (STRIDE_BYTES * 8) for stride in strides[1:]):
        faults.append("a stride that is no multiple of 16 bytes")
    if faults:
        raise LayoutError("; ".join(faults))


def _receivers(multicast: bool, num_multicast: int | None) -> int:
    if multicast and (num_multicast is None or num_multicast < 1):
        raise LayoutError("missing or invalid num_multicast for a multicast TMA load")
    if not multicast and num_multicast not in (None, 1):
        raise LayoutError(f"got num_multicast of {num_multicast}")
    return num_multicast or 1


# What tensormap.replace may change in a descriptor in memory (sm_90a on).
MUTABLE_FIELDS = ("base", "dim", "stride")


def check_mutable(field: str, index: int = 0) -> None:
    """LayoutError for a field that the device cannot change."""
    if field not in MUTABLE_FIELDS or (field == "stride" and index == 0):
        raise LayoutError("TMA descriptor field is not device-mutable")
