"""cuTile programs on the CPU: `import tile_sim.cutile` before the first launch.

From then on `cuda.tile.launch` takes CPU arrays (NumPy, or CPU tensors of torch), compiles kernels
with this compiler and runs them in the simulator. cuTile derives the specialisation (divisibility,
strides, constants) and marshals the arguments itself, as it does for a GPU.

    import numpy as np
    import cuda.tile as ct
    import tile_sim.cutile

    ct.launch(None, (8,), kernel, (x, y, 1024))
    print(tile_sim.cutile.launches[-1].report.thread_instructions)
"""

from __future__ import annotations

from tile_sim.cutile.compiler import Compiler
from tile_sim.cutile.session import Compiled, Launch, Session, Settings, install

_SESSION: Session = install()

#: What kernels are compiled for and how they run; may be changed before a kernel is compiled.
settings: Settings = _SESSION.settings
#: Every launch so far, in order.
launches: list[Launch] = _SESSION.launches
#: What stands for cuTile's compiler; its `watch` is called with each program.
compiler: Compiler = _SESSION.compiler

__all__ = ["Compiled", "Compiler", "Launch", "Settings", "compiler", "launches", "settings"]
