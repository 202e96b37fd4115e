"""Names to objects, and which plugin gave them; nothing is imported before it is asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tile_core import plugins, registered
from tile_core.diagnostics import ConfigurationError, nearest
from tile_core.plugins import BrokenPlugin, Origin, Plugin
from tile_core.references import Lazy, LazyEmitter, LazyFrontend, LazyPatterns
from tile_core.snapshot import remembered
from tile_core.target import Target, builtin_targets, unknown_target
from tile_core.toml_text import package_text

#: The first word of a text, behind white space and comments.
_FIRST_WORD = re.compile(rb"(?:\s|//[^\n]*(?:\n|\Z))*([A-Za-z_.]+)(?=[\s@])")
#: kind -> (hook that registers it, what the hook returns)
KINDS: Mapping[str, tuple[str, type[Lazy]]] = {
    "dialect": ("tile_dialects", Lazy),
    "pass": ("tile_passes", Lazy),
    "patterns": ("tile_patterns", LazyPatterns),
    "scheduler": ("tile_schedulers", Lazy),
    "schedule-part": ("tile_schedule_parts", Lazy),
    "machine-model": ("tile_machine_models", Lazy),
    "layout-strategy": ("tile_layout_strategies", Lazy),
    "target": ("tile_targets", Lazy),
    "machine": ("tile_machines", Lazy),
    "pipeline": ("tile_pipelines", Lazy),
    "instrumentation": ("tile_instrumentations", Lazy),
    "frontend": ("tile_frontends", LazyFrontend),
    "text-check": ("tile_text_checks", Lazy),
    "emitter": ("tile_emitters", LazyEmitter),
    "check": ("tile_checks", Lazy),
    "gpu-check": ("tile_gpu_checks", Lazy),
    "messages": ("tile_messages", Lazy),
    "view": ("tile_views", Lazy),
    "command": ("tile_cli_commands", Lazy),
}


@dataclass(frozen=True)
class Entry:
    """A registered name: its lazy reference and the plugin that owns it."""

    kind: str
    lazy: Lazy
    plugin: Plugin


class Registry:
    """Everything that a set of plugins registers.

    Args:
        plugins_: working plugins; the framework's own is added by the class methods.
        known: what they register, where they need not be asked.

    Raises:
        ConfigurationError: two plugins claim one name, or a hook is implemented wrongly.
    """

    def __init__(
        self,
        plugins_: Iterable[Plugin],
        broken: Iterable[BrokenPlugin] = (),
        known: Iterable[Entry] | None = None,
    ) -> None:
        self.plugins = tuple(plugins_)
        self.broken = tuple(broken)
        self._entries: dict[str, dict[str, Entry]] = {kind: {} for kind in KINDS}
        self._loaded: dict[tuple[str, str], Any] = {}
        if known is not None:
            for entry in known:
                self._entries[entry.kind][entry.lazy.name] = entry
        else:
            self._ask_plugins()

    def _ask_plugins(self) -> None:
        manager = plugins.plugin_manager(self.plugins)
        owners = {plugin.name: plugin for plugin in self.plugins}
        for kind, (hook, wanted) in KINDS.items():
            # Each implementation is called by itself, because only then its owner is known.
            for impl in getattr(manager.hook, hook).get_hookimpls():
                owner = owners[impl.plugin_name]
                for lazy in _call(impl.function, hook, wanted, owner):
                    self._add(Entry(kind, lazy, owner))

    @classmethod
    def discover(cls, disabled: Iterable[str] = (), *, strict: bool = True) -> Registry:
        """The registry of all installed plugins, from the snapshot where nothing has changed.

        Args:
            disabled: plugins or distributions to leave out.
            strict: raise for a plugin that cannot be used, instead of listing it in `broken`.
        """
        without = tuple(disabled)
        if without or not strict:
            return cls._of_installed(without, strict=strict)
        made: list[Registry] = []

        def make() -> tuple[str | None, list[Path]]:
            made.append(cls._of_installed((), strict=True))
            rows = [(e.kind, e.lazy, e.plugin) for e in made[0]._every_entry()]
            return registered.packed(made[0].plugins, rows), registered.behind(made[0].plugins)

        kept = remembered("registry", make)
        if made or kept is None:
            return made[0] if made else cls._of_installed((), strict=True)
        found, rows = registered.unpacked(kept)
        return cls(found, known=[Entry(*row) for row in rows])

    @classmethod
    def _of_installed(cls, disabled: Iterable[str], *, strict: bool) -> Registry:
        working, broken = plugins.find_plugins(disabled)
        if strict and broken:
            raise broken[0].error
        try:
            return cls([plugins.core_plugin(), *working], broken)
        except ConfigurationError:
            if strict:
                raise
        return cls._without_culprits(working, broken)

    @classmethod
    def _without_culprits(cls, working: list[Plugin], broken: list[BrokenPlugin]) -> Registry:
        """The registry of those plugins that go together with the ones before them."""
        kept = [plugins.core_plugin()]
        for plugin in working:
            try:
                cls([*kept, plugin])
                kept.append(plugin)
            except ConfigurationError as error:
                names = (plugin.name, plugin.distribution, plugin.version)
                broken = [*broken, BrokenPlugin(*names, error)]
        return cls(kept, broken)

    @classmethod
    def of(cls, **modules: Any) -> Registry:
        """A registry of the framework and the given plugin modules only, for tests and tools."""
        own = [Plugin(name, module, Origin(name, "0")) for name, module in sorted(modules.items())]
        return cls([plugins.core_plugin(), *own])

    def _add(self, entry: Entry) -> None:
        known = self._entries[entry.kind]
        other = known.get(entry.lazy.name)
        if other is None and entry.kind == "target" and entry.lazy.name in builtin_targets():
            other = Entry("target", entry.lazy, self.plugins[0])
        if other is not None:
            raise ConfigurationError(
                f"two plugins register the {entry.kind} '{entry.lazy.name}': "
                f"{other.plugin} and {entry.plugin}",
                hint=f"uninstall one, or go on with --disable-plugin {entry.plugin.name}",
            )
        known[entry.lazy.name] = entry

    def _every_entry(self) -> list[Entry]:
        return [entry for kind in KINDS for entry in self.entries(kind)]

    def names(self, kind: str) -> list[str]:
        """All names of `kind`, sorted."""
        found = set(self._entries[kind])
        if kind == "target":
            found |= set(builtin_targets())
        return sorted(found)

    def entries(self, kind: str) -> list[Entry]:
        """All entries of `kind`, in order of registration."""
        return list(self._entries[kind].values())

    def has(self, kind: str, name: str) -> bool:
        """Whether `kind` has a `name`."""
        return name in self._entries[kind]

    def entry(self, kind: str, name: str) -> Entry:
        """The entry called `name`.

        Raises:
            ConfigurationError: there is none; the nearest name is suggested.
        """
        found = self._entries[kind].get(name)
        if found is not None:
            return found
        from tile_core.explain import message_of  # who asks for what is there needs none

        said = f"there is no {kind} '{name}'"
        known = message_of(self, said)
        if known is not None:
            raise ConfigurationError(said, notes=(known.why,), hint=known.do)
        close = nearest(name, list(self._entries[kind]))
        raise ConfigurationError(
            said,
            notes=(f"known: {', '.join(self.names(kind)) or 'none'}",),
            hint=f"did you mean '{close}'?"
            if close
            else "`tilec plugins list` shows what is installed",
        )

    def owner(self, kind: str, name: str) -> Plugin:
        """The plugin that gave `name`."""
        if kind == "target" and name in builtin_targets():
            return self.plugins[0]
        return self.entry(kind, name).plugin

    def plugin_of_package(self, package: str) -> Plugin | None:
        """The plugin whose code an importable package holds; None for the framework's own."""
        for plugin in self.plugins[1:]:
            if plugin.package == package:
                return plugin
        for known in self._entries.values():
            for entry in known.values():
                if entry.lazy.target.partition(":")[0].partition(".")[0] == package:
                    return None if entry.plugin is self.plugins[0] else entry.plugin
        return None

    def load(self, kind: str, name: str) -> Any:
        """The object behind `name`, imported on first use.

        Raises:
            ConfigurationError: no such name, or the object cannot be imported or is not one.
        """
        key = (kind, name)
        if key not in self._loaded:
            self._loaded[key] = _load(self.entry(kind, name))
        return self._loaded[key]

    def patterns(self, pass_name: str) -> list[Any]:
        """The rule sets that plugins add to the conversion pass `pass_name`."""
        return [
            self.load("patterns", entry.lazy.name)
            for entry in self.entries("patterns")
            if isinstance(entry.lazy, LazyPatterns) and entry.lazy.extends == pass_name
        ]

    def frontend_for(self, data: bytes) -> Entry | None:
        """The reader whose magic `data` starts with, the longest first, or else its first word."""
        fitting = [
            entry
            for entry in self.entries("frontend")
            if isinstance(entry.lazy, LazyFrontend)
            and entry.lazy.magic
            and data.startswith(entry.lazy.magic)
        ]
        return max(fitting, key=lambda e: len(_magic(e)), default=None) or self._of_word(data)

    def _of_word(self, data: bytes) -> Entry | None:
        match = _FIRST_WORD.match(data)
        if match is None:
            return None
        word = match[1].decode()
        for entry in self.entries("frontend"):
            if isinstance(entry.lazy, LazyFrontend) and word in entry.lazy.words:
                return entry
        return None

    def target(self, name: str) -> Target:
        """The target called `name`, from the core or a plugin; also by its chip, as "sm_90a"."""
        if name in builtin_targets():
            return builtin_targets()[name]
        for target in builtin_targets().values():
            if target.chip == name:
                return target
        if self.has("target", name):
            return self.load("target", name)
        raise unknown_target(name, self.names("target"))

    def pipeline_text(self, name: str) -> tuple[str, str]:
        """Where the pipeline `name` is ("package/file.toml"), and its text."""
        return self.text("pipeline", name)

    def text(self, kind: str, name: str) -> tuple[str, str]:
        """Where the file behind `name` is ("package/file.toml"), and its text.

        Raises:
            ConfigurationError: no such name, or the file cannot be read.
        """
        entry = self.entry(kind, name)
        package, _, file = entry.lazy.target.partition(":")
        try:
            text = package_text(package, file)
        except (OSError, ImportError, UnicodeDecodeError) as error:
            raise ConfigurationError(
                f"{kind} '{name}' of {entry.plugin} cannot be read: {error}"
            ) from error
        return f"{package}/{file}", text


def _magic(entry: Entry) -> bytes:
    return entry.lazy.magic if isinstance(entry.lazy, LazyFrontend) else b""


def _call(function: Any, hook: str, wanted: type[Lazy], owner: Plugin) -> list[Lazy]:
    try:
        found = list(function())
    except Exception as error:
        raise ConfigurationError(
            f"hook '{hook}' of {owner} failed: {type(error).__name__}: {error}",
            hint=f"go on without it: --disable-plugin {owner.name}",
        ) from error
    for item in found:
        if not isinstance(item, wanted):
            raise ConfigurationError(
                f"hook '{hook}' of {owner} returned {item!r}, which is no {wanted.__name__}",
                hint=f"go on without it: --disable-plugin {owner.name}",
            )
    return found


def _load(entry: Entry) -> Any:
    lazy = entry.lazy
    try:
        found = lazy.load()
    except Exception as error:
        reason = f"cannot be loaded from '{lazy.target}': {type(error).__name__}: {error}"
        raise ConfigurationError(f"{_described(entry)} {reason}") from error
    problem = _CHECKS.get(entry.kind, lambda _entry, _found: None)(entry, found)
    if problem:
        raise ConfigurationError(f"{_described(entry)} {problem} ('{lazy.target}')")
    return found


def _described(entry: Entry) -> str:
    return f"{entry.kind} '{entry.lazy.name}' of {entry.plugin}"


def _named_class(entry: Entry, found: Any) -> str | None:
    if not isinstance(found, type):
        return "is not a class"
    name = getattr(found, "name", None)
    return None if name == entry.lazy.name else f"calls itself {name!r}"


def _pass_class(entry: Entry, found: Any) -> str | None:
    from tile_core.passes import Pass

    if not (isinstance(found, type) and issubclass(found, Pass)):
        return "is not a subclass of tile_core.passes.Pass"
    return _named_class(entry, found)


def _click_command(entry: Entry, found: Any) -> str | None:
    from click import Command

    return None if isinstance(found, Command) else "is not a click command"


def _target_record(entry: Entry, found: Any) -> str | None:
    if not isinstance(found, Target):
        return "is not a tile_core.target.Target"
    return None if found.name == entry.lazy.name else f"calls itself '{found.name}'"


_CHECKS = {
    "pass": _pass_class,
    "scheduler": _named_class,
    "schedule-part": _named_class,
    "layout-strategy": _named_class,
    "emitter": _named_class,
    "instrumentation": _named_class,
    "target": _target_record,
    "command": _click_command,
}


@cache
def default_registry(disabled: frozenset[str] = frozenset()) -> Registry:
    """The registry of everything installed, made once per process."""
    return Registry.discover(sorted(disabled))
