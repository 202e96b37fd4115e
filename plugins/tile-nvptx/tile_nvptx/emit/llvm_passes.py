"""Runs a manager of LLVM passes and frees it. Worker process only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import llvmlite.binding as llvm
from llvmlite.binding.ffi import ObjectRef
from llvmlite.binding.newpassmanagers import NewPassManager


def run(manager: llvm.ModulePassManager, module: llvm.ModuleRef, builder: llvm.PassBuilder) -> None:
    """Run `manager` over `module`, for the last time."""
    with _freed(manager):
        manager.run(module, builder)


@contextmanager
def _freed(manager: llvm.ModulePassManager) -> Iterator[None]:
    """Closes `manager` at the end.

    In llvmlite 0.50 managers inherit the `_dispose` that does nothing before the one that frees
    them: 30 KiB stayed behind for each default pipeline, half a gigabyte for a test suite.
    """
    try:
        yield
    finally:
        if type(manager)._dispose is ObjectRef._dispose:
            NewPassManager._dispose(manager)
            manager.detach()
        manager.close()
