"""TOML, parsed once and not in every process, and the texts that packages bring.

Loading a parser takes as long as parsing all that a small compilation needs of pipelines and
machines. So a command keeps what texts say (`tile_core/generated_code.py`), by the text, so that
nothing can be out of date.
"""

from __future__ import annotations

import marshal
import os
from contextlib import suppress
from importlib import import_module
from typing import Any

#: What texts say, as `marshal` has it, for the next process; None where nobody keeps it.
_kept: dict[str, bytes] | None = None


class TOMLError(ValueError):
    """A text that is no TOML.

    Attributes:
        line, column: where, from 1.
        reason: why, without the place.
    """

    def __init__(self, message: str, line: int, column: int, reason: str) -> None:
        super().__init__(message)
        self.line, self.column, self.reason = line, column, reason


def keep(kept: dict[str, bytes]) -> None:
    """From now on look into `kept` first, and add to it what had to be parsed."""
    global _kept
    _kept = kept


def parsed(text: str) -> dict[str, Any]:
    """What a TOML text says; the caller's own.

    Raises:
        TOMLError: it is none.
    """
    if _kept is not None and text in _kept:
        return marshal.loads(_kept[text])
    import tomli

    try:
        tables = tomli.loads(text)
    except tomli.TOMLDecodeError as error:
        raise TOMLError(str(error), error.lineno, error.colno, error.msg) from error
    if _kept is not None:
        with suppress(ValueError):  # dates
            _kept[text] = marshal.dumps(tables)
    return tables


def package_text(package: str, name: str) -> str:
    """The text of a file in the folder of a package.

    Raises:
        OSError, ImportError, UnicodeDecodeError: there is none.
    """
    module = import_module(package)
    spec = module.__spec__
    if spec is not None and spec.origin and hasattr(spec.loader, "get_data"):
        path = os.path.join(os.path.dirname(spec.origin), *name.split("/"))
        return spec.loader.get_data(path).decode("utf-8")  # type: ignore[union-attr] # just asked
    from importlib import resources  # takes long to load; knows all else that can hold packages

    return resources.files(package).joinpath(name).read_text("utf-8")


def package_names(package: str) -> list[str]:
    """Names of the files and folders in the folder of a package.

    Raises:
        OSError, ImportError: there is none.
    """
    module = import_module(package)
    folder = os.path.dirname(module.__file__ or "")
    if os.path.isdir(folder):
        return os.listdir(folder)
    from importlib import resources

    return [file.name for file in resources.files(package).iterdir()]
