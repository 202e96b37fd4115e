"""Runs one sample of the cuTile repository on the simulated device of one architecture.

    TILE_SIM_ARCH=sm_90 python -m tile_sim.suite.sample_process FOLDER MatMul

Prints a JSON line for each result, or for what went wrong. `--unchanged` runs the program itself
with its own sizes and check instead of the small cases here. `--bytecode` keeps every kernel that
is launched.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import os
import runpy
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tile_sim import cutile
from tile_sim.cutile import torch_cuda
from tile_sim.suite.sample_cases import SAMPLES, stand_in_for_cupy

_MOST_LINES = 4


def main() -> int:
    given = _parser().parse_args()
    cutile.settings.cache = os.environ.get("TILE_SIM_CACHE")
    cutile.settings.strict = not given.unchecked
    torch_cuda.install(cutile.settings.capability)
    sys.modules.setdefault("cupy", stand_in_for_cupy())
    sys.path.insert(0, str(given.folder))
    run = _unchanged if given.unchanged else _small
    output, sys.stdout = sys.stdout, sys.stderr  # what the sample prints is for people
    try:
        for line in run(given.folder, given.sample):
            print(json.dumps(line), file=output, flush=True)
            if given.bytecode is not None:
                _keep_bytecode(given.sample, given.bytecode)
            cutile.launches.clear()
    except Exception as error:  # becomes the sample's result, whatever it is
        print(json.dumps({"name": "", "error": _in_a_line(error)}), file=output, flush=True)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("sample", choices=list(SAMPLES))
    parser.add_argument("--unchanged", action="store_true")
    parser.add_argument("--unchecked", action="store_true", help="races are not looked for")
    parser.add_argument("--bytecode", type=Path)
    return parser


def _in_a_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {'; '.join(lines[:_MOST_LINES])}"


def _keep_bytecode(sample: str, folder: Path) -> None:
    for bytecode in {launch.kernel.bytecode for launch in cutile.launches}:
        name = hashlib.sha256(bytecode).hexdigest()[:12]
        (folder / f"{sample}.{name}.tileirbc").write_bytes(bytecode)


def _small(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    """The cases of a sample; each line says how far the results are from the reference."""
    import numpy as np
    import torch  # pyright: ignore[reportMissingImports]

    sample = SAMPLES[name]
    if cutile.settings.capability < sample.least:
        yield {"name": "", "skipped": "for {}.{} and later".format(*sample.least)}
        return
    torch.manual_seed(0)
    np.random.seed(0)
    cases, start = sample.cases(_load(folder / sample.file)), time.perf_counter()
    for result in cases:
        yield {
            "name": result.name, "elements": result.wanted.size, "error": "",
            "largest": result.error(), "share": result.share(), "rtol": result.rtol,
            "atol": result.atol, "launches": len(cutile.launches),
            "seconds": round(time.perf_counter() - start, 2),
        }  # fmt: skip
        start = time.perf_counter()


def _load(file: Path) -> Any:
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return module


def _unchanged(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    """The program as it is."""
    file, start = folder / SAMPLES[name].file, time.perf_counter()
    sys.argv = [str(file), "--correctness-check"]
    runpy.run_path(str(file), run_name="__main__")
    yield {"name": "its own check", "error": "", "seconds": round(time.perf_counter() - start, 2)}


if __name__ == "__main__":
    sys.exit(main())
