"""A plugin at a word of which reading a text ends the process, as a fault of MLIR would."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from tile_core.hookspecs import SPEC_VERSION, Lazy, hookimpl
from tile_core.pipeline.instrument import Instrumentation

TILE_SPEC_VERSION = SPEC_VERSION

WORD = "deadly"


@hookimpl
def tile_text_checks() -> Iterable[Lazy]:
    yield Lazy("deadly", "support.deadly:check")


def check(module: Any) -> None:
    """Stands for a fault of MLIR's parser."""
    if WORD in str(module):
        print("it was deadly", flush=True)
        os.abort()


class Nothing(Instrumentation):
    """Lets nothing happen."""

    def permits(self, action: str, tag: str, op: Any, run: Any) -> bool:
        return False
