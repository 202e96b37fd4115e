"""Code of NVIDIA's own compiler in the simulator: a witness from outside.

`tileiras` leaves the PTX of its kernels in the cubin, and x86-64 host code that makes the tensor
maps of a launch. Both are output of the tool; this package takes them out and runs them.

    from tile_sim.peer import Cubin, tileiras

    cubin = tileiras.find().compile(bytecode, "sm_90")
    module = cubin.load()
    report = module.launch("matmul", (4, 4, 1), None, arguments, check=True)

A cubin of any other compiler of the same form (PTX inside, host code in `.nv.host`) runs as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tile_sim.peer.cubin import Cubin

__all__ = ["Cubin"]


def __getattr__(name: str) -> Any:
    # Resolved late: listing the verb beneath must not load NumPy.
    if name not in __all__:
        raise AttributeError(f"module 'tile_sim.peer' has no attribute '{name}'")
    from tile_sim.peer.cubin import Cubin

    return Cubin
