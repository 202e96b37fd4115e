"""Nothing that one run leaves behind may help or hurt the next: no server, cache, or defaults.

Which tests are slow besides those that say so: of kernels that run under several schedules of
asynchronous work, all but `late` (the most a wait can be missed by). `make test` has the others in
mutants, which run under each; `make fuzz` has all.

What bindings of MLIR that were asked for by name (`make second-provider`) cannot express is
skipped.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest

from tile_core.diagnostics import ConfigurationError
from tile_core.mlir_providers import FORCE

os.environ["TILEC_SERVER"] = "off"
os.environ["TILEC_CACHE"] = "off"
os.environ["TILEC_DEFAULTS"] = "off"
# Texts of tests end no process; those that may, or are about this, set it themselves.
os.environ["TILEC_REHEARSAL"] = "off"
#: Python's 700 would look for garbage a dozen times in each small compilation.
gc.set_threshold(20_000)

_OF_KERNELS = ("tests/unit/tile_nvptx/", "tests/unit/tile_tileas/")
_LATER = ("early", "random")
#: What `mlir_substitutes` says of types that cannot be made.
_NO_TYPE = "the installed bindings of MLIR have no type"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        call = getattr(item, "callspec", None)
        if call is None or not item.nodeid.startswith(_OF_KERNELS):
            continue
        if call.params.get("schedule") in _LATER:
            item.add_marker(pytest.mark.slow)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """A test of a type that they lack is skipped; of the default bindings, nothing is."""
    try:
        return (yield)
    except (ConfigurationError, AssertionError) as error:  # some tests collect what went wrong
        said = str(error).splitlines()
        found = next((line for line in said if _NO_TYPE in line), None)
        if FORCE in os.environ and found is not None:
            pytest.skip(found)
        raise


def pytest_collection_finish() -> None:
    """Collected tests are never garbage: walking them again and again took a tenth of all time."""
    gc.collect()
    gc.freeze()
