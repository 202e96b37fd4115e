"""The nine constraint attributes of the specification, read from operations.

An attribute that an operation declares (inherent) wins over one that hangs on it (discardable);
MLIR keeps both in one dictionary for operations of Python, so that only one value can be there.
"""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_core.sched import Constraints

_PLACEMENT = "tileas.schedule.constraint."
#: Attribute -> field of `Constraints`, for integers.
INTEGERS = {
    f"{_PLACEMENT}gid": "gid",
    f"{_PLACEMENT}leader_gid": "leader_gid",
    f"{_PLACEMENT}max_depth": "max_depth",
    "tileas.preferred_atom_size": "preferred_atom_size",
    "tileas.max_num_slices_for_non_reduce_axis": "max_num_slices",
    "tileas.max_num_of_recomputations": "max_num_of_recomputations",
}
#: The same for unit attributes: being there is what counts.
UNITS = {
    f"{_PLACEMENT}force_serial_execution": "force_serial_execution",
    "tileas.recomputable": "recomputable",
    "tileas.enable_defusion_if_fusion_extending_liveness": "enable_defusion",
}
_U32 = 0xFFFFFFFF


@dataclass(frozen=True)
class Found:
    """What an operation asks, and whether it asks anything."""

    constraints: Constraints
    any: bool


_NONE = Found(Constraints(), any=False)


def constraints_of(op: ir.Operation) -> Found:
    """The constraints on an operation.

    Raises:
        CompileError: an integer key holds something else.
    """
    if not len(op.attributes):
        return _NONE
    given: dict[str, object] = {}
    for key, field in INTEGERS.items():
        if key in op.attributes:
            attribute = op.attributes[key]
            if not isinstance(attribute, ir.IntegerAttr):
                raise error_at(op, f"expects '{key}' to be an integer, but got {attribute}")
            given[field] = attribute.value & _U32
    for key, field in UNITS.items():
        if key in op.attributes:
            given[field] = True
    return Found(Constraints(**given), bool(given))  # pyright: ignore[reportArgumentType]
