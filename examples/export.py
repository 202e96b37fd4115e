"""Write `examples/bytecode/*.tileirbc` from the cuTile programs beside this file.

Needs cuda-tile (`make examples`), but no GPU. Below version 13.3 bytecode names a GPU in its
optimization hints; these hints are empty here, so the files compile for every GPU.
"""

import io
import os
import sys
from pathlib import Path
from types import ModuleType

from cuda.tile.compilation import export_kernel

HERE = Path(__file__).resolve().parent
PROGRAMS = (
    "vector_add", "saxpy_loop", "softmax", "layer_norm", "rms_norm", "transpose", "matmul",
    "batched_matmul", "attention", "layer_norm_backward", "fft",
)  # fmt: skip
VERSION = "13.1"
GPU = "sm_80"


def load(name):
    """The program `name`, under a path relative to the repository: paths end up in bytecode."""
    path = f"{HERE.name}/{name}.py"
    module = ModuleType(name)
    module.__file__ = path
    exec(compile(Path(path).read_text(), path, "exec"), module.__dict__)
    return module


def bytecode_of(kernel, variant):
    """TileIR bytecode of one kernel with one signature."""
    stream = io.BytesIO()
    export_kernel(
        kernel,
        [variant],
        stream,
        gpu_code=GPU,
        output_format="tileir_bytecode",
        bytecode_version=VERSION,
    )
    return stream.getvalue()


def main():
    """Write one file per variant."""
    os.chdir(HERE.parent)
    sys.path.insert(0, str(HERE))
    for name in PROGRAMS:
        program = load(name)
        for variant in program.VARIANTS:
            path = HERE / "bytecode" / f"{variant.symbol}.tileirbc"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(bytecode_of(program.KERNEL, variant))
            print(f"{path.relative_to(HERE.parent)}: {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
