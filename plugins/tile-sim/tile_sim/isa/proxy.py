"""Fences between proxies, and the other fences of asynchronous work."""

from __future__ import annotations

import numpy as np

from tile_sim.errors import SimError
from tile_sim.isa.address import address
from tile_sim.isa.bulk import addresses_of
from tile_sim.isa.loadstore import SCOPES
from tile_sim.machine.group import Group
from tile_sim.program.decode import Decode, Exec, instruction

_PROXIES = ("alias", "async", "async.global", "async::generic", "tensormap::generic")
_SPACES = ("global", "shared::cta", "shared::cluster", "shared")


def proxy_fence(cx: Decode) -> Exec:
    """`fence.proxy.*`, `fence.mbarrier_init`."""
    if cx.flag("mbarrier_init"):
        cx.one_of("release")
        cx.one_of("cluster")
        cx.done(0)
        return _after_initialisation
    cx.flag("proxy")
    kind = cx.one_of(*_PROXIES)
    space = cx.option(*_SPACES)
    order = cx.option("acquire", "release")
    cx.prefixed("sync_restrict::")
    cx.option(*SCOPES)
    cx.done((0, 2))
    if kind == "tensormap::generic" and order == "acquire":
        return _acquires_map(cx)

    def execute(g: Group) -> None:
        if g.wave.monitor is not None and kind == "async":
            g.wave.monitor.proxy_fence(g, space)

    return execute


def _acquires_map(cx: Decode) -> Exec:
    """`[map], 128`: copies that the warp starts see what others wrote into it."""
    _, place = address(cx, 0, "generic")

    def execute(g: Group) -> None:
        if g.wave.monitor is not None:
            for row, where in set(zip(g.lane_rows().tolist(), addresses_of(g, place), strict=True)):
                g.wave.monitor.maps.acquired(row, where)

    return execute


def _after_initialisation(g: Group) -> None:
    if g.wave.monitor is not None:
        g.wave.monitor.mbarrier_fence(g)


@instruction("griddepcontrol.launch_dependents", "griddepcontrol.wait")
def griddepcontrol(cx: Decode) -> Exec:
    """The grids that this one depends on are over before it starts here."""
    cx.done(0)
    return lambda g: None


#: Registers of a multiprocessor, of which a CTA has at most all (CUDA programming guide, compute
#: capabilities 9.0 and later, which have the instruction).
_REGISTERS = 65536


@instruction("setmaxnreg.inc.sync.aligned", "setmaxnreg.dec.sync.aligned")
def setmaxnreg(cx: Decode) -> Exec:
    """Registers are not limited here; counts are checked, each and, once all warps of a CTA have
    one, all together: who asks for more than others have given back would wait for ever.
    """
    cx.type("u32")
    cx.done(1)
    count = cx.constant(0)
    if not 24 <= count <= 256 or count % 8:
        cx.fail(f"{count} is not a multiple of 8 in 24..256")

    def execute(g: Group) -> None:
        wave = g.wave
        if "setmaxnreg" not in wave.extra:
            wave.extra["setmaxnreg"] = np.zeros(wave.warps, np.int64)
        counts = wave.extra["setmaxnreg"]
        counts[g.rows] = count
        for cta in np.unique(wave.cta_of[g.rows]):
            own = counts[wave.cta_of == cta]
            if own.all() and 32 * own.sum() > _REGISTERS:
                message = f"warps of a CTA ask for {32 * own.sum()} registers, of {_REGISTERS}"
                raise SimError("deadlock", message)

    return execute
