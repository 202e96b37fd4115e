"""Where NVIDIA's tools are, for the benchmarks that compare with them."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from shutil import which


def find_tool(name: str) -> Path | None:
    """A tool such as "tileiras": of the `nvidia` wheels, else on the PATH."""
    spec = find_spec("nvidia")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        for found in sorted(Path(place).glob(f"cu*/bin/{name}")):
            return found
    on_path = which(name)
    return Path(on_path) if on_path else None
