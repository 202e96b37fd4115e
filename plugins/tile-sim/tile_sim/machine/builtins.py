"""The functions that the CUDA system provides to device code."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable

import numpy as np

from tile_sim.errors import SimError
from tile_sim.machine.access import load
from tile_sim.machine.group import Group
from tile_sim.machine.local import read_local, write_local
from tile_sim.machine.memory import ALIGNMENT
from tile_sim.program.layout import align_up
from tile_sim.program.names import Var

_FORMAT = re.compile(
    r"%([-+ #0]*)(\*|\d+)?(?:\.(\*|\d+))?(hh|h|ll|l|j|z|t|L)?([diouxXeEfFgGaAcsp%])"
)
#: `malloc` gives addresses that are multiples of it ("Heap Memory Allocation", CUDA C++ Programming
#: Guide), so that nobody else has the bytes up to the next one.
_HEAP_ALIGNMENT = 16
System = Callable[[Group, list[Var], list[Var]], None]


def _vprintf(g: Group, inputs: list[Var], outputs: list[Var]) -> None:
    """`int vprintf(const char *format, void *arguments)`: text in order of thread."""
    formats = read_local(g, inputs[0].offset, "<u8")
    buffers = read_local(g, inputs[1].offset, "<u8")
    rows, lanes = g.lane_rows(), g.lane_ids()
    for i, (fmt, buffer) in enumerate(zip(formats, buffers, strict=True)):
        mask = np.zeros((len(g.rows), 32), bool)
        mask[np.searchsorted(g.rows, rows[i]), lanes[i]] = True
        one = g.masked(mask)
        text = _format(one, g.wave.memory.c_string(int(fmt)), int(buffer))
        g.wave.output.append(text)
    if outputs:
        write_local(g, outputs[0].offset, np.zeros(len(rows), np.int32))


def _format(one: Group, template: str, buffer: int) -> str:
    """Arguments are packed at their natural alignment: 4 bytes, or 8 for l, doubles, pointers."""
    cursor = buffer

    def argument(size: int, code: str) -> float | int:
        nonlocal cursor
        cursor = -(-cursor // size) * size
        address = np.array([cursor], np.uint64)
        word = load(one, "generic", address, np.dtype(f"<u{size}"), 1)[0]
        cursor += size
        return struct.unpack(code, word.tobytes())[0]

    def replace(found: re.Match[str]) -> str:
        flags, width, precision, length, kind = found.groups()
        if kind == "%":
            return "%"
        if width == "*":
            width = str(argument(4, "<i"))
        if precision == "*":
            precision = str(argument(4, "<i"))
        spec = f"%{flags}{width or ''}" + (f".{precision}" if precision is not None else "")
        long = length in ("l", "ll", "j", "z", "t")
        if kind in "eEfFgG":
            return (spec + kind) % argument(8, "<d")
        if kind in "aA":
            return float(argument(8, "<d")).hex()
        if kind == "s":
            address = int(argument(8, "<Q"))
            return (spec + "s") % one.wave.memory.c_string(address)
        if kind == "p":
            return f"{int(argument(8, '<Q')):#x}"
        if kind == "c":
            return (spec + "c") % (int(argument(4, "<i")) & 0xFF)
        code = ("<q" if long else "<i") if kind in "di" else ("<Q" if long else "<I")
        return (spec + ("d" if kind in "iu" else kind)) % argument(8 if long else 4, code)

    return _FORMAT.sub(replace, template)


def _assertfail(g: Group, inputs: list[Var], outputs: list[Var]) -> None:
    """`__assertfail(message, file, line, function, char size)`."""
    memory = g.wave.memory
    message, file, line, function = (
        int(read_local(g, var.offset, f"<u{var.size}")[0]) for var in inputs[:4]
    )
    raise SimError(
        "assert",
        f"{memory.c_string(file)}:{line}: {memory.c_string(function)}: "
        f"assertion `{memory.c_string(message)}` failed",
    )


def _malloc(g: Group, inputs: list[Var], outputs: list[Var]) -> None:
    """`malloc(size)` and `__cuda_syscall_aligned_malloc(size, alignment)`."""
    if len(inputs) > 1:
        for alignment in read_local(g, inputs[1].offset, "<u8"):
            if alignment & (alignment - 1) or not 0 < alignment <= ALIGNMENT:
                raise SimError("launch", f"aligned malloc: alignment {int(alignment)}")
    sizes = read_local(g, inputs[0].offset, "<u8")
    result = np.zeros(len(sizes), np.uint64)
    for i, size in enumerate(sizes):
        given = int(size) if g.wave.settings.strict else align_up(int(size), _HEAP_ALIGNMENT)
        data = np.zeros(max(given, 1), np.uint8)
        buffer = g.wave.memory.place(f"malloc {int(size)}", data)
        buffer.valid = np.zeros(len(data) + 8, np.uint8)[: len(data) // 8 * 8 + 8]
        result[i] = buffer.base
    write_local(g, outputs[0].offset, result)


def _free(g: Group, inputs: list[Var], outputs: list[Var]) -> None:
    for address in read_local(g, inputs[0].offset, "<u8"):
        if not address:
            continue
        buffer = g.wave.memory.buffer_at(int(address))
        if buffer is None or buffer.base != address or not buffer.name.startswith("malloc"):
            raise SimError("bad-free", f"{int(address):#x} was not given by malloc")
        g.wave.memory.remove(buffer)


SYSTEM: dict[str, System] = {
    "vprintf": _vprintf,
    "__assertfail": _assertfail,
    "malloc": _malloc,
    "__cuda_syscall_aligned_malloc": _malloc,
    "free": _free,
}
