"""Options that are dataclass fields: declaring, spelling and checking them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any, TypeVar

from tile_core.diagnostics import ConfigurationError, nearest

T = TypeVar("T")

_WANTED = {bool: "a boolean", int: "an integer", str: "a string", float: "a number"}


class Spelled(str):
    """A value as a command line spells it; its type is that of the option it is given to."""

    __slots__ = ()


def option(
    default: T,
    help: str,  # noqa: A002 - the word every option parser uses
    *,
    choices: tuple[T, ...] = (),
    check: Callable[[T], str | None] | None = None,
) -> T:
    """A field of a pass or emitter that is one of its options.

    Args:
        default: the value when a pipeline says nothing; its type is the option's type.
        help: one line for the pass reference.
        choices: the only legal values, if any.
        check: returns what is wrong with a value, or None.
    """
    return field(default=default, metadata={"help": help, "choices": choices, "check": check})


def spelled(text: str, kind: type) -> Any:
    """The value of type `kind` that `text` spells; `text` itself if it spells none."""
    if kind is bool:
        return {"true": True, "false": False, "1": True, "0": False}.get(text.lower(), text)
    if kind in (int, float):
        try:
            return int(text, 0) if kind is int else float(text)
        except ValueError:
            return text
    return str(text)


def fields_of(cls: type) -> dict[str, dataclasses.Field[Any]]:
    """Option name as pipelines spell it (dashes) -> field; empty if `cls` is no dataclass."""
    if not dataclasses.is_dataclass(cls):
        return {}
    return {f.name.replace("_", "-"): f for f in dataclasses.fields(cls) if f.init}


def configured(cls: type[T], what: str, values: Mapping[str, Any]) -> T:
    """An instance of `cls` with `values` (names with dashes) over its defaults, validated.

    Args:
        what: how messages call it, e.g. "pass 'tileas-slicing'".

    Raises:
        ConfigurationError: unknown option, wrong type, or a value that is not allowed.
    """
    known = fields_of(cls)
    chosen: dict[str, Any] = {}
    for key, value in values.items():
        if key not in known:
            close = nearest(key, list(known))
            raise ConfigurationError(
                f"{what} has no option '{key}'",
                hint=f"did you mean '{close}'?" if close else None,
                notes=(f"its options: {', '.join(known) or 'none'}",),
            )
        chosen[known[key].name] = _checked(what, key, known[key], value)
    return cls(**chosen)


def _checked(what: str, key: str, spec: dataclasses.Field[Any], value: Any) -> Any:
    kind = type(spec.default)
    if isinstance(value, Spelled):
        value = spelled(value, kind)
    # bool is an int in Python, but `num-stages = true` is a mistake.
    fits = isinstance(value, kind) and (kind is bool or not isinstance(value, bool))
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        fits, value = True, float(value)
    problem = None if fits else f"expects {_WANTED.get(kind, kind)}, but got {value!r}"
    choices = spec.metadata.get("choices") or ()
    if problem is None and choices and value not in choices:
        close = nearest(str(value), [str(c) for c in choices])
        problem = f"must be one of {', '.join(map(str, choices))}, but got {value!r}" + (
            f" (did you mean '{close}'?)" if close else ""
        )
    check = spec.metadata.get("check")
    if problem is None and check is not None:
        problem = check(value)
    if problem:
        raise ConfigurationError(f"option '{key}' of {what} {problem}")
    return value
