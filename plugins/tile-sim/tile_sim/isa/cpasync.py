"""`cp.async` of up to 16 bytes, its groups, and waits for them."""

from __future__ import annotations

import numpy as np

from tile_sim.errors import SimError
from tile_sim.isa.address import address
from tile_sim.isa.common import PRED, U32
from tile_sim.machine.access import Part, parts
from tile_sim.machine.copies import Batch
from tile_sim.machine.group import Group
from tile_sim.machine.local import threads
from tile_sim.machine.memory import Buffer
from tile_sim.program.decode import Decode, Exec, Getter, instruction
from tile_sim.program.names import Reg
from tile_sim.ptx.syntax import Name, Operand

Array = np.ndarray
_U1 = np.dtype("u1")


@instruction("cp.async.ca", "cp.async.cg")
def cp_async(cx: Decode) -> Exec:
    """`[dst], [src], size {, src_size | ignore} {, policy}`."""
    level = cx.ins.mods[1]
    if cx.option("shared", "shared::cta") is None or not cx.flag("global"):
        cx.fail("copies from .global to .shared")
    policy = cx.flag("L2::cache_hint")
    cx.prefixed("L2::")
    cx.done((3, 4, 5))
    width = cx.constant(2)
    if width not in ((4, 8, 16) if level == "ca" else (16,)):
        cx.fail(f"cannot copy {width} bytes")
    extra = list(cx.operands[3:])
    if policy:
        extra = extra[:-1]
    size = _source_size(cx, extra[0], width) if extra else None
    target, to = address(cx, 0, "shared")
    source, of = address(cx, 1, "global")

    def execute(g: Group) -> None:
        taken = np.full(g.count(), width) if size is None else size(g)
        _issue(g, target, to(g), source, of(g), taken, width)

    return execute


def _source_size(cx: Decode, operand: Operand, width: int) -> Getter:
    """Bytes to read: given, or none where the `ignore-src` predicate holds."""
    if isinstance(operand, Name):
        entity = cx.find(operand.name)
        if isinstance(entity, Reg) and entity.type.kind == "p":
            ignore = cx.src(operand, PRED)
            return lambda g: np.where(g.lanes(np.asarray(ignore(g))), 0, width)
    get = cx.src(operand, U32)

    def read(g: Group) -> Array:
        size = g.lanes(np.asarray(get(g))).astype(np.int64)
        if (size > width).any():
            raise SimError("bad-copy", f"source size {int(size.max())} is larger than {width}")
        return size

    return read


def _issue(
    g: Group, target: str, to: Array, source: str, of: Array, size: Array, width: int
) -> None:
    flat = np.zeros(len(to), np.int64)
    for part in parts(g, target, to, width, _U1):
        if part.space != "shared":
            raise SimError("bad-address", "the destination of cp.async is not in shared memory")
        g.wave.observe_copy(g, part, of if part.pick is None else of[part.pick], width)
        flat[slice(None) if part.pick is None else part.pick] = part.index
    reads: list[tuple[Buffer, Array, Array]] = []
    wanted = np.flatnonzero(size > 0)
    if len(wanted):
        where = of[wanted]
        if g.wave.counters is not None:
            rows = g.lane_rows()[wanted]
            g.wave.counters.global_access(g.wave, rows, where, width, size[wanted])
        if g.wave.trace is not None:
            lanes = g.lane_ids()[wanted]
            g.wave.trace.copy(g.wave, g.lane_rows()[wanted], lanes, where, width)
        if (where & np.uint64(width - 1)).any():
            raise SimError("misaligned", f"a source of {width} bytes needs that alignment")
        for buffer, here in _split(g, where, size[wanted]):
            lanes = wanted if here is None else wanted[here]
            start = (of[lanes] - np.uint64(buffer.base)).astype(np.int64)
            reads.append((buffer, lanes, start))
            if g.wave.monitor is not None:
                _observe(g, buffer, lanes, of[lanes], size[lanes])
    who = threads(g)
    queue = g.wave.copies
    batch = Batch(who, queue.current[who], flat, reads, size, width, np.zeros(len(who), bool))
    queue.issue(batch)


def _observe(g: Group, buffer: Buffer, lanes: Array, where: Array, size: Array) -> None:
    """Tell the checker which bytes of a buffer lanes read."""
    at = (where - np.uint64(buffer.origin)).astype(np.int64)
    for width in np.unique(size):
        mine = size == width
        part = Part(buffer.view(_U1), at[mine], lanes[mine], None, "global", base=buffer.origin)
        g.wave.monitor.copies.access("read", g, part, int(width))


def _split(g: Group, where: Array, size: Array) -> list[tuple[Buffer, Array | None]]:
    """Bounds by the bytes really read."""
    memory = g.wave.memory
    try:
        found = memory.split(where, 1)
    except SimError as error:  # it knows of one byte, the user of a copy
        row = int(np.flatnonzero(where == np.uint64(error.address or 0))[0])
        raise _outside(g, where, size, row) from None
    for buffer, here in found:
        rows = np.arange(len(where)) if here is None else np.flatnonzero(here)
        ends = where[rows] + size[rows].astype(np.uint64)
        last = int(ends.argmax())
        if int(ends[last]) > buffer.base + buffer.size:
            raise _outside(g, where, size, int(rows[last]))
    return found


def _outside(g: Group, where: Array, size: Array, row: int) -> SimError:
    address = int(where[row])
    error = SimError("out-of-bounds", g.wave.memory.describe(address, int(size[row])))
    error.address = address
    return error


@instruction("cp.async.commit_group")
def commit_group(cx: Decode) -> Exec:
    cx.done(0)
    return lambda g: g.wave.copies.commit(threads(g))


@instruction("cp.async.wait_group")
def wait_group(cx: Decode) -> Exec:
    cx.done(1)
    left = cx.constant(0)
    return lambda g: _wait(g, left)


def _wait(g: Group, left: int) -> None:
    """Of each thread, at most `left` of its newest committed groups stay pending."""
    g.wave.copies.wait(threads(g), left)
    if g.wave.monitor is not None:
        g.wave.monitor.copies.waited(threads(g), left)


@instruction("cp.async.wait_all")
def wait_all(cx: Decode) -> Exec:
    cx.done(0)

    def execute(g: Group) -> None:
        g.wave.copies.commit(threads(g))
        _wait(g, 0)

    return execute
