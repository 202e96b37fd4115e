"""The rule set of `convert-tileas-to-llvm`, and what its files share."""

from __future__ import annotations

from tile_core.convert import RuleSet
from tile_core.mlir import ir

rules = RuleSet("convert-tileas-to-llvm")


def text(op: ir.OpView, name: str, default: str = "") -> str:
    """A string attribute, or `default`."""
    attributes = op.attributes
    return ir.StringAttr(attributes[name]).value if name in attributes else default
