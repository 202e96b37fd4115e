"""Finding plugins: entry points of group `tile.plugins`, checked before anything uses them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib import import_module
from itertools import groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tile_core.diagnostics import ConfigurationError, nearest
from tile_core.snapshot import remembered

if TYPE_CHECKING:
    import pluggy


class Origin(NamedTuple):
    """A distribution, as installers know it."""

    distribution: str
    version: str


class Point(NamedTuple):
    """An entry point of the group of plugins."""

    name: str
    value: str  # "module" or "module:object"
    origin: Origin

    def load(self) -> Any:
        """What it names."""
        module, _, inside = self.value.partition(":")
        found = import_module(module.strip())
        return attrgetter(inside.strip())(found) if inside.strip() else found


@dataclass(frozen=True)
class Plugin:
    """A plugin and the distribution that brought it."""

    name: str  # of the entry point
    carrier: Any  # of the hook implementations: what has them, or the `Point` that names it
    origin: Origin

    @property
    def module(self) -> Any:
        """What carries the hook implementations, imported where it has not been."""
        return self.carrier.load() if isinstance(self.carrier, Point) else self.carrier

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
        if isinstance(self.carrier, Point) and ":" not in self.carrier.value:
            return self.carrier.value.strip().partition(".")[0]
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
    import importlib_metadata

    try:
        return importlib_metadata.version("tilec")
    except importlib_metadata.PackageNotFoundError:
        return "0+unknown"


def core_plugin() -> Plugin:
    """What the framework itself brings, seen as a plugin."""
    origin = Origin("tilec", remembered("core-version", _core_version))
    return Plugin("core", Point("core", "tile_core.builtin", origin), origin)


def _core_version() -> tuple[str, list[Path]]:
    return core_version(), []


def installed_points() -> list[Point]:
    """The entry points of installed plugins, in order of name; from the snapshot where nothing has
    been installed since: reading metadata takes longer than a small compilation's passes."""
    found = remembered("plugins", _read_points)
    return [Point(name, value, Origin(*origin)) for name, value, origin in found]


def _read_points() -> tuple[list[tuple[str, str, Origin]], list[Path]]:
    import importlib_metadata

    from tile_core import hookspecs

    points: list[tuple[str, str, Origin]] = []
    files: list[Path] = []
    for point in importlib_metadata.entry_points(group=hookspecs.ENTRY_POINT_GROUP):
        dist = point.dist
        origin = Origin(dist.name, dist.version) if dist is not None else Origin("unknown", "0")
        points.append((point.name, point.value, origin))
        folder = getattr(dist, "_path", None)  # of its metadata, where it has one
        if isinstance(folder, Path):
            files += [folder / "METADATA", folder / "entry_points.txt"]
    return sorted(points), files


def find_plugins(disabled: Iterable[str] = ()) -> tuple[list[Plugin], list[BrokenPlugin]]:
    """The installed plugins in order of name, and those that cannot be used.

    Args:
        disabled: names of entry points or distributions that are left out unseen.

    Raises:
        ConfigurationError: a disabled name that nothing has.
    """
    points = installed_points()
    unwanted = _known_names(points, disabled)
    working: list[Plugin] = []
    broken: list[BrokenPlugin] = []
    for _, group in groupby(points, key=lambda p: p.name):
        same = list(group)
        if unwanted:
            same = [p for p in same if not unwanted & {p.name, p.origin.distribution}]
        if len(same) > 1:
            same.sort(key=lambda p: p.origin)
        for point in same:
            try:
                if point is not same[0]:
                    raise _clash(point, same[0])
                _check(point)
                working.append(Plugin(point.name, point, point.origin))
            except ConfigurationError as error:
                broken.append(BrokenPlugin(point.name, *point.origin, error))
    return working, broken


def plugin_manager(plugins: Iterable[Plugin]) -> pluggy.PluginManager:
    """A pluggy manager with `plugins` registered and checked against the hook specs.

    Raises:
        ConfigurationError: a plugin implements an unknown hook, or with wrong arguments.
    """
    import pluggy

    from tile_core import hookspecs

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


def _known_names(points: list[Point], disabled: Iterable[str]) -> frozenset[str]:
    unwanted = frozenset(disabled)
    if not unwanted:
        return unwanted
    known = {p.name for p in points} | {p.origin.distribution for p in points}
    for name in sorted(unwanted - known):
        close = nearest(name, sorted(known))
        raise ConfigurationError(
            f"there is no plugin '{name}' to disable",
            notes=(f"installed: {', '.join(sorted(p.name for p in points)) or 'none'}",),
            hint=f"did you mean '{close}'?" if close else None,
        )
    return unwanted


def _check(point: Point) -> None:
    """Refuse what cannot be imported, and what is made for another interface."""
    from tile_core import hookspecs

    try:
        module = point.load()
    except Exception as error:
        reason = f"importing '{point.value}' failed: {type(error).__name__}: {error}"
        raise _unusable(point.name, point.origin, reason) from error
    found = getattr(module, "TILE_SPEC_VERSION", None)
    if found != hookspecs.SPEC_VERSION:
        reason = (
            f"'{point.value}' declares no TILE_SPEC_VERSION"
            if found is None
            else f"it is made for plugin interface {found}, and this is {hookspecs.SPEC_VERSION}"
        )
        raise _unusable(point.name, point.origin, reason)


def _clash(point: Point, other: Point) -> ConfigurationError:
    first, second = (" ".join(p.origin) for p in (other, point))
    return ConfigurationError(
        f"two plugins are called '{point.name}': one of {first}, one of {second}",
        hint=f"uninstall one, or go on with --disable-plugin {point.origin.distribution}",
    )


def _unusable(name: str, origin: Origin, reason: str) -> ConfigurationError:
    return ConfigurationError(
        f"plugin '{name}' of {' '.join(origin)} cannot be used: {reason}",
        hint=f"install a matching version, or go on without it: --disable-plugin {name}",
    )
