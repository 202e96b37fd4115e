"""Special registers (PTX ISA, "Special Registers")."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tile_sim.machine.group import LANES, Group
from tile_sim.program.types import Type
from tile_sim.ptx.syntax import Name

Array = np.ndarray

# Vectors with a value for each thread or each warp: an attribute of the wave, `[3][warps, 1|32]`.
_VECTORS = {
    "%tid": "tid",
    "%ntid": "ntid",
    "%ctaid": "ctaid",
    "%nctaid": "nctaid",
    "%clusterid": "clusterid",
    "%nclusterid": "nclusterid",
    "%cluster_ctaid": "cluster_ctaid",
    "%cluster_nctaid": "cluster_nctaid",
}
_BITS = np.uint32(1) << LANES.astype(np.uint32)
_LANE_CONSTANTS: dict[str, Array] = {
    "%laneid": LANES.astype(np.uint32),
    "%lanemask_eq": _BITS,
    "%lanemask_lt": _BITS - np.uint32(1),
    "%lanemask_le": _BITS | (_BITS - np.uint32(1)),
    "%lanemask_gt": ~(_BITS | (_BITS - np.uint32(1))),
    "%lanemask_ge": ~(_BITS - np.uint32(1)),
}
# One value for each warp, `[warps, 1]`, or one for the launch.
_PER_WARP: dict[str, str] = {
    "%warpid": "warpid",
    "%cluster_ctarank": "cluster_rank",
    "%smid": "smid",
}
_SCALARS: dict[str, str] = {
    "%nwarpid": "warps_per_cta",
    "%nsmid": "sm_count",
    "%gridid": "zero",
    "%cluster_nctarank": "cluster_size",
    "%is_explicit_cluster": "explicit_cluster",
    "%dynamic_smem_size": "dynamic_shared",
    "%total_smem_size": "total_shared",
    "%aggr_smem_size": "total_shared",
    # In tileiras' code, with `.minperctamemory`: 0 where the driver gives no such memory; the code
    # then takes its place in a hidden parameter's memory, by %smid.
    "%perctamemoryoffset": "zero",
    "%reserved_smem_offset_begin": "zero",
    "%reserved_smem_offset_cap": "shared_start",
    "%reserved_smem_offset_end": "shared_start",
}
_CLOCKS = {
    "%clock": 0,
    "%clock_lo": 0,
    "%clock_hi": 32,
    "%clock64": 0,
    "%globaltimer": 0,
    "%globaltimer_lo": 0,
    "%globaltimer_hi": 32,
}


_KNOWN = frozenset((*_VECTORS, *_LANE_CONSTANTS, *_PER_WARP, *_SCALARS, *_CLOCKS, "WARP_SZ"))


def special_register(name: Name, type_: Type) -> Callable[[Group], Array] | None:
    """What reads a special register as `type_`, or None for other names."""
    text, dtype = name.name, type_.dtype
    if text not in _KNOWN and not text.startswith("%envreg"):
        return None
    if text in _VECTORS and name.part in ("x", "y", "z", "w"):
        attribute, axis = _VECTORS[text], "xyzw".index(name.part)
        if axis == 3:
            return lambda g: np.zeros((1, 1), dtype)
        return lambda g: getattr(g.wave, attribute)[axis][g.sel].astype(dtype)
    if text in _LANE_CONSTANTS:
        row = _LANE_CONSTANTS[text].astype(dtype)[None, :]
        return lambda g: row
    if text in _PER_WARP:
        attribute = _PER_WARP[text]
        return lambda g: getattr(g.wave, attribute)[g.sel].astype(dtype)
    if text in _SCALARS:
        attribute = _SCALARS[text]
        return lambda g: np.array(getattr(g.wave, attribute)).astype(dtype)
    if text in _CLOCKS:
        return _clock(_CLOCKS[text], dtype)
    if text == "WARP_SZ":
        return lambda g: np.array(32).astype(dtype)
    if text.startswith("%envreg") and text[7:].isdigit():
        return lambda g: np.array(0).astype(dtype)
    return None


def _clock(shift: int, dtype: np.dtype) -> Callable[[Group], Array]:
    """Instruction blocks executed so far: it only grows, and is the same in every run."""

    def read(g: Group) -> Array:
        g.wave.polled = True
        return np.array(g.wave.clock >> shift).astype(dtype)

    return read
