"""A part of the kit, run in a process of its own: its cases in order, each result written at once.

    python -m runner.part MANIFEST PART FIRST OUTPUT DRIVER ORDINAL

A line of OUTPUT is a case that began or ended; who reads them sees which one hung or died.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from . import frameworks
from .checks import compare
from .clocks import Clocks
from .gpu import Gpu, OutOfBounds, parameter_bytes
from .inputs import array_of
from .launching import Prepared, mechanism_slopes, timed

Found = dict[str, Any]
#: Kinds of cases that use no device, or their own way to it.
ALONE = frozenset({"framework", "spin"})


class Skipped(Exception):
    """What cannot be run here, and why."""


class Part:
    """What the cases of a part share."""

    def __init__(self, folder: Path, driver: str, ordinal: int) -> None:
        self.folder = folder
        self._driver = driver, ordinal

    @cached_property
    def gpu(self) -> Gpu:
        return Gpu(*self._driver)

    @cached_property
    def files(self) -> Mapping[str, np.ndarray]:
        return np.load(self.folder / "arrays.npz")

    def prepared(self, case: Mapping[str, Any]) -> Prepared:
        arrays = [array_of(spec, self.files) for spec in case["arrays"]]
        return Prepared(self.gpu, self.folder / case["image"], case, arrays)

    # --- kinds of cases ---------------------------------------------------------------------

    def facts(self, case: Mapping[str, Any]) -> Found:
        """What the device is; the clock that it says it runs at."""
        with Clocks(self._driver[1]) as clocks:
            found = self.gpu.facts()
            time.sleep(0.0 if found["simulated"] else 0.3)
        return {"ok": True, "facts": found, **clocks.found}

    def run(self, case: Mapping[str, Any]) -> Found:
        """Launch and compare. What `expects` "told" may work or not: the result says which."""
        prepared = self.prepared(case)
        try:
            prepared.launch()
            self.gpu.wait()
            found: list[Found] = []
            for rule in case["expected"]:
                array = prepared.arrays[rule["array"]]
                one = compare(array.read(), self._wanted(array.like, rule), rule)
                found.append({"array": rule["array"], **one})
            for array in prepared.arrays:
                array.read()
            return {"ok": all(one["ok"] for one in found), "arrays": found}
        except OutOfBounds as error:
            return {"ok": False, "error": str(error)}

    def _wanted(self, start: np.ndarray, rule: Mapping[str, Any]) -> np.ndarray:
        """What is expected: the file's bytes are the difference to what was there before."""
        return start.reshape(-1).view(np.uint8) ^ self.files[rule["file"]].view(np.uint8)

    def maps(self, case: Mapping[str, Any]) -> Found:
        """Whether our words of a tensor map are the driver's."""
        addresses = [0x7F0000000000]
        theirs = parameter_bytes([{"map": case["map"]}], addresses, self.gpu)[0]
        ours = parameter_bytes([{"map": {**case["map"], "words": case["words"]}}], addresses,
                               self.gpu)[0]  # fmt: skip
        return {"ok": ours == theirs, "ours": ours.hex(), "driver": theirs.hex()}

    def time(self, case: Mapping[str, Any]) -> Found:
        """Microseconds of a launch by events, its inputs not in L2."""
        prepared = self.prepared(case)
        with Clocks(self._driver[1]) as clocks:
            found = timed(self.gpu, prepared.launch, case["seconds"] / 2)
        return {"ok": True, **found, **rates(case, found["us"]), **clocks.found}

    def mechanism(self, case: Mapping[str, Any]) -> Found:
        """Clk of a turn of a kernel's loop, and the quantity that follows."""
        slopes = mechanism_slopes(self.gpu, self.prepared(case), case)
        slope = sorted(slopes)[len(slopes) // 2] - case["offset"]
        if slope <= 0:
            return {"ok": False, "slopes": slopes, "error": "more turns did not take longer"}
        value = case["per"] / slope if case["rate"] else slope / case["per"]
        return {"ok": True, "value": value, "slopes": slopes}

    def framework(self, case: Mapping[str, Any]) -> Found:
        """A function of a framework, timed as ours are."""
        try:
            work = frameworks.FUNCTIONS[case["function"]](case["sizes"])
        except ImportError as error:
            raise Skipped(f"{error.name or error} is not installed") from None
        with Clocks(self._driver[1]) as clocks:
            found = frameworks.timed(work, case["seconds"] / 2)
        return {"ok": True, **found, **rates(case, found["us"]), **clocks.found}

    def spin(self, case: Mapping[str, Any]) -> Found:
        """For tests of the kit itself: a case that does not end, or ends its process."""
        if case["how"] == "exit":
            os._exit(3)
        while True:
            time.sleep(0.05)


def rates(case: Mapping[str, Any], us: float) -> Found:
    flops, size = case.get("flops", 0), case.get("bytes", 0)
    return {"tflops": flops / us / 1e6, "gbps": size / us / 1e3} if us > 0 else {}


def run_case(part: Part, case: Mapping[str, Any]) -> Found:
    """Whatever goes wrong with a case is its result."""
    kind: Callable[[Mapping[str, Any]], Found] = getattr(part, case["kind"])
    start = time.perf_counter()
    try:
        found = kind(case)
    except Skipped as reason:
        found = {"ok": None, "skipped": str(reason)}
    except Exception as error:
        found = {"ok": False, "error": f"{type(error).__name__}: {error}"}
    if case.get("expects") == "told" and "skipped" not in found:
        found = {**found, "accepted": bool(found["ok"]), "ok": True}  # both answers are news
    return {**found, "seconds": round(time.perf_counter() - start, 3)}


def main(arguments: list[str]) -> int:
    manifest, name, first, output, driver, ordinal = arguments
    about = json.loads(Path(manifest).read_text())
    cases = next(p for p in about["parts"] if p["name"] == name)["cases"]
    part = Part(Path(manifest).parent, driver, int(ordinal))
    with Path(output).open("a") as file:

        def write(line: Found) -> None:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())

        with suppress(Exception):  # each case that needs the device tells why there is none
            if any(case["kind"] not in ALONE for case in cases):
                part.gpu.wait()
        write({"ready": True})
        for index in range(int(first), len(cases)):
            write({"begins": index})
            found = run_case(part, cases[index])
            write({"ends": index, **found})
            if "CUDA_ERROR" in found.get("error", ""):
                return 1  # the context may be of no more use: who called starts another process
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
