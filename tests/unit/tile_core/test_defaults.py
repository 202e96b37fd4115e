"""The user's defaults: which values they replace, what they are part of, and broken files."""

from __future__ import annotations

from pathlib import Path

import pytest

from tile_core import defaults
from tile_core.api import plan_for
from tile_core.diagnostics import ConfigurationError

HELD = {"tma-descriptors": {"host": "off"}}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "tilec" / "defaults.toml"
    monkeypatch.delenv("TILEC_DEFAULTS", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return path


def test_what_is_kept_is_read_again(file: Path) -> None:
    assert (defaults.instead(), defaults.digest()) == ({}, "")
    assert defaults.keep(HELD, {"name": 'a "GPU"\\\n'}) == file
    assert defaults.instead() == HELD
    assert len(defaults.digest()) == 8
    defaults.keep({}, {})
    assert not file.exists()
    assert not defaults.forget()


def test_they_are_part_of_the_version(file: Path) -> None:
    from tile_dropin.version import version_text

    before = version_text()
    defaults.keep(HELD, {})
    assert version_text().splitlines()[:-1] == before.splitlines()[:-1]
    assert version_text() == before[:-1] + f".{defaults.digest()}\n"


def test_switched_off_nothing_is_read_or_written(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    defaults.keep(HELD, {})
    monkeypatch.setenv("TILEC_DEFAULTS", "off")
    assert defaults.instead() == {}
    assert defaults.keep({}, {}) is None
    assert file.exists()


@pytest.mark.parametrize("text", ["instead = 3", "[instead.x]\na = 1", "no toml", "[instead]\na=1"])
def test_a_broken_file_is_an_error_that_says_what_to_do(file: Path, text: str) -> None:
    file.parent.mkdir()
    file.write_text(text)
    with pytest.raises(ConfigurationError) as caught:
        plan_for("sm_90")
    assert str(file) in caught.value.message
    assert "--forget" in str(caught.value.hint)


def test_a_value_that_the_option_has_not_is_refused(file: Path) -> None:
    defaults.keep({"tma-descriptors": {"host": "moon"}}, {})
    with pytest.raises(ConfigurationError, match="tma-descriptors"):
        plan_for("sm_90")
