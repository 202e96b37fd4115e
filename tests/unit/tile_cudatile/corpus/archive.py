"""The exported kernels: a tar file of bytecode with an index. Needs no cuTile.

The index has an entry per file, `<case>.<version>`, with the labels of the variants that the file
holds, one kernel each, and what the file prints as (the SHA-256 of the text of each release that
was asked, `judge.py`).
"""

from __future__ import annotations

import io
import json
import lzma
import tarfile
from functools import cache
from pathlib import Path
from typing import TypedDict

HERE = Path(__file__).parent
KERNELS = HERE / "kernels.tar.xz"
INDEX = HERE / "index.json.xz"
#: What the exporter reads, in this order; each registers its cases.
FAMILIES = ("elementwise", "casts", "shapes", "reductions", "products", "memory", "control")
VERSIONS = ("13.1", "13.2", "13.3", "13.4", "13.5")


class Entry(TypedDict):
    """What the index says about one file."""

    variants: list[str]
    text: dict[str, str]  # release -> SHA-256 of what it prints
    accepted: list[str]  # releases whose compiler reads and verifies the file


@cache
def files() -> dict[str, bytes]:
    """Name -> bytecode."""
    found: dict[str, bytes] = {}
    with tarfile.open(KERNELS) as archive:
        for member in archive:
            content = archive.extractfile(member)
            assert content is not None
            found[member.name] = content.read()
    return found


@cache
def index() -> dict[str, Entry]:
    """Name -> what is known."""
    return json.loads(lzma.decompress(INDEX.read_bytes()))


def case_of(name: str) -> str:
    """The case of a file."""
    return name.rsplit(".", 2)[0]


def write_files(contents: dict[str, bytes]) -> None:
    """Stores bytecode; the same bytes for the same content."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted(contents):
            member = tarfile.TarInfo(name)
            member.size = len(contents[name])
            archive.addfile(member, io.BytesIO(contents[name]))
    KERNELS.write_bytes(lzma.compress(out.getvalue(), preset=9 | lzma.PRESET_EXTREME))


def write_index(entries: dict[str, Entry]) -> None:
    """Stores the index."""
    text = json.dumps(entries, indent=0, sort_keys=True)
    INDEX.write_bytes(lzma.compress(text.encode(), preset=9))
