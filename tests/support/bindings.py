"""What tests ask of the installed bindings of MLIR (`make second-provider` brings others)."""

from __future__ import annotations

import pytest

from tile_core.mlir_providers import chosen, lacking

#: Bindings without some names compile everything, and tell MLIR's passes less of effects.
needs_effects = pytest.mark.skipif(
    bool(lacking(chosen()).substituted), reason="the bindings cannot tell MLIR of effects"
)
