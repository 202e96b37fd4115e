"""Reading matrices that descriptors place in shared memory."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tile_sim.errors import SimError
from tile_sim.machine import shared
from tile_sim.machine.wave import Wave
from tile_sim.numeric import elements
from tile_sim.numeric.descriptors import Layout, byte_offsets, swizzle
from tile_sim.numeric.elements import Element

Array = np.ndarray


def read_matrices(
    wave: Wave,
    ctas: Array,
    words: Array,
    decode: Callable[[int], tuple[int, Layout]],
    element: Element,
    extent: tuple[int, int],
    k_major: bool,
    what: str,
    select: Array | None = None,
) -> Array:
    """Matrices `[descriptors, mn, k]` in binary64, one for each CTA and descriptor.

    With `select`, only these rows of A (columns of B) are read, and only they come back.
    """
    mn, k = extent
    out = np.empty((len(ctas), mn if select is None else len(select), k))
    starts, layouts = zip(*(decode(int(word)) for word in words), strict=True)
    for layout in dict.fromkeys(layouts):
        mine = np.array([other == layout for other in layouts])
        begin = np.array(starts)[mine]
        out[mine] = _read_alike(
            wave, ctas[mine], begin, layout, element, (mn, k), k_major, what, select
        )
    return out


def _read_alike(
    wave: Wave, ctas: Array, starts: Array, layout: Layout, element: Element,
    extent: tuple[int, int], k_major: bool, what: str, select: Array | None,
) -> Array:  # fmt: skip
    mn, k = extent
    size = max(element.bits, 8) // 8
    if k_major:
        rows, row_bytes = mn, k * element.bits // 8
    else:
        if element.bits < 8:
            raise SimError("bad-descriptor", f"{what}: .{element.name} has to be K-major")
        rows, row_bytes = k, mn * size
    offsets = byte_offsets(layout, rows, row_bytes, k_major)[:, ::size]
    if select is not None:
        offsets = offsets[select] if k_major else offsets[:, select]
    address = swizzle(starts[:, None, None] + offsets, layout)
    raw = _gather(wave, ctas, address, size, what)
    if element.bits < 8:
        raw = elements.unpack(raw, element.bits)
    values = element.decode(raw)
    return values if k_major else values.transpose(0, 2, 1)


def observe_matrices(
    wave: Wave, warps: Array, cta: int, word: int, decode: Callable[[int], tuple[int, Layout]],
    element: Element, extent: tuple[int, int], k_major: bool, what: str,
    select: Array | None = None,
) -> Array:  # fmt: skip
    """Tell the checker which shared bytes a matrix of an asynchronous product covers, which some
    warps start together; where they lie in the wave's shared memory.
    """
    mn, k = extent
    start, layout = decode(word)
    rows, row_bytes = (mn, k * element.bits // 8) if k_major else (k, mn * element.bits // 8)
    offsets = byte_offsets(layout, rows, row_bytes, k_major)
    if select is not None:
        chosen = np.isin(np.arange(mn), select)
        offsets = offsets[chosen] if k_major else offsets[:, np.repeat(chosen, row_bytes // mn)]
    where = cta * wave.shared.stride + swizzle(start + offsets, layout).reshape(-1)
    # The product may run later, when the copy has landed; nothing says that it does not run now.
    _, state = wave.shared.view(np.dtype("u1"))
    if (state[where] & 2).any():
        raise SimError("pending", f"{what} reads shared memory that a copy has yet to fill")
    wave.monitor.async_read(warps, where, what)
    return where


def _gather(wave: Wave, ctas: Array, address: Array, size: int, what: str) -> Array:
    low, high = int(address.min()), int(address.max()) + size
    shared.flat(wave, 0, np.array([low, high - 1]), what)
    index = (ctas[:, None, None] * wave.shared.stride + address) // size
    data, state = wave.shared.view(np.dtype(f"<u{size}"))
    if wave.check_uninitialised:
        found = state[index]
        good = found.dtype.type(int.from_bytes(b"\1" * size, "little"))
        if (found != good).any():
            pending = bool((found & found.dtype.type(2)).any())
            kind = "pending" if pending else "uninitialised"
            how = "a copy has yet to fill" if pending else "was never written"
            raise SimError(kind, f"{what} reads shared memory that {how}")
    return data[index]
