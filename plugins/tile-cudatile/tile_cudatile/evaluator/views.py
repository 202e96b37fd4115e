"""Views: which elements of memory a tile access touches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tile_cudatile.evaluator.errors import EvaluationError
from tile_cudatile.evaluator.formats import FLOATS, Array, dtype_of
from tile_cudatile.types import (
    GatherScatterView,
    Scalar,
    StridedView,
    TensorView,
    View,
)


@dataclass(frozen=True)
class TensorViewValue:
    """A tensor in memory: address of its first element, extents and strides in elements."""

    type: TensorView
    base: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True)
class ViewValue:
    """A tensor seen as tiles."""

    type: View
    tensor: TensorViewValue

    @property
    def dim_map(self) -> tuple[int, ...]:
        """Tile dimension -> tensor dimension."""
        if isinstance(self.type, GatherScatterView):
            return tuple(range(len(self.type.tile_shape)))
        return self.type.dim_map

    @property
    def steps(self) -> tuple[int, ...]:
        """Elements between the starts of neighbouring tiles."""
        if isinstance(self.type, StridedView):
            return self.type.traversal_strides
        if isinstance(self.type, GatherScatterView):  # indices count elements along all axes
            return (1,) * len(self.type.tile_shape)
        return self.type.tile_shape

    def index_space(self) -> tuple[int, ...]:
        """Number of tiles along each tile dimension."""
        extents = (self.tensor.shape[dim] for dim in self.dim_map)
        return tuple(-(-extent // step) for extent, step in zip(extents, self.steps, strict=True))


@dataclass(frozen=True)
class Access:
    """The elements of one tile: offsets in elements from the base, and which are inside."""

    offsets: Array
    inside: Array | None  # None: all of them


def access(view: ViewValue, index: tuple[Array, ...], what: str) -> Access:
    """The elements that the tile with `index` stands for.

    Raises:
        EvaluationError: there is no such tile.
    """
    tensor, type_ = view.tensor, view.type
    rank = len(type_.tile_shape)
    offsets: Array = np.zeros((), np.int64)
    inside: Array | None = None
    for position, extent in enumerate(type_.tile_shape):
        coordinates = _coordinates(view, position, index[position], extent, what)
        dim = view.dim_map[position]
        fits = (coordinates >= 0) & (coordinates < tensor.shape[dim])
        along = [1] * rank
        along[position] = extent
        offsets = offsets + (coordinates * tensor.strides[dim]).reshape(along)
        if not fits.all():
            fits = fits.reshape(along)
            inside = fits if inside is None else inside & fits
    if inside is not None:
        inside = np.broadcast_to(inside, type_.tile_shape)
    return Access(offsets, inside)


def _coordinates(view: ViewValue, position: int, index: Array, extent: int, what: str) -> Array:
    type_ = view.type
    if isinstance(type_, GatherScatterView) and position == type_.sparse_dim:
        return np.asarray(index).astype(np.int64)
    number, step = int(index), view.steps[position]
    if isinstance(type_, GatherScatterView):
        return np.arange(extent, dtype=np.int64) + number
    count = -(-view.tensor.shape[view.dim_map[position]] // step)
    if not 0 <= number < count:
        raise EvaluationError(
            f"'cuda_tile.{what}' op index {number} is outside of the index space, which has "
            f"{count} tiles along dimension {position}"
        )
    return np.arange(extent, dtype=np.int64) + number * step


_PADDING = {
    "zero": 0.0,
    "neg_zero": -0.0,
    "nan": float("nan"),
    "pos_inf": float("inf"),
    "neg_inf": float("-inf"),
}


def padding_value(padding: str | None, element: Scalar, unspecified: Array) -> Array:
    """What elements outside of the tensor are read as."""
    if padding is None:
        return unspecified
    if padding == "zero" or element not in FLOATS:
        return np.zeros((), dtype_of(element))
    with np.errstate(all="ignore"):
        return np.asarray(_PADDING[padding], np.float32).astype(dtype_of(element))
