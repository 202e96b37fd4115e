"""Functions of scalars, applied to each element that a thread has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tile_core.mlir import ir
from tile_nvptx.passes.tileas.device.vectors import map_scalar
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.state import Kernel
from tile_nvptx.passes.tileas.thread.types import count_of, element_of, vector_of


def apply_each(
    cx: Kernel,
    callee: str,
    operands: Sequence[ir.Value],
    result: ir.Type,
    *,
    via: str | None = None,
    intrinsic: bool = False,
    literals: Mapping[int, int] | None = None,
) -> ir.Value:
    """`callee` on each element of `operands`, which are vectors or scalars as `result` is (see
    `map_scalar`).
    """
    kind, count = element_of(result), count_of(result)
    name, body = map_scalar(
        callee,
        [str(element_of(operand.type)) for operand in operands],
        str(kind),
        count,
        via=via,
        intrinsic=intrinsic,
        literals=literals,
    )
    given = [operand for at, operand in enumerate(operands) if at not in (literals or {})]
    b = Builder(cx)
    is_scalar = not isinstance(result, ir.VectorType)
    if is_scalar:
        given = [b.splat(operand, 1) for operand in given]
    found = cx.state.helpers.call(cx, name, body, given, vector_of(count, kind)).result
    return b.extract(found, 0) if is_scalar else found
