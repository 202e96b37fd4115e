"""What `tilec doctor --gpu` asks of the GPU that is there.

One program, a product of small integers, whose result is known to the last bit, compiled in three
ways: a kernel with the mark of Tile IR, which the driver launches with a block of (1, 1, 1) and its
real size from the cubin; the same with tensor maps that host code in the cubin fills in at the
launch (hidden parameters); the same with tensor maps that the kernel builds. Each way runs in a
process of its own, so that a kernel that hangs or breaks the context costs its own answer alone.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tile_core.api import compile as compile_program
from tile_core.diagnostics import ConfigurationError, TileError
from tile_core.doctor import Finding, GpuAnswer

if TYPE_CHECKING:
    from tile_core.registry import Registry
    from tile_time.kit.runner.gpu import Gpu

#: Seconds for one way, the compiler's and the driver's work included.
_LIMIT = 120.0
_SOURCE = Path(__file__).with_name("device_check.tileir")
_KERNEL = "product"
_MAPS = "tma-descriptors"
#: What a copy by a tensor map is in PTX.
_COPY = "cp.async.bulk.tensor"
#: Rows and columns of the matrices.
_SIZE = 128
_TILE = 64
_NO_GPU = "a machine with an NVIDIA GPU and its driver; without one `tilec run` runs programs"


@dataclass(frozen=True)
class Way:
    """One way to compile the program."""

    name: str
    opt_level: int
    options: Mapping[str, str]
    copies: bool  # whether tensor maps are what it is about
    hint: str


WAYS = (
    Way("kernel with a mark", 0, {_MAPS: "off"}, False,
        "a driver of release 580 or later takes kernels of Tile IR"),
    Way("maps of the host", 3, {_MAPS: "host"}, True, f"--set {_MAPS}=off does without"),
    Way("maps of the kernel", 3, {_MAPS: "device"}, True, f"--set {_MAPS}=off does without"),
)  # fmt: skip


def check(driver: str, registry: Registry) -> GpuAnswer:
    """Ask the first GPU; `driver` is a module with the functions of `cuda.bindings.driver`."""
    facts = _asked(driver, "facts")
    if "problem" in facts:
        return GpuAnswer((Finding("gpu", False, facts["problem"], facts.get("hint", _NO_GPU)),))
    target = "sm_{}{}".format(*facts["capability"])
    text = f"{facts['name']}, {target}, driver for CUDA {_release(facts['driver'])}"
    if target not in registry.names("target"):
        return GpuAnswer((Finding("gpu", False, f"{text}: no target of this compiler"),))
    found = [_asked(driver, way.name, target) for way in WAYS]
    findings = [Finding("gpu", True, text), *map(_finding, WAYS, found)]
    about = {"name": facts["name"], "target": target, "driver": _release(facts["driver"])}
    settled = bool(found[0]["ok"]) and not facts["simulated"]
    return GpuAnswer(tuple(findings), about, _instead(found), settled)


def _release(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def _finding(way: Way, answer: Mapping[str, Any]) -> Finding:
    """A wrong result is a failure; maps that cannot be had are none, as others can."""
    needed = not way.copies or bool(answer.get("wrong"))
    return Finding(way.name, answer["ok"], answer["detail"], way.hint, needed)


def _instead(found: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """What stands for maps of the host where they were tried and do not work."""
    _, host, device = found
    if host["ok"] or not host.get("tried"):
        return {}
    return {_MAPS: {"host": "device" if device["ok"] and device.get("tried") else "off"}}


def _asked(driver: str, *question: str) -> dict[str, Any]:
    """The answer of a process of its own; never an exception."""
    command = [sys.executable, "-m", "tile_time.device_checks", driver, *question]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT, check=False)
    except subprocess.TimeoutExpired:
        return _failed(f"did not finish within {_LIMIT:g} s")
    try:
        return dict(json.loads(done.stdout.splitlines()[-1]))
    except (ValueError, IndexError):
        last = (done.stderr.strip().splitlines() or ["no answer"])[-1]
        return _failed(f"ended with {done.returncode}: {last}")


def _failed(detail: str, **more: Any) -> dict[str, Any]:
    return {"ok": False, "detail": detail, "tried": True, "problem": detail, **more}


# --- in the process of its own -------------------------------------------------------------------


def answer(driver: str, name: str, target: str = "") -> dict[str, Any]:
    """The answer to one question, as JSON can hold it."""
    try:
        from tile_time.kit.runner.gpu import Gpu

        gpu = Gpu(driver)
    except ImportError as error:
        hint = "pip install cuda-bindings" if driver.startswith("cuda.") else ""
        return _failed(f"cannot import '{driver}': {error}", hint=hint)
    except Exception as error:  # the bindings raise what they like where there is no driver
        return _failed(f"{type(error).__name__}: {error}".splitlines()[0])
    if name == "facts":
        return gpu.facts()
    (way,) = (way for way in WAYS if way.name == name)
    try:
        cubin, copies = _compiled(way, target)
    except ConfigurationError as error:
        return {"ok": False, "tried": False, "detail": f"not by this compiler: {error.message}"}
    except TileError as error:
        return _failed(error.message, tried=False)
    if way.copies and not copies:
        return {"ok": True, "tried": False, "detail": f"{target} copies without tensor maps"}
    return _run(gpu, cubin)


def _compiled(way: Way, target: str) -> tuple[bytes, bool]:
    """The cubin, and whether tensor maps copy in it."""
    options = {**way.options, "lineinfo": True}  # the simulated driver runs the PTX that it keeps
    made = compile_program(
        _SOURCE.read_text(encoding="utf-8"), target, opt_level=way.opt_level, options=options,
        name=_SOURCE.name,
    )  # fmt: skip
    return made.cubin, _COPY in str(made.stages["ptx"])


def _run(gpu: Gpu, cubin: bytes) -> dict[str, Any]:
    """Launch, and compare with the product that NumPy makes; guards tell of writes beside it."""
    import numpy as np

    from tile_time.kit.runner.gpu import DriverError, OutOfBounds

    chance = np.random.default_rng(1)
    # No sum of 128 such products exceeds 2048: exact in f16, whatever the order.
    left, right = (chance.integers(-4, 5, (_SIZE, _SIZE)).astype(np.float16) for _ in range(2))
    expected = left.astype(np.int64) @ right.astype(np.int64)
    with tempfile.TemporaryDirectory() as folder:
        image = Path(folder, "check.cubin")
        image.write_bytes(cubin)
        try:
            arrays = [gpu.guarded(a) for a in (left, right, np.zeros_like(left))]
            grid = (_SIZE // _TILE, _SIZE // _TILE, 1)
            gpu.launch(gpu.kernel(image, _KERNEL), grid, (1, 1, 1), _parameters(arrays))
            gpu.wait()
            found = arrays[2].read()
        except (DriverError, OutOfBounds) as error:
            return _failed(str(error), wrong=isinstance(error, OutOfBounds))
    wrong = int((found.astype(np.int64) != expected).sum())
    if wrong:
        return _failed(f"{wrong} of {expected.size} results are wrong", wrong=True)
    return {"ok": True, "tried": True, "detail": "launched, all results right"}


def _parameters(arrays: list[Any]) -> list[bytes]:
    """Three matrices as Tile IR's clients pass them: pointer, shape, strides."""
    made: list[bytes] = []
    for array in arrays:
        made.append(array.address.to_bytes(8, "little"))
        made += [n.to_bytes(4, "little") for n in (_SIZE, _SIZE, _SIZE, 1)]
    return made


if __name__ == "__main__":
    print(json.dumps(answer(*sys.argv[1:])))
