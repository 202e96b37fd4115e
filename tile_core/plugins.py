"""Finding plugins: entry points of group `tile.plugins`, checked before anything uses them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import groupby
from types import ModuleType
from typing import Any, NamedTuple

import importlib_metadata
import pluggy

from tile_core import builtin, hookspecs
from tile_core.diagnostics import ConfigurationError, nearest


class Origin(NamedTuple):
    """A distribution, as installers know it."""

    distribution: str
    version: str


@dataclass(frozen=True)
class Plugin:
    """A plugin and the distribution that brought it."""

    name: str  # of the entry point
    module: Any  # what carries the hook implementations
    find_origin: Callable[[], Origin]

    @cached_property
    def origin(self) -> Origin:
        """Where it comes from; read when asked for, because metadata are slow to read."""
        return self.find_origin()

    @property
    def distribution(self) -> str:
        """The name of the distribution."""
        return self.origin.distribution

    @property
    def version(self) -> str:
        """The version of the distribution."""
        return self.origin.version

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}"

    @property
    def package(self) -> str:
        """The importable package that holds the plugin."""
        return getattr(self.module, "__name__", self.name).partition(".")[0]


@dataclass(frozen=True)
class BrokenPlugin:
    """A plugin that was found but cannot be used, and why."""

    name: str
    distribution: str
    version: str
    error: ConfigurationError


def core_version() -> str:
    """The installed version of tilec."""
    try:
        return importlib_metadata.version("tilec")
    except importlib_metadata.PackageNotFoundError:
        return "0+unknown"


def core_plugin() -> Plugin:
    """What the framework itself brings, seen as a plugin."""
    return Plugin("core", builtin, lambda: Origin("tilec", core_version()))


def find_plugins(disabled: Iterable[str] = ()) -> tuple[list[Plugin], list[BrokenPlugin]]:
    """The installed plugins in order of name, and those that cannot be used.

    Args:
        disabled: names of entry points or distributions that are left out unseen.

    Raises:
        ConfigurationError: a disabled name that nothing has.
    """
    points = sorted(
        importlib_metadata.entry_points(group=hookspecs.ENTRY_POINT_GROUP), key=lambda p: p.name
    )
    unwanted = _known_names(points, disabled)
    working: list[Plugin] = []
    broken: list[BrokenPlugin] = []
    for _, group in groupby(points, key=lambda p: p.name):
        same = list(group)
        if unwanted:
            same = [p for p in same if not unwanted & {p.name, _origin(p).distribution}]
        if len(same) > 1:
            same.sort(key=_origin)
        for point in same:
            try:
                if point is not same[0]:
                    raise _clash(point, same[0])
                working.append(Plugin(point.name, _import(point), partial(_origin, point)))
            except ConfigurationError as error:
                broken.append(BrokenPlugin(point.name, *_origin(point), error))
    return working, broken


def plugin_manager(plugins: Iterable[Plugin]) -> pluggy.PluginManager:
    """A pluggy manager with `plugins` registered and checked against the hook specs.

    Raises:
        ConfigurationError: a plugin implements an unknown hook, or with wrong arguments.
    """
    manager = pluggy.PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    for plugin in plugins:
        try:
            manager.register(plugin.module, name=plugin.name)
            manager.check_pending()
        except pluggy.PluginValidationError as error:
            reason = "; ".join(line.strip() for line in str(error).strip().splitlines())
            raise _unusable(plugin.name, plugin.origin, reason) from error
    return manager


def _origin(point: importlib_metadata.EntryPoint) -> Origin:
    dist = point.dist
    return Origin(dist.name, dist.version) if dist is not None else Origin("unknown", "0")


def _known_names(
    points: list[importlib_metadata.EntryPoint], disabled: Iterable[str]
) -> frozenset[str]:
    unwanted = frozenset(disabled)
    if not unwanted:
        return unwanted
    known = {p.name for p in points} | {_origin(p).distribution for p in points}
    for name in sorted(unwanted - known):
        close = nearest(name, sorted(known))
        raise ConfigurationError(
            f"there is no plugin '{name}' to disable",
            notes=(f"installed: {', '.join(sorted(p.name for p in points)) or 'none'}",),
            hint=f"did you mean '{close}'?" if close else None,
        )
    return unwanted


def _import(point: importlib_metadata.EntryPoint) -> ModuleType:
    try:
        module = point.load()
    except Exception as error:
        reason = f"importing '{point.value}' failed: {type(error).__name__}: {error}"
        raise _unusable(point.name, _origin(point), reason) from error
    found = getattr(module, "TILE_SPEC_VERSION", None)
    if found != hookspecs.SPEC_VERSION:
        reason = (
            f"'{point.value}' declares no TILE_SPEC_VERSION"
            if found is None
            else f"it is made for plugin interface {found}, and this is {hookspecs.SPEC_VERSION}"
        )
        raise _unusable(point.name, _origin(point), reason)
    return module


def _clash(
    point: importlib_metadata.EntryPoint, other: importlib_metadata.EntryPoint
) -> ConfigurationError:
    first, second = (" ".join(_origin(p)) for p in (other, point))
    return ConfigurationError(
        f"two plugins are called '{point.name}': one of {first}, one of {second}",
        hint=f"uninstall one, or go on with --disable-plugin {_origin(point)[0]}",
    )


def _unusable(name: str, origin: Origin, reason: str) -> ConfigurationError:
    return ConfigurationError(
        f"plugin '{name}' of {' '.join(origin)} cannot be used: {reason}",
        hint=f"install a matching version, or go on without it: --disable-plugin {name}",
    )
