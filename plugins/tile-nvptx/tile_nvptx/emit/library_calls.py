"""Which operations need libdevice: comments in LLVM IR text, for whoever finds that it is missing.

By the time the library is looked for, there is text only, and no source locations.
"""

from __future__ import annotations

import json
import re

from tile_core.diagnostics import ConfigurationError, SourceLocation

#: What functions of libdevice start with.
PREFIX = "__nv_"
# JSON, so that no file name can end the comment.
_COMMENT = re.compile(r"^; needs libdevice: (\[.*\])$", re.MULTILINE)


def in_text(text: str) -> bool:
    """Whether LLVM IR `text` needs libdevice."""
    return f"@{PREFIX}" in text


def comment(name: str, place: SourceLocation) -> str:
    """A line that says where function `name` of libdevice is called."""
    return f"; needs libdevice: {json.dumps([name, place.file, place.line, place.column])}\n"


def located(error: ConfigurationError, text: str) -> ConfigurationError:
    """`error` about libdevice, at the first operation of LLVM IR `text` that needs it."""
    found = _COMMENT.search(text)
    if found is not None:
        name, file, line, column = json.loads(found[1])
        error.message = f"'llvm.call' op calls {name} of libdevice: {error.message}"
        error.where = SourceLocation(file, line, column)
    return error
