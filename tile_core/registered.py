"""What installed plugins register, remembered between processes.

Asking them takes their modules, pluggy, and through it much of what Python knows about its own
functions: a twentieth of a small compilation. Hooks return names and places, which are the same as
long as the files are from which the plugins' modules come.
"""

from __future__ import annotations

import marshal
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tile_core import references, snapshot
from tile_core.plugins import Origin, Plugin, Point
from tile_core.references import Lazy

#: A kind, what is registered, and by whom.
Row = tuple[str, Lazy, Plugin]

#: What hooks return, by its name here.
_CLASSES: dict[str, type[Lazy]] = {
    each.__name__: each
    for each in (Lazy, references.LazyEmitter, references.LazyFrontend, references.LazyPatterns)
}
#: Of the framework: what hooks are, and what it answers itself.
_OWN = ("tile_core.hookspecs", "tile_core.references", "tile_core.builtin")


def packed(plugins: Iterable[Plugin], rows: Iterable[Row]) -> str | None:
    """A text of plugins and what they register; None where a part is of a plugin's own making."""
    listed = list(plugins)
    kept: list[Any] = []
    for kind, lazy, plugin in rows:
        plain = _plain(lazy)
        if plain is None:
            return None
        kept.append((kind, plain, listed.index(plugin)))
    points: list[tuple[str, str, tuple[str, ...]]] = []
    for plugin in listed:
        if not isinstance(plugin.carrier, Point):
            return None
        points.append((plugin.name, plugin.carrier.value, tuple(plugin.origin)))
    try:
        return marshal.dumps((points, kept)).hex()
    except ValueError:  # a field holds what no text can
        return None


def unpacked(text: str) -> tuple[list[Plugin], list[Row]]:
    """What `packed` made a text of."""
    points, kept = marshal.loads(bytes.fromhex(text))
    plugins = [
        Plugin(name, Point(name, value, Origin(*origin)), Origin(*origin))
        for name, value, origin in points
    ]
    return plugins, [(kind, _lazy(plain), plugins[at]) for kind, plain, at in kept]


def behind(plugins: Iterable[Plugin]) -> list[Path]:
    """The files that decide what plugins register: of their modules, as far as they are loaded, and
    of what is installed."""
    packages = tuple(plugin.package for plugin in plugins if plugin.package != "tile_core")
    files = [Path(stamp[0]) for stamp in snapshot.behind("plugins")]
    for name, module in sorted(sys.modules.items()):
        if name in _OWN or name.partition(".")[0] in packages:
            file = getattr(module, "__file__", None)
            files += [Path(file)] if file else []
    return files


def _plain(lazy: Lazy) -> tuple[str, tuple[Any, ...]] | None:
    """A reference as `marshal` takes it: the name of its class, and its fields."""
    name = type(lazy).__name__
    if _CLASSES.get(name) is not type(lazy):
        return None
    values: list[Any] = []
    for value in vars(lazy).values():
        value = (_plain(value),) if isinstance(value, Lazy) else value
        if value == (None,):
            return None
        values.append(value)
    return name, tuple(values)


def _lazy(plain: tuple[str, tuple[Any, ...]]) -> Lazy:
    name, values = plain
    given: list[Any] = [
        _lazy(value[0]) if type(value) is tuple and value and type(value[0]) is tuple else value
        for value in values
    ]
    return _CLASSES[name](*given)
