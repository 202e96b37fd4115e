"""The predicates of comparisons."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tile_cudatile.evaluator.formats import Array

COMPARE: dict[str, Callable[[Array, Array], Any]] = {
    "equal": np.equal,
    "not_equal": np.not_equal,
    "less_than": np.less,
    "less_than_or_equal": np.less_equal,
    "greater_than": np.greater,
    "greater_than_or_equal": np.greater_equal,
}
