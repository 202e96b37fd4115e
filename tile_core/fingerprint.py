"""A digest of everything installed that decides what a program compiles to.

Caches of cubins key on what `--version` prints, so a changed pass, pipeline or plugin has to
change the text, edits in a checkout included: the digest covers the files themselves.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

from tile_core.registry import Registry

#: File name endings that take part.
_SUFFIXES = (".py", ".toml", ".so", ".ll", ".bc")


def fingerprint(registry: Registry) -> str:
    """Sixteen hex digits over the plugins, their versions and their files."""
    digest = hashlib.sha256()
    packages = {"tile_core", "tile_pipelines"}
    for plugin in registry.plugins:
        digest.update(f"{plugin.name} {plugin}\n".encode())
        packages.add(plugin.package)
    for package in sorted(packages):
        for name, path in _files(package):
            digest.update(f"{package}/{name}\n".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def _files(package: str) -> Iterator[tuple[str, Path]]:
    spec = find_spec(package)
    for root in sorted(spec.submodule_search_locations or ()) if spec else ():
        base = Path(root)
        for path in sorted(base.rglob("*")):
            if path.suffix in _SUFFIXES and path.is_file():
                yield path.relative_to(base).as_posix(), path
