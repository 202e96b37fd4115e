"""Whether two arrays are the same result."""

from __future__ import annotations

import numpy as np
from tile_cudatile.evaluator.formats import FLOATS
from tile_cudatile.types import SCALARS, Scalar

from tile_fuzz.case import Argument, numbers_of

#: Of results that are approximations: how far they may lie apart, relative to the larger of the
#: two, in units of the format's last place, and absolute. Functions of f32 may be computed by
#: instructions of 2**-11 (tanh.approx) to 2**-22 relative error, PTX ISA 9.7.3.
_LAST_PLACES = 4.0
_RELATIVE = {"f64": 2.0**-44}
_RELATIVE_DEFAULT = 2.0**-16
_ABSOLUTE = {"f64": 2.0**-300}
_ABSOLUTE_DEFAULT = 2.0**-20


def differences(found: np.ndarray, wanted: np.ndarray, argument: Argument) -> np.ndarray:
    """Indices of elements that are not the same."""
    element = SCALARS[argument.element]
    raw = [np.ascontiguousarray(a).view(np.uint8).reshape(a.size, -1) for a in (found, wanted)]
    differ = (raw[0] != raw[1]).any(axis=1)
    if element not in FLOATS or not differ.any():
        return np.flatnonzero(differ)
    left, right = (numbers_of(a.reshape(-1), element) for a in (found, wanted))
    # Which NaN an operation gives is left open.
    differ &= ~(np.isnan(left) & np.isnan(right))
    if not argument.exact:
        differ &= ~_near(left, right, element)
    return np.flatnonzero(differ)


def _near(left: np.ndarray, right: np.ndarray, element: Scalar) -> np.ndarray:
    spec = FLOATS[element]
    # An infinity may be a number that is almost too large.
    a, b = (np.clip(v, -spec.largest, spec.largest) for v in (left, right))
    place = 2.0 ** (1 - spec.precision)
    relative = max(_LAST_PLACES * place, _RELATIVE.get(element.name, _RELATIVE_DEFAULT))
    absolute = _ABSOLUTE.get(element.name, _ABSOLUTE_DEFAULT)
    with np.errstate(all="ignore"):
        largest = np.maximum(np.abs(a), np.abs(b))
        return np.abs(a / 2 - b / 2) * 2 <= relative * largest + absolute
