"""Making a kit: cases with cubins, inputs and what the simulator says of them."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from tile_sim import Module, TensorMap

from tile_core.diagnostics import CompileError
from tile_time.kit.runner import inputs

Dim = tuple[int, int, int]
MANIFEST_VERSION = 1
#: What the whole folder may have.
MOST_BYTES = 40 << 20
#: Parts, most important first, and the seconds that each may take; 480 together.
PARTS = {
    "device": 15.0, "launch": 25.0, "maps": 40.0, "results": 110.0, "times": 110.0,
    "frameworks": 50.0, "mechanisms": 80.0, "open": 50.0,
}  # fmt: skip
MOST_SECONDS = 480.0
_KINDS = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64",
    "float8_e4m3fn": "e4m3", "float8_e5m2": "e5m2", "int32": "i32", "int16": "i16", "int8": "i8",
    "uint64": "u64", "uint32": "u32", "uint16": "u16", "uint8": "u8", "bool": "u8",
}  # fmt: skip


def kind_of(dtype: np.dtype[Any]) -> str:
    """The kit's name of a NumPy type; unknown ones are compared byte by byte."""
    return _KINDS.get(dtype.name, "u8")


@dataclass(frozen=True)
class Seeded:
    """An array that the kit makes by itself: `how` as in `runner.inputs`."""

    kind: str
    count: int
    how: str
    seed: int = 1

    @property
    def spec(self) -> dict[str, Any]:
        return {"kind": self.kind, "count": self.count, "how": self.how, "seed": self.seed}

    def make(self) -> np.ndarray:
        return inputs.make_array(self.kind, self.count, self.how, self.seed)


@dataclass(frozen=True)
class Near:
    """How far a result may be from the simulator's, and why; without it all bits count."""

    relative: float
    absolute: float
    why: str


@dataclass(frozen=True)
class Code:
    """A kernel in a cubin. `block` is (1, 1, 1) for kernels in Tile IR."""

    cubin: bytes
    entry: str
    block: Dim = (1, 1, 1)
    shared: int = 0
    cluster: Dim | None = None


@dataclass
class Kit:
    """A kit for one target, in `folder`/target."""

    folder: Path
    target: str
    made_by: Mapping[str, str]
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    parts: dict[str, list[dict[str, Any]]] = field(
        default_factory=lambda: {name: [] for name in PARTS}
    )

    @property
    def own(self) -> Path:
        return self.folder / self.target

    def image(self, cubin: bytes) -> str:
        """Where a cubin lies in the kit, by its contents."""
        name = f"cubins/{hashlib.sha256(cubin).hexdigest()[:16]}.cubin"
        path = self.own / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(cubin)
        return name

    def keep(self, array: np.ndarray) -> str:
        """The name of an array in the kit's file, by its contents."""
        flat = np.ascontiguousarray(array).reshape(-1)
        bits = flat.view(inputs.BITS[kind_of(flat.dtype)])
        name = hashlib.sha256(bits.tobytes() + bits.dtype.str.encode()).hexdigest()[:16]
        self.arrays[name] = bits
        return name

    def add(self, part: str, case: Mapping[str, Any]) -> None:
        self.parts[part].append(dict(case))

    def add_launch(
        self, part: str, name: str, code: Code, grid: Dim, arguments: Sequence[Any],
        after: Mapping[int, np.ndarray] | None = None, near: Near | None = None,
        seconds: float = 10.0, **more: Any,
    ) -> None:  # fmt: skip
        """A launch on `arguments` (arrays, `Seeded`, TensorMaps, NumPy scalars, bytes), in order.

        `after` has what arrays hold afterwards, by the number of the argument.
        """
        arrays: list[dict[str, Any]] = []
        number: dict[int, int] = {}  # argument (its id for arrays) to array
        parameters = [self._parameter(one, arrays, number) for one in arguments]
        expected = [
            self._expected(number[id(arguments[i])], arrays, wanted, near)
            for i, wanted in sorted((after or {}).items())
        ]
        self.add(part, {
            "name": name, "kind": "run", "image": self.image(code.cubin), "entry": code.entry,
            "grid": list(grid), "block": list(code.block), "shared": code.shared,
            "cluster": None if code.cluster is None else list(code.cluster), "arrays": arrays,
            "parameters": parameters, "expected": expected, "seconds": seconds,
            **({"rounding": near.why} if near else {}), **more,
        })  # fmt: skip

    def _parameter(
        self, value: Any, arrays: list[dict[str, Any]], number: dict[int, int]
    ) -> dict[str, Any]:
        if isinstance(value, TensorMap):
            index = self._array(value.array, arrays, number)
            return {"map": {"array": index, "words": value.encode(1 << 20).hex()}}
        if isinstance(value, np.ndarray | Seeded):
            return {"array": self._array(value, arrays, number)}
        data = value if isinstance(value, bytes) else value.tobytes()
        return {"bytes": data.hex()}

    def _array(self, value: Any, arrays: list[dict[str, Any]], number: dict[int, int]) -> int:
        if id(value) not in number:
            number[id(value)] = len(arrays)
            arrays.append(value.spec if isinstance(value, Seeded) else {"file": self.keep(value)})
        return number[id(value)]

    def _expected(
        self, index: int, arrays: list[dict[str, Any]], wanted: np.ndarray, near: Near | None
    ) -> dict[str, Any]:
        rule: dict[str, Any] = {"array": index, "kind": kind_of(wanted.dtype)}
        if near is not None and rule["kind"][0] in "fbe":
            rule |= {"relative": near.relative, "absolute": near.absolute}
        start = inputs.array_of(arrays[index], self.arrays).view(np.uint8)
        change = start ^ np.ascontiguousarray(wanted).reshape(-1).view(np.uint8)
        # What a kernel leaves alone is zeros in the difference, and takes no room.
        return {**rule, "file": self.keep(change), "change": True}

    def write(self) -> None:
        """The manifest and the arrays."""
        self.own.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(self.own / "arrays.npz", **self.arrays)  # type: ignore[arg-type]
        parts = [
            {"name": name, "seconds": PARTS[name], "cases": cases}
            for name, cases in self.parts.items() if cases
        ]  # fmt: skip
        about = {"version": MANIFEST_VERSION, "kit": dict(self.made_by), "target": self.target,
                 "parts": parts}  # fmt: skip
        (self.own / "manifest.json").write_text(json.dumps(about, indent=1) + "\n")


def simulated(
    code: Code, grid: Dim, arguments: Sequence[Any], **options: Any
) -> tuple[list[Any], dict[int, np.ndarray]]:
    """Run a cubin in the simulator: its arguments before, and the arrays that changed after.

    Raises SimError for what the kernel does wrong.
    """
    from tile_sim.peer import Cubin

    module = Cubin(code.cubin).load()
    return launched(module, code, grid, arguments, **options)


def launched(
    module: Module, code: Code, grid: Dim, arguments: Sequence[Any], **options: Any
) -> tuple[list[Any], dict[int, np.ndarray]]:
    before = [one.make() if isinstance(one, Seeded) else one for one in arguments]
    work = [one.copy() if isinstance(one, np.ndarray) else one for one in before]
    block = None if code.block == (1, 1, 1) else code.block
    module.launch(code.entry, grid, block, work, shared_bytes=code.shared, cluster=code.cluster,
                  **options)  # fmt: skip
    changed = {
        i: now for i, now in enumerate(work)
        if isinstance(now, np.ndarray) and now.tobytes() != before[i].tobytes()
    }  # fmt: skip
    return list(arguments), changed


def copy_runner(folder: Path) -> None:
    """The program that runs the kit, and what it is made of."""
    source = Path(__file__).parent / "runner"
    target = folder / "runner"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "run.py").write_text(_RUN)


def check_size(folder: Path) -> int:
    """Bytes of a finished kit. Raises CompileError where they are too many."""
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    if size > MOST_BYTES:
        raise CompileError(
            f"the kit has {size / 2**20:.1f} MiB, more than {MOST_BYTES >> 20}",
            hint="build it for fewer targets: --target sm_90",
        )
    return size


_RUN = '''"""Run the GPU kit: `python run.py`, results in results/ (`--help` says more).

Needs NumPy and cuda-bindings: pip install numpy cuda-bindings
"""

import sys

from runner.main import main

if __name__ == "__main__":
    sys.exit(main())
'''
