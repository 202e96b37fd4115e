"""The build backend of `tilec`: setuptools, and in a checkout the places of the plugins.

`tilec` requires the plugins of this repository by name. They are in the folder beside this one and
need not be on any index, so what is built for `pip install .` says where: "tile-sim==0.1.0" becomes
"tile-sim @ file:///.../plugins/tile-sim". With the setting `requirements=names` (`make wheels`),
and in an editable install, the names stay.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (
    build_editable,
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

ROOT = Path(__file__).resolve().parents[2]
Settings = Mapping[str, Any] | None

_REQUIREMENT = re.compile(r"^Requires-Dist: ([\w-]+)==[\w.]+$", re.MULTILINE)


def prepare_metadata_for_build_wheel(folder: str, config_settings: Settings = None) -> str:
    """Write the metadata; the name of their folder."""
    name = build_meta.prepare_metadata_for_build_wheel(folder, config_settings)
    if (config_settings or {}).get("requirements") != "names":
        metadata = Path(folder, name, "METADATA")
        text = metadata.read_text(encoding="utf-8")
        metadata.write_text(_REQUIREMENT.sub(_located, text), encoding="utf-8")
    return name


def build_wheel(
    folder: str, config_settings: Settings = None, metadata_directory: str | None = None
) -> str:
    """Write the wheel, with the metadata of `prepare_metadata_for_build_wheel`."""
    if metadata_directory is not None:
        return build_meta.build_wheel(folder, config_settings, metadata_directory)
    with tempfile.TemporaryDirectory() as made:
        name = prepare_metadata_for_build_wheel(made, config_settings)
        return build_meta.build_wheel(folder, config_settings, str(Path(made, name)))


def _located(requirement: re.Match[str]) -> str:
    place = ROOT / "plugins" / requirement[1]
    if not place.is_dir():
        return requirement[0]
    return f"Requires-Dist: {requirement[1]} @ {place.as_uri()}"
