"""Modules of one text are decoded once, and are modules of their own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from tile_sim import Module, SimError

COUNTS = "atom.global.add.u32 %r1, [count], 1; st.global.u32 [out], %r1;"


def test_each_module_has_its_variables(kernel: Callable[..., Module]) -> None:
    first, second = (kernel(COUNTS, "u64 out", outside=".global .u32 count = 7;") for _ in range(2))
    assert first.program("k").blocks is second.program("k").blocks
    out = np.zeros(1, np.uint32)
    for module, seen in ((first, 7), (first, 8), (second, 7)):
        module.launch("k", (1, 1, 1), (1, 1, 1), [out])
        assert out[0] == seen


def test_each_module_finds_out_what_counts(kernel: Callable[..., Module]) -> None:
    """What a launch that leaves data out has learnt is not known to others."""
    body = "mov.u32 %r1, %tid.x; st.global.u32 [out], %r1; ld.global.u32 %r2, [out];"
    body += "setp.eq.u32 %p1, %r2, 9; @%p1 bra END; add.u32 %r1, %r1, 1; END:"
    first, second = (kernel(body, "u64 out").program("k") for _ in range(2))
    first.made.add(1)
    first.left(frozenset({"values", "memory"}))
    assert second.made == set()
    assert kernel(body, "u64 out").program("k").made == set()


@pytest.mark.parametrize("text", [b".version 8.0", [".version 8.0"], None])
def test_what_is_no_text(text: object) -> None:
    with pytest.raises(SimError, match="PTX must be text"):
        Module(text)  # pyright: ignore[reportArgumentType]
