"""From a merged pipeline, a target and options to the flat list of what will run."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tile_core.defaults import Instead, instead
from tile_core.diagnostics import ConfigurationError, nearest
from tile_core.options import spelled
from tile_core.pipeline.condition import ConditionError, parse_condition
from tile_core.pipeline.merge import Entry, Merged, Segment, Spot, merge
from tile_core.pipeline.schema import Option
from tile_core.pipeline.tables import Source
from tile_core.registry import Registry
from tile_core.target import Target

NATIVE = "mlir:"  # prefix of upstream passes

_TYPES = {"int": int, "bool": bool, "str": str, "float": float}
_SPELLED = {"int": "an integer", "bool": "true or false", "str": "a string", "float": "a number"}


@dataclass(frozen=True)
class PassCall:
    """A pass that will run, its options filled in but not yet checked by the pass."""

    name: str
    id: str
    options: Mapping[str, Any]
    preserve: tuple[str, ...] = ()
    spot: Spot | None = field(default=None, compare=False)
    #: Options whose value came from the command line and not from `spot`.
    overridden: frozenset[str] = field(default=frozenset(), compare=False)

    def __str__(self) -> str:
        body = " ".join(f"{k}={_plain(v)}" for k, v in self.options.items())
        if not body:
            return self.name
        # An upstream pass may carry options in its name already.
        return f"{self.name[:-1]} {body}}}" if self.name.endswith("}") else f"{self.name}{{{body}}}"


@dataclass(frozen=True)
class SegmentCall:
    """A segment that will run."""

    name: str
    nest: tuple[str, ...]
    passes: tuple[PassCall, ...]
    removes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Resolved:
    """What runs for one target and one set of options."""

    name: str
    target: Target
    options: Mapping[str, Any]
    segments: tuple[SegmentCall, ...]
    emitters: tuple[PassCall, ...] = ()

    def passes(self) -> list[PassCall]:
        """All passes in order."""
        return [call for segment in self.segments for call in segment.passes]

    def names(self) -> list[str]:
        """The passes in order, as "segment/id"."""
        return [f"{s.name}/{call.id}" for s in self.segments for call in s.passes]

    def leaving_out(self, names: Collection[str]) -> Resolved:
        """The pipeline without some of its passes, given as "segment/id".

        Raises:
            ConfigurationError: there is no such pass.
        """
        unknown = sorted(set(names) - set(self.names()))
        if unknown:
            close = nearest(unknown[0], self.names())
            raise ConfigurationError(
                f"pipeline '{self.name}' has no pass '{unknown[0]}'",
                hint=f"did you mean '{close}'?" if close else "`tilec pipeline show` lists them",
            )
        segments = tuple(
            replace(s, passes=tuple(c for c in s.passes if f"{s.name}/{c.id}" not in names))
            for s in self.segments
        )
        return replace(self, segments=segments)

    def upto(self, name: str) -> Resolved:
        """The pipeline up to and including the segment or pass `name`.

        Raises:
            ConfigurationError: nothing, or more than one pass, is called so.
        """
        s, p = self._find(name)
        segment = self.segments[s]
        if p is None:
            return replace(self, segments=self.segments[: s + 1])
        # The segment is cut short, so what it promises to remove may still be there.
        cut = replace(segment, passes=segment.passes[: p + 1], removes=())
        return replace(self, segments=(*self.segments[:s], cut))

    def since(self, name: str) -> Resolved:
        """The pipeline from the segment or pass `name` on, inclusive."""
        s, p = self._find(name)
        cut = replace(self.segments[s], passes=self.segments[s].passes[p or 0 :])
        return replace(self, segments=(cut, *self.segments[s + 1 :]))

    def _find(self, name: str) -> tuple[int, int | None]:
        """Where `name` is: index of the segment, and of the pass in it."""
        segments = [segment.name for segment in self.segments]
        if (plain := name.removeprefix("segment:")) in segments:
            return segments.index(plain), None
        found = [
            (s, p, f"{segment.name}/{call.id}")
            for s, segment in enumerate(self.segments)
            for p, call in enumerate(segment.passes)
            if name in (call.name, call.id, f"{segment.name}/{call.id}")
        ]
        if len(found) == 1:
            return found[0][:2]
        if found:
            places = ", ".join(dict.fromkeys(place for _, _, place in found))
            raise ConfigurationError(
                f"pipeline '{self.name}' runs '{name}' {len(found)} times",
                hint=f"say which: {places}",
            )
        close = nearest(name, segments + [call.id for call in self.passes()])
        raise ConfigurationError(
            f"pipeline '{self.name}' has no segment or pass '{name}'",
            hint=f"did you mean '{close}'?" if close else "`tilec pipeline show` lists them",
        )


@dataclass(frozen=True)
class Request:
    """What a user asks of a pipeline.

    `pipeline` is a registered name or a path of a TOML file; None means the -O level's.
    `options` are values or their spellings; `pass_options` maps "pass.option" to a spelling;
    `instead` holds the user's own values instead of a pipeline's (`tile_core.defaults`).
    """

    target: str
    opt_level: int | None = None
    pipeline: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    pass_options: Mapping[str, Any] = field(default_factory=dict)
    instead: Instead = field(default_factory=instead)


def load(request: Request, registry: Registry) -> Merged:
    """The merged pipeline that `request` names.

    Raises:
        ConfigurationError: wrong level, no such pipeline, or a file with a mistake.
    """
    level = level_name(request.opt_level, registry)

    def read(name: str) -> Source:
        return Source(*registry.pipeline_text(name))

    if request.pipeline is None:
        return merge(read(level), read, level)
    if registry.has("pipeline", request.pipeline):
        return merge(read(request.pipeline), read, level)
    if request.pipeline.endswith(".toml"):
        return merge(_read_path(Path(request.pipeline)), read, level)
    registry.entry("pipeline", request.pipeline)  # raises, with the nearest name
    raise AssertionError(request.pipeline)


def level_name(opt_level: int | None, registry: Registry) -> str:
    """The pipeline of an -O level; 3 when none is given.

    Raises:
        ConfigurationError: no such level.
    """
    name = f"O{3 if opt_level is None else opt_level}"
    if not registry.has("pipeline", name):
        raise ConfigurationError(
            f"invalid optimization level '{opt_level}'", hint="levels are 0, 1, 2 and 3"
        )
    return name


def _read_path(path: Path) -> Source:
    try:
        return Source(str(path), path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigurationError(f"cannot read pipeline file '{path}': {reason}") from error


def resolve(merged: Merged, request: Request, registry: Registry) -> Resolved:
    """The passes that run, in order, with every option filled in.

    Raises:
        ConfigurationError: an option, condition or override that makes no sense, or options that
            do not go together.
    """
    target = registry.target(request.target)
    options = _option_values(merged, request, registry)
    scope = condition_scope(options, target)
    _check_needs(merged, scope)
    segments = []
    for segment in merged.segments:
        kept = [_call(e, scope, options) for e in segment.entries if _holds(e.when, e.spot, scope)]
        if _holds(segment.when, segment.spot, scope):
            segments.append(SegmentCall(segment.name, segment.nest, tuple(kept), segment.removes))
    emitters = tuple(_emitter(name, merged, scope, options) for name in merged.emit.chain)
    unused = set(merged.emit.options) - set(merged.emit.chain)
    if unused:
        spot = merged.emit_spot.inside("options", min(unused))
        raise spot.error(f"emitter '{min(unused)}' is not in the chain")
    segments, emitters = _override(
        segments, emitters, request.pass_options, merged.segments, options
    )
    return Resolved(merged.head.name, target, options, tuple(segments), tuple(emitters))


def unconditional(merged: Merged, request: Request, registry: Registry) -> Resolved:
    """Everything that the pipeline could run, conditions left aside; for checks."""
    target = registry.target(request.target)
    options = _option_values(merged, request, registry)
    scope = condition_scope(options, target)
    segments = tuple(
        SegmentCall(s.name, s.nest, tuple(_call(e, scope, options) for e in s.entries), s.removes)
        for s in merged.segments
    )
    emitters = tuple(_emitter(name, merged, scope, options) for name in merged.emit.chain)
    return Resolved(merged.head.name, target, options, segments, emitters)


def condition_scope(options: Mapping[str, Any], target: Target) -> dict[str, Any]:
    """What conditions may refer to: the options, and facts of the target."""
    return {
        **options,
        "strategy": options.get("pipeline-strategy", "none"),
        "target": target.name,
        "sm": target.sm,
        "chip": target.chip,
        "ptx": target.ptx,
        "max-shared": target.max_shared,
        "clusters": target.clusters,
        "tensor-memory": target.tensor_memory,
    }


# --- options -------------------------------------------------------------------------------------


def _option_values(merged: Merged, request: Request, registry: Registry) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, (option, spot) in merged.options.items():
        value, place = merged.values.get(name, (option.default, spot.inside("default")))
        values[name] = _checked(name, option, value, registry, place)
        own = request.instead.get(name, {}).get(str(value))
        if own is not None:
            values[name] = _checked(name, option, own, registry, None)
    for name, value in request.options.items():
        if name not in merged.options:
            close = nearest(name, list(merged.options))
            raise ConfigurationError(
                f"pipeline '{merged.head.name}' has no option '{name}'",
                notes=(f"its options: {', '.join(merged.options)}",),
                hint=f"did you mean '{close}'?" if close else None,
            )
        option = merged.options[name][0]
        if isinstance(value, str):
            value = spelled(value, _TYPES[option.type])
        values[name] = _checked(name, option, value, registry, None)
    for name, (option, _) in merged.options.items():
        if option.reserved and values[name] != option.default:
            raise ConfigurationError(
                f"option '{name}' has no effect in pipeline '{merged.head.name}': "
                f"no pass of it can honour {_plain(values[name])!r} yet",
                hint=f"leave it at {_plain(option.default)!r}",
            )
    return values


def _check_needs(merged: Merged, scope: Mapping[str, Any]) -> None:
    """Refuses options that do not go with the others."""
    for name, (option, spot) in merged.options.items():
        if option.needs is None:
            continue
        met = _evaluate(option.needs, spot.inside("needs"), scope)
        if not met and scope[name] != option.default:
            raise ConfigurationError(
                option.refusal or f"option '{name}' cannot be {_plain(scope[name])!r} here",
                hint=f"'{name}' needs {option.needs}",
            )


def _checked(name: str, option: Option, value: Any, registry: Registry, spot: Spot | None) -> Any:
    problem = _problem(option, value)
    hint = None
    if problem is None and option.choices and value not in option.choices:
        problem = f"must be one of {', '.join(map(_plain, option.choices))}"
        close = nearest(str(value), [str(c) for c in option.choices])
        hint = f"did you mean '{close}'?" if close else None
    # A declared default, or any name while no plugin brings such things, may stand here; the pass
    # that asks for it says what is missing.
    known = registry.names(option.names) if option.names and value != option.default else []
    if problem is None and known and value not in known:
        problem = f"names no {option.names}"
        close = nearest(value, known)
        hint = f"did you mean '{close}'?" if close else f"known: {', '.join(known)}"
    if problem is None:
        return value
    message = f"option '{name}' {problem}, but got {_plain(value)!r}"
    raise spot.error(message, hint) if spot else ConfigurationError(message, hint=hint)


def _problem(option: Option, value: Any) -> str | None:
    kind = _TYPES[option.type]
    if kind is float and type(value) is int:
        return None
    if type(value) is not kind:
        return f"expects {_SPELLED[option.type]}"
    if option.min is not None and value < option.min:
        return f"must be at least {option.min}"
    if option.max is not None and value > option.max:
        return f"must be at most {option.max}"
    return None


# --- conditions and references -------------------------------------------------------------------


def _holds(when: str | None, spot: Spot, scope: Mapping[str, Any]) -> bool:
    if when is None:
        return True
    return bool(_evaluate(when, spot.inside("when"), scope))


def _evaluate(text: str, spot: Spot, scope: Mapping[str, Any]) -> Any:
    try:
        return parse_condition(text).value(scope)
    except ConditionError as error:
        close = nearest(error.name, list(scope)) if error.name else None
        raise spot.error(str(error), f"did you mean '{close}'?" if close else None) from error


def _call(entry: Entry, scope: Mapping[str, Any], options: Mapping[str, Any]) -> PassCall:
    filled = {
        key: _filled(value, entry.spot.inside(key), scope, options)
        for key, value in entry.options.items()
    }
    return PassCall(entry.name, entry.id, filled, entry.preserve, entry.spot)


def _filled(value: Any, spot: Spot, scope: Mapping[str, Any], options: Mapping[str, Any]) -> Any:
    """`$name` is an option's value, `$(condition)` that of a condition, `$$` a dollar."""
    if not isinstance(value, str) or not value.startswith("$"):
        return value
    if value.startswith("$$"):
        return value[1:]
    if value.startswith("$(") and value.endswith(")"):
        return _evaluate(value[2:-1], spot, scope)
    name = value[1:]
    if name in options:
        return options[name]
    close = nearest(name, list(options))
    raise spot.error(f"unknown option '${name}'", f"did you mean '${close}'?" if close else None)


def _emitter(
    name: str, merged: Merged, scope: Mapping[str, Any], options: Mapping[str, Any]
) -> PassCall:
    spot = merged.emit_spot.inside("options", name)
    given = merged.emit.options.get(name, {})
    filled = {k: _filled(v, spot.inside(k), scope, options) for k, v in given.items()}
    return PassCall(name, name, filled, (), spot)


# --- overrides from the command line --------------------------------------------------------------


def _override(
    segments: list[SegmentCall],
    emitters: Sequence[PassCall],
    overrides: Mapping[str, Any],
    known: Sequence[Segment],
    settings: Collection[str],
) -> tuple[list[SegmentCall], list[PassCall]]:
    emitters = list(emitters)
    for key, value in overrides.items():
        name, _, option = key.rpartition(".")
        if not name:
            of_pipeline = key in settings
            raise ConfigurationError(
                f"'{key}' names no option of a pass",
                hint=f"the pipeline has an option '{key}': write --set {key}=VALUE"
                if of_pipeline
                else "write -D PASS.OPTION=VALUE",
            )
        hits = 0
        for s, segment in enumerate(segments):
            changed = tuple(_with(call, name, option, value) for call in segment.passes)
            hits += sum(name in (call.name, call.id) for call in segment.passes)
            segments[s] = SegmentCall(segment.name, segment.nest, changed, segment.removes)
        hits += sum(name in (call.name, call.id) for call in emitters)
        emitters = [_with(call, name, option, value) for call in emitters]
        if not hits:
            raise _no_such_pass(name, segments, emitters, known)
    return segments, emitters


def _with(call: PassCall, name: str, option: str, value: Any) -> PassCall:
    if name not in (call.name, call.id):
        return call
    options = {**call.options, option: value}
    return replace(call, options=options, overridden=call.overridden | {option})


def _no_such_pass(
    name: str,
    segments: Sequence[SegmentCall],
    emitters: Sequence[PassCall],
    known: Sequence[Segment],
) -> ConfigurationError:
    if any(name in (e.name, e.id) for s in known for e in s.entries):
        return ConfigurationError(
            f"pass '{name}' does not run with these options",
            hint="`tilec pipeline show` lists what runs",
        )
    names = [c.id for s in segments for c in s.passes] + [c.id for c in emitters]
    close = nearest(name, names)
    return ConfigurationError(
        f"no pass or emitter '{name}' in this pipeline",
        hint=f"did you mean '{close}'?" if close else "`tilec pipeline show` lists what runs",
    )


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
