"""What bindings of MLIR that were asked for by name (`make second-provider`) cannot express."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tile_core.diagnostics import ConfigurationError
from tile_core.mlir_providers import FORCE

#: What `mlir_substitutes` says of types that cannot be made.
_NO_TYPE = "the installed bindings of MLIR have no type"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """A test of a type that they lack is skipped; of the default bindings, nothing is."""
    try:
        return (yield)
    except ConfigurationError as error:
        if FORCE in os.environ and error.message.startswith(_NO_TYPE):
            pytest.skip(error.message)
        raise
