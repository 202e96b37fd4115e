"""`tilec plugins new`: a small plugin package that works, to start from.

`templates/KIND/` holds the files of a package, in which `$name` is its name, `$package` that of its
module and `$spec` the plugin interface; PACKAGE in a path is the module, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template

from tile_core.diagnostics import ConfigurationError
from tile_core.hookspecs import SPEC_VERSION

#: What a package can bring.
KINDS = ("pass", "scheduler", "layout-strategy", "dialect", "target")
_ENDING = ".tmpl"


def create_plugin(name: str, directory: Path, kind: str = "pass") -> Path:
    """Create package `name` in a new folder of `directory`; the folder.

    Args:
        kind: what the package brings, one of `KINDS`.

    Raises:
        ConfigurationError: the name is no package name, or the folder is there already.
    """
    if not re.fullmatch(r"[a-z][a-z0-9]*(-[a-z0-9]+)*", name):
        raise ConfigurationError(
            f"'{name}' is not a plugin name",
            hint="use lower case letters, digits and single dashes, e.g. my-tile-passes",
        )
    root = directory / name
    package = name.replace("-", "_")
    values = {"name": name, "package": package, "spec": str(SPEC_VERSION)}
    try:
        root.mkdir(parents=True)
        for path, text in files_of(kind):
            file = root / path.replace("PACKAGE", package)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(Template(text).substitute(values), encoding="utf-8")
    except FileExistsError as error:
        raise ConfigurationError(f"'{root}' is already there") from error
    except OSError as error:
        raise ConfigurationError(f"cannot write '{root}': {error.strerror}") from error
    return root


def files_of(kind: str) -> Iterator[tuple[str, str]]:
    """(path, template) of every file of a package that brings `kind`."""
    yield from _files(resources.files("tile_core.scaffold").joinpath("templates", kind), "")


def _files(folder: Traversable, above: str) -> Iterator[tuple[str, str]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _files(entry, f"{above}{entry.name}/")
        elif entry.name.endswith(_ENDING):
            text = entry.read_text(encoding="utf-8")
            yield above + entry.name.removesuffix(_ENDING), text
