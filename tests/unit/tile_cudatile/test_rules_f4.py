"""Rules of views of f4, two elements to a byte."""

from __future__ import annotations

import pytest
from tile_cudatile import types as t
from unit.tile_cudatile.rule_support import (
    SCALAR,
    complaint,
)


def _f4(strides: tuple[int | None, ...], sparse: int | None = None) -> str:
    """What is said about a load and a store through a view of f4."""
    view = t.TensorView(t.F4E2M1FN, (64,) * len(strides), strides)
    shape = (4, 16)[: len(strides)]
    index: list[t.Type] = [SCALAR] * len(strides)
    if sparse is None:
        seen: t.View = t.PartitionView(shape, view, tuple(range(len(strides))))
    else:
        seen = t.GatherScatterView(shape, view, sparse)
        index[sparse] = t.Tile((shape[sparse],), t.I32)
    tile = t.Tile(shape, t.F4E2M1FN)
    order = {"memory_ordering_semantics": "weak"}
    load = complaint("load_view_tko", [seen, tuple(index), None], [tile, t.TOKEN], **order)
    store = complaint("store_view_tko", [tile, seen, tuple(index), None], [t.TOKEN], **order)
    assert load == store
    return load


_ONE = "an f4 view access requires exactly one statically encoded unit stride to identify the"


@pytest.mark.parametrize(
    ("strides", "sparse", "text"),
    [
        ((64, 1), None, ""),
        ((1, 64), None, ""),
        ((None, 1), None, ""),
        ((64, 1), 0, ""),
        ((1, 64), 1, ""),
        (
            (None, None),
            None,
            f"{_ONE} packing dimension; got 0 in '!cuda_tile.tensor_view<64x64xf4E2M1FN, "
            "strides=[?,?]>'",
        ),
        (
            (2,),
            None,
            f"{_ONE} packing dimension; got 0 in '!cuda_tile.tensor_view<64xf4E2M1FN, "
            "strides=[2]>'",
        ),
        (
            (1, 1),
            0,
            f"{_ONE} packing dimension; got 2 in '!cuda_tile.tensor_view<64x64xf4E2M1FN, "
            "strides=[1,1]>'",
        ),
        (
            (64, 1),
            1,
            "an f4 gather/scatter view cannot use packing dimension 1 as its sparse dimension",
        ),
        (
            (1, 64),
            0,
            "an f4 gather/scatter view cannot use packing dimension 0 as its sparse dimension",
        ),
    ],
)
def test_f4_needs_a_dimension_to_pack(
    strides: tuple[int | None, ...], sparse: int | None, text: str
) -> None:
    assert _f4(strides, sparse) == text
