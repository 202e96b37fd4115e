"""What `tilec doctor` says of tools that only times and listings need."""

from __future__ import annotations

import pytest
from tile_nvptx.emit import toolchain
from tile_time.tools import check


def test_a_missing_disassembler_is_named_and_keeps_nobody_from_compiling(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(toolchain, "_roots", lambda: iter(()))
    (finding,) = check()
    assert (finding.ok, finding.needed) == (False, False)
    assert "pip install" in finding.hint
    assert "--nvdisasm" not in finding.hint  # no command has such an option
