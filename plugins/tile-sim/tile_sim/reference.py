"""Comparing a run with the reference evaluator of TileIR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tile_core.diagnostics import TileError, UsageError


def reference_values(
    data: bytes,
    entry: str,
    grid: Sequence[int],
    arguments: Sequence[Any],
    name: str,
    ftz: bool = False,
) -> list[Any]:
    """What the arguments (flat, as the kernel takes them) are after `entry`, by the evaluator.

    `data` is TileIR bytecode, `ftz` the compiler's option of that name. The arguments themselves
    stay as they are. Raises TileError for what the evaluator finds wrong with the program.
    """
    try:
        from tile_cudatile import BytecodeError, evaluate, read_bytecode
        from tile_cudatile.evaluator import EvaluationError
    except ImportError:
        raise UsageError("--reference needs the package tile-cudatile") from None
    try:
        module = read_bytecode(data)
    except BytecodeError as error:
        message = f"--reference needs TileIR bytecode, and '{name}' is none"
        raise UsageError(message, hint=str(error)) from None
    copies: dict[int, np.ndarray] = {}
    for value in arguments:
        if isinstance(value, np.ndarray):
            copies.setdefault(id(value), value.copy())
    values = [copies.get(id(value), value) for value in arguments]
    try:
        evaluate(module, entry, grid, values, ftz=ftz)
    except EvaluationError as error:
        notes = (*error.notes, "found by the reference evaluator")
        raise TileError(error.message, where=error.where, notes=notes, hint=error.hint) from None
    return values


def difference(got: Any, wanted: Any, rtol: float) -> tuple[int, str]:
    """How many elements differ, and a sentence; relative and absolute tolerance are `rtol`."""
    a, b = np.asarray(got), np.asarray(wanted)
    if a.shape != b.shape:
        return max(a.size, 1), f"shape {a.shape}, expected {b.shape}"
    if a.dtype.kind in "iub" and b.dtype.kind in "iub":
        close = a == b
    else:
        a, b = a.astype(np.float64), b.astype(np.float64)
        close = np.isclose(a, b, rtol=rtol, atol=rtol, equal_nan=True)
    if close.all():
        return 0, "as expected"
    at = tuple(int(i) for i in np.argwhere(~close)[0])
    bad = int((~close).sum())
    return bad, f"{bad} elements differ, first at {at}: {a[at]} instead of {b[at]}"
