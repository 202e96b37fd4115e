"""Rules of sequences, named and generic barriers, and of stripes."""

from __future__ import annotations

import re

from tile_core.mlir import ir
from tile_cute.cutlass.dialect.around import MOST_WARPS, integer, parents, word
from tile_cute.cutlass.dialect.checks.pipes import NAMED_BARRIERS
from tile_cute.cutlass.dialect.types import name_of, numbers_of
from tile_cute.dialect.base import operand_of
from tile_cute.errors import LayoutError
from tile_cute.layout import Layout
from tile_cute.values import View

_LANES = 32
_MOST_THREADS = 1024
#: Element types that stripes move, and the least width.
_WIDTH = 16


def sequence(op: ir.OpView) -> None:
    """Depth and length of a sequence."""
    depth, length = numbers_of(op.operation.results[0].type)
    if depth < 1 or length < 1:
        raise LayoutError(f"expects a depth and a length, but got {depth} and {length}")


def sequence_init(op: ir.OpView) -> None:
    """Warps of a group."""
    warps = integer(op, "warps")
    if not 1 <= warps <= MOST_WARPS:
        raise LayoutError(f"expects groups of 1 to {MOST_WARPS} warps, but got {warps}")


def same_depth(op: ir.OpView) -> None:
    """The cursor is one of this sequence."""
    values = [*op.operation.operands, *op.operation.results]
    found = [
        numbers_of(value.type)[0] for value in values if name_of(value.type).startswith("seq_bar")
    ]
    for other in found:
        if other != found[0]:
            raise LayoutError(f"expects a cursor of depth {found[0]}, but got one of depth {other}")


def named_barrier(op: ir.OpView) -> None:
    """A barrier that is not the block's, for whole warps, which all of their lanes come to."""
    number = integer(op, "barrier_id")
    if not 0 < number < NAMED_BARRIERS:
        raise LayoutError(
            f"expects a named barrier, 1 to {NAMED_BARRIERS - 1} (0 is the block's), but got "
            f"{number}"
        )
    _threads(integer(op, "threads"))
    _warp_cooperative(op)


def generic_barrier(op: ir.OpView) -> None:
    """Who meets: the block, or `threads` threads at a named barrier."""
    number = integer(op, "barrier_id", 0)
    if not 0 <= number < NAMED_BARRIERS:
        raise LayoutError(f"expects a named barrier, 0 to {NAMED_BARRIERS - 1}, but got {number}")
    if number or "threads" in op.operation.attributes:
        _threads(integer(op, "threads"))
    _warp_cooperative(op)


def _threads(count: int) -> None:
    if count % _LANES or not 0 < count <= _MOST_THREADS:
        raise LayoutError(f"expects threads of whole warps, a multiple of 32, but got {count}")


def _warp_cooperative(op: ir.OpView) -> None:
    """No lane is elected around it."""
    for parent in parents(op):
        if parent.name != "scf.if":
            continue
        owner = parent.operands[0].owner
        if not isinstance(owner, ir.Block) and owner.operation.name == "nvvm.elect.sync":
            raise LayoutError("is warp-cooperative, but stands where one lane of a warp comes")


# --- stripes -------------------------------------------------------------------------------------


def striped(op: ir.OpView) -> None:
    """A fragment in registers, as large as a thread's stripe of the memory."""
    threads = integer(op, "threads", 0)
    if threads <= 0:
        raise LayoutError(f"expects a positive number of threads, but got {threads}")
    registers, memory = (_view(value) for value in list(op.operation.operands)[:2])
    if registers.element != memory.element:
        raise LayoutError(
            f"expects elements of {registers.element} in memory, but got {memory.element}"
        )
    width = int(re.sub(r"\D", "", registers.element.partition("E")[0]) or 0)
    if width < _WIDTH:
        raise LayoutError(f"expects elements of at least 16 bits, but got {registers.element}")
    if registers.layout.size * threads != memory.layout.size:
        raise LayoutError(
            f"expects {registers.layout.size} elements for each of {threads} threads, but got "
            f"{memory.layout.size}"
        )


def _view(value: ir.Value) -> View:
    found = operand_of(value.type)
    assert isinstance(found, View), "its kind is checked before"
    layout = found.layout
    if not isinstance(layout, Layout) or not layout.is_static:
        raise LayoutError(f"expects a static shape, but got {layout}")
    return found


#: Elements that global memory reduces at once, by reduction. 16-bit floats have no maximum but of
#: vectors (PTX ISA, "red").
ATOMICS = {
    "add": ("f32", "f64", "f16", "bf16", "i32", "i64"),
    "max": ("f32", "i32", "i64"),
}


def striped_reduce(op: ir.OpView) -> None:
    """A reduction that there is for the elements."""
    striped(op)
    how = word(op, "reduction", tuple(ATOMICS), "add")
    element = _view(op.operation.operands[0]).element
    if element not in ATOMICS[how]:
        raise LayoutError(f"cannot reduce {element} by {how}")
