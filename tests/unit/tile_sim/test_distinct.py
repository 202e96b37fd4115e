"""Places of memory, each once: as `np.unique` has them, whichever way they are found."""

from __future__ import annotations

import numpy as np
import pytest
from tile_sim.machine.distinct import distinct


@pytest.mark.parametrize("count", [0, 1, 63, 64, 5000])
@pytest.mark.parametrize("span", [1, 7, 4096, 1 << 40])
@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_as_numpy_has_them(count: int, span: int, dtype: type) -> None:
    rng = np.random.default_rng(count + span)
    places = rng.integers(0, min(span, np.iinfo(dtype).max), (count, 2)).astype(dtype)
    found = distinct(places)
    np.testing.assert_array_equal(found, np.unique(places))
    assert found.dtype == dtype
