"""Operations from a table: name, operands, results, verifier.

An operand or result name ends in `?` if it is optional and in `*` if it is a list.
"""

# pyright: reportGeneralTypeIssues=false

import types
from collections.abc import Callable, Sequence
from typing import Any

from tile_core.dialect import Dialect, Operand, Operation, Pure, Result, reject
from tile_core.mlir import ir
from tile_cute.errors import LayoutError

Check = Callable[[ir.OpView], None]


def define(
    dialect: type[Dialect],
    name: str,
    operands: Sequence[str] = (),
    results: Sequence[str] = (),
    *,
    doc: str,
    check: Check | None = None,
    pure: bool = False,
) -> type[Operation]:
    """Create and register the class of one operation.

    `check` raises LayoutError with the diagnostic; the verifier reports it at the operation.
    """
    annotations: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    ordered = sorted(
        [(spec, Operand) for spec in operands] + [(spec, Result) for spec in results],
        key=lambda item: item[0].endswith("?"),
    )
    for spec, kind in ordered:
        field = spec.rstrip("?*")
        annotations[field] = kind[Any]
        if spec.endswith("*"):
            annotations[field] = Sequence[kind[Any]]
        elif spec.endswith("?"):
            annotations[field] = kind[Any] | None
            defaults[field] = None

    def body(namespace: dict[str, Any]) -> None:
        namespace["__annotations__"] = annotations
        namespace["__doc__"] = doc
        namespace.update(defaults)
        if check is not None:
            namespace["verify_invariants"] = staticmethod(_verifier(check))

    class_name = "".join(part.capitalize() for part in name.split("_")) + "Op"
    options = {"dialect": dialect, "name": name, "traits": [Pure] if pure else []}
    return types.new_class(class_name, (Operation,), options, body)


def _verifier(check: Check) -> Callable[[ir.OpView], bool]:
    def verify(op: ir.OpView) -> bool:
        try:
            check(op)
        except LayoutError as error:
            return reject(op, str(error))
        except KeyError as error:
            return reject(op, f"needs attribute {error}")
        return True

    return verify
