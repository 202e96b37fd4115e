"""What an array holds after a launch, beside what it should hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .inputs import BITS, decode


def compare(got: np.ndarray, wanted: np.ndarray, rule: Mapping[str, Any]) -> dict[str, Any]:
    """`rule` has the kind, and a relative and absolute bound; without bounds all bits count.

    The answer has `ok`, how many elements differ in bits, the largest error of those that are
    numbers, relative to the bound's scale, and the first element outside of the bound.
    """
    kind = rule["kind"]
    a, b = (x.reshape(-1).view(np.uint8).view(BITS[kind]) for x in (got, wanted))
    bits = a.view(f"u{a.itemsize}") != b.view(f"u{b.itemsize}")
    found: dict[str, Any] = {"elements": int(a.size), "different": int(bits.sum())}
    if not bits.any():
        return {"ok": True, **found}
    x, y = decode(a, kind), decode(b, kind)
    outside = bits
    if kind[0] in "fbe":
        with np.errstate(invalid="ignore", over="ignore"):
            error = np.abs(x - y)
            both = np.isfinite(x) & np.isfinite(y)
            relative = error[both] / np.maximum(np.abs(y[both]), 1e-30)
        found["largest_error"] = float(error[both].max(initial=0.0))
        found["largest_relative"] = float(relative.max(initial=0.0))
        if "relative" in rule:
            bound = rule["absolute"] + rule["relative"] * np.abs(y)
            same = (x == y) | (np.isnan(x) & np.isnan(y))
            outside = bits & ~same & ~(both & (error <= bound))
    if not outside.any():
        return {"ok": True, **found}
    at = int(np.argmax(outside))
    found |= {"wrong": int(outside.sum()), "first": at, "got": str(x[at]), "wanted": str(y[at])}
    return {"ok": False, **found}
