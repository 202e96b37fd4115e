"""What `tilec --version` prints."""

from __future__ import annotations

from tile_core.fingerprint import fingerprint
from tile_core.plugins import core_version
from tile_core.registry import Registry


def version_text(disabled: tuple[str, ...] = ()) -> str:
    """Versions of core and plugins, and the fingerprint of all that decides the output."""
    registry = Registry.discover(disabled, strict=False)
    plugins = ", ".join(str(p) for p in registry.plugins[1:]) or "none"
    lines = [f"tilec {core_version()}", f"plugins: {plugins}"]
    lines += [f"broken: {b.distribution} {b.version}" for b in registry.broken]
    return "\n".join([*lines, f"fingerprint: {fingerprint(registry)}"])
