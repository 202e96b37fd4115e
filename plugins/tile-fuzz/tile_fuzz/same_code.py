"""A suite under several pipelines: a test whose programs all become the same code runs once."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tile_core.diagnostics import TileError
from tile_core.registry import Registry
from tile_fuzz.oracle import Setting
from tile_fuzz.together import Together

Record = dict[str, Any]


class SameCode:
    """Which tests need not run again under another pipeline.

    `folder` has the programs as `tile_sim.suite.runner.Plan.bytecode` keeps them, `pipelines` are
    names or files. A program is compiled with all of them at once.
    """

    def __init__(self, folder: Path, pipelines: Sequence[str], registry: Registry) -> None:
        self._folder, self._pipelines, self._registry = folder, pipelines, registry
        self._codes: dict[tuple[str, str], dict[str, str | None]] = {}

    def known(self, results: Mapping[str, Sequence[Record]], pipeline: str) -> dict[str, Record]:
        """Records under `pipeline` of tests that need not run, by their ids.

        `results` has the records under earlier pipelines. What a test compiled and ran is looked
        at: where each program has the code of one earlier pipeline, the test has its outcome, and
        says so in `as`. A test that failed runs again, as does one whose program does not compile:
        what it would have compiled or run besides is not known.
        """
        found: dict[str, Record] = {}
        for earlier, records in results.items():
            for record in records:
                if record["id"] not in found and self._same(record, earlier, pipeline):
                    more = {"as": record.get("as", earlier), "seconds": 0.0}
                    found[record["id"]] = {**record, **more}
        return found

    def _same(self, record: Record, first: str, second: str) -> bool:
        if record["outcome"] == "failed":
            return False
        codes = [self._code(*program) for program in _programs(record)]
        return all(of[first] is not None and of[first] == of[second] for of in codes)

    def _code(self, name: str, arch: str) -> dict[str, str | None]:
        """A digest of the program's code by pipeline; None where it does not compile."""
        if (name, arch) not in self._codes:
            settings = {p: Setting(arch, pipeline=p) for p in self._pipelines}
            source = (self._folder / f"{name}.tileirbc").read_bytes()
            together = Together(source, list(settings.values()), self._registry)
            self._codes[name, arch] = {p: _digest(together, s) for p, s in settings.items()}
        return self._codes[name, arch]


def _programs(record: Record) -> Iterable[tuple[str, str]]:
    """Hash and target of what a test compiled, and of what it ran that another had compiled."""
    noted = [*record["kernels"], *record.get("ran", ())]
    return dict.fromkeys((program[0], program[1]) for program in noted)


def _digest(together: Together, setting: Setting) -> str | None:
    try:
        return hashlib.sha256(together.ptx(setting).encode()).hexdigest()
    except TileError:
        return None
