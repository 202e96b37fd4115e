"""Rules of assumptions."""

from __future__ import annotations

from typing import Any

import pytest
from tile_cudatile import types as t
from tile_cudatile.attrs import Bounded, DivBy, SameElements
from unit.tile_cudatile.rule_support import (
    SCALAR,
    TENSOR,
    F4x4,
    I4x4,
    complaint,
)

CASES: list[tuple[str, list[Any], list[t.Type], dict[str, Any], str]] = [
    (
        "assume",
        [I4x4],
        [I4x4],
        {"predicate": DivBy(3)},
        "'cuda_tile.div_by' divisor must be a power of 2",
    ),
    (
        "assume",
        [I4x4],
        [I4x4],
        {"predicate": DivBy(4, 2)},
        "'cuda_tile.div_by' 'every'/'along' must be used in combination",
    ),
    (
        "assume",
        [I4x4],
        [I4x4],
        {"predicate": DivBy(1 << 63)},
        "'cuda_tile.div_by' divisor is too large",
    ),
    (
        "assume",
        [TENSOR],
        [TENSOR],
        {"predicate": DivBy(4, 2, 0)},
        "'cuda_tile.div_by' "
        "'every'/'along' cannot be used if the constrained value is a tensor_view",
    ),
    (
        "assume",
        [F4x4],
        [F4x4],
        {"predicate": DivBy(4)},
        "'cuda_tile.div_by' is valid only for tile of integer/pointer or tensor_view values",
    ),
    (
        "assume",
        [SCALAR],
        [SCALAR],
        {"predicate": DivBy(4, 1, 0)},
        "'cuda_tile.div_by' 'every'/'along' cannot be used if the constrained value is a 0D tile",
    ),
    (
        "assume",
        [I4x4],
        [I4x4],
        {"predicate": DivBy(4, 1, 2)},
        "'cuda_tile.div_by' every_dim (2) must be >= 0 and < tile rank (2)",
    ),
    (
        "assume",
        [I4x4],
        [I4x4],
        {"predicate": DivBy(4, 8, 1)},
        "expected 'cuda_tile.div_by' "
        "every_dim to be within 0 and the size of the respective dimension (4)",
    ),
    (
        "assume",
        [F4x4],
        [F4x4],
        {"predicate": SameElements((1, 1))},
        "'cuda_tile.same_elements' is valid only for tile of integer/pointer values",
    ),
    (
        "assume",
        [I4x4],
        [I4x4],
        {"predicate": SameElements((1,))},
        "expected number of values in "
        "'cuda_tile.same_elements' (1) to match rank of constrained tile (2)",
    ),
    (
        "assume",
        [I4x4],
        [I4x4],
        {"predicate": SameElements((1, 8))},
        "expected "
        "'cuda_tile.same_elements' value 1 to be within 0 and the size of the respective dimension "
        "(4)",
    ),
    (
        "assume",
        [F4x4],
        [F4x4],
        {"predicate": Bounded(0)},
        "'cuda_tile.bounded' is valid only for tile of integer values",
    ),
    (
        "assume",
        [t.Tile((), t.I8)],
        [t.Tile((), t.I8)],
        {"predicate": Bounded(-129)},
        "'cuda_tile.bounded' expects lower bound to be within [-128, 127]",
    ),
    (
        "assume",
        [t.Tile((), t.I8)],
        [t.Tile((), t.I8)],
        {"predicate": Bounded(0, 128)},
        "'cuda_tile.bounded' expects upper bound to be within [-128, 127]",
    ),
    (
        "assume",
        [SCALAR],
        [SCALAR],
        {"predicate": Bounded(2, 1)},
        "'cuda_tile.bounded' expects lower bound to be less than or equal to upper bound",
    ),
]


@pytest.mark.parametrize(
    ("name", "operands", "results", "attrs", "text"),
    CASES,
    ids=[f"{c[0]}: {c[4][:40]}" for c in CASES],
)
def test_operations(
    name: str, operands: list[Any], results: list[t.Type], attrs: dict[str, Any], text: str
) -> None:
    assert complaint(name, operands, results, **attrs) == text
