"""The model's times of a kit's launches: of the same cubins, by the PTX that they hold."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from tile_sim.errors import SimError

from tile_core.diagnostics import TileError
from tile_core.machines import Machine
from tile_time.kit.runner.inputs import BITS


def modelled_us(kit: Path, name: str, machine: Machine) -> tuple[float | None, str]:
    """Microseconds of the case of that name, or None and why there are none.

    Arrays are as large as the kit's, and their values zeros: addresses make the time.
    """
    from tile_sim.peer import Cubin

    from tile_time.model import load_kernel, time_kernel

    case = _cases(kit).get(name)
    if case is None:
        return None, "not in this kit"
    files = np.load(kit / "arrays.npz")
    arrays = [_array(spec, files) for spec in case["arrays"]]
    arguments = [
        arrays[p["array"]] if "array" in p else _value(bytes.fromhex(p["bytes"]))
        for p in case["parameters"]
    ]  # fmt: skip
    try:
        cubin = Cubin((kit / case["image"]).read_bytes())
        kernel = load_kernel(cubin.ptx, machine, case["entry"], cubin.load().hidden)
        x, y, z = case["grid"]
        return time_kernel(kernel, (x, y, z), None, arguments).us, ""
    except (TileError, SimError) as error:
        return None, str(error).splitlines()[0]


def _array(spec: dict[str, Any], files: Any) -> np.ndarray:
    return files[spec["file"]] if "file" in spec else np.zeros(spec["count"], BITS[spec["kind"]])


def _value(data: bytes) -> Any:
    """Parameters of up to 8 bytes as unsigned integers of their size: bits are bits."""
    sizes = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
    return np.frombuffer(data, sizes[len(data)])[0] if len(data) in sizes else data


@cache
def _cases(kit: Path) -> dict[str, dict[str, Any]]:
    about = json.loads((kit / "manifest.json").read_text())
    return {case["name"]: case for part in about["parts"] for case in part["cases"]}
