"""The rule set of `convert-tileas-to-llvm`, and what its files share."""

from __future__ import annotations

from tile_core.convert import Conversion, RuleSet
from tile_core.mlir import ir
from tile_nvptx.passes.tileas.thread.state import KernelState

rules = RuleSet("convert-tileas-to-llvm")


def state(cx: Conversion) -> KernelState:
    """The state of the kernel being converted."""
    found = cx.state
    assert isinstance(found, KernelState)
    return found


def text(op: ir.OpView, name: str, default: str = "") -> str:
    """A string attribute, or `default`."""
    attributes = op.attributes
    return ir.StringAttr(attributes[name]).value if name in attributes else default
