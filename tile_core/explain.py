"""What is known of a name or a message: passes, options, operations, errors, exit codes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from inspect import cleandoc
from typing import Any, get_args

import tomli

from tile_core.diagnostics import ConfigurationError, ExitCode, nearest
from tile_core.inspection import description_of
from tile_core.registry import KINDS, Registry

_CODES = {
    ExitCode.OK: "it worked",
    ExitCode.USAGE: "an unknown command or option, or an input file that cannot be read",
    ExitCode.CONFIGURATION: "a target, option, pipeline, plugin, output or tool cannot be used",
    ExitCode.INPUT: "the bytes or text are no valid program",
    ExitCode.COMPILE: "a valid program could not be compiled, or a run found something wrong",
}


@dataclass(frozen=True)
class Message:
    """An error or remark that a plugin's catalogue explains.

    Attributes:
        text: how it begins or what it contains, `NAME` and `N` standing for anything.
        why: what it means.
        do: what to do about it.
    """

    text: str
    why: str
    do: str

    def matches(self, said: str) -> bool:
        """Whether `said` is such a message, whatever stands around it."""
        parts = re.split(r"\b(?:NAME|N)\b|…", self.text)
        return re.search(".*".join(re.escape(part.strip()) for part in parts), said) is not None


def messages_of(registry: Registry) -> list[Message]:
    """Every message that the installed plugins explain."""
    found: list[Message] = []
    for entry in registry.entries("messages"):
        where, text = registry.text("messages", entry.lazy.name)
        try:
            found += [Message(**table) for table in tomli.loads(text)["message"]]
        except (tomli.TOMLDecodeError, KeyError, TypeError) as error:
            raise ConfigurationError(f"{where} is no catalogue of messages: {error}") from error
    return found


def message_of(registry: Registry, said: str) -> Message | None:
    """What the installed plugins explain of a message that says exactly `said`."""
    return next((message for message in messages_of(registry) if message.text == said), None)


def explanations(registry: Registry, words: str) -> list[str]:
    """All that is known of `words`, a text for each thing of that name.

    Raises:
        ConfigurationError: nothing is; with the nearest name.
    """
    found = list(_all(registry, words))
    if not found:
        close = nearest(words, list(names_of(registry)))
        raise ConfigurationError(
            f"nothing is known of '{words}'",
            hint=f"did you mean '{close}'?"
            if close
            else "say a pass, an operation, an option, a message, or an exit code",
        )
    return found


def names_of(registry: Registry) -> Iterator[str]:
    """What can be asked for by name, for completion."""
    for kind in KINDS:
        yield from registry.names(kind)
    yield from _options(registry)
    yield from operations(registry)
    yield from variables()


def _all(registry: Registry, words: str) -> Iterator[str]:
    for kind in KINDS:
        if registry.has(kind, words):
            yield _registered(registry, kind, words)
    option = _options(registry).get(words.removeprefix("--"))
    if option is not None:
        yield option
    yield from _pass_option(registry, words)
    operation = operations(registry).get(words)
    if operation is not None:
        yield _operation(words, operation)
    yield from _code(words)
    if words in variables():
        yield f"environment variable {words}\n  {variables()[words]}\n"
    for message in messages_of(registry):
        if message.matches(words):
            yield f"message: {message.text}\n  {message.why}\n  what to do: {message.do}\n"


def _registered(registry: Registry, kind: str, name: str) -> str:
    text = description_of(registry, registry.entry(kind, name))
    if kind not in ("pass", "emitter", "scheduler", "layout-strategy", "instrumentation"):
        return text
    doc = cleandoc(registry.load(kind, name).__doc__ or "")
    return text + "".join(f"\n  {line}".rstrip() for line in doc.splitlines()) + "\n"


def _options(registry: Registry) -> dict[str, str]:
    """Pipeline options of the levels: what each is for."""
    from tile_core.pipeline.resolve import Request, load

    merged = load(Request("sm_90", 3, None, {}, {}), registry)
    found: dict[str, str] = {}
    for name, (option, _) in merged.options.items():
        values = ", ".join(map(str, option.choices)) or option.type
        lines = [f"pipeline option {name} = {option.default!r} ({values})", f"  {option.help}"]
        if option.names:
            lines.append(f"  one of: {', '.join(registry.names(option.names))}")
        if option.reserved:
            lines.append("  reserved: nothing reads it yet, so any other value is refused")
        lines.append(f"  --set {name}=VALUE, or [set] {name} = VALUE in a pipeline file")
        found[name] = "\n".join(lines) + "\n"
    return found


def _pass_option(registry: Registry, words: str) -> Iterator[str]:
    """`pass.option`, as `-D` spells it."""
    from tile_core.options import fields_of

    name, dot, option = words.partition(".")
    for kind in ("pass", "emitter"):
        if dot and registry.has(kind, name):
            field = fields_of(registry.load(kind, name)).get(option)
            if field is not None:
                about = field.metadata.get("help", "")
                yield f"option {option} of {kind} {name} = {field.default!r}\n  {about}\n"


def operations(registry: Registry) -> Mapping[str, Any]:
    """Operation -> its class, of all dialects of plugins."""
    from tile_core.dialect import Operation
    from tile_core.session import session_of

    with session_of(registry) as session, session.context:
        session.load_dialects(registry.names("dialect"))
        # A program that uses the compiler may have dialects that no plugin registers.
        known = {
            c.OPERATION_NAME: c
            for c in Operation.__subclasses__()
            if registry.has("dialect", c.OPERATION_NAME.partition(".")[0])
        }
    return dict(sorted(known.items()))


def _operation(name: str, kind: Any) -> str:
    lines = [
        f"operation {name}",
        *(f"  {line}" for line in cleandoc(kind.__doc__ or "").split("\n")),
    ]
    for field, annotation in getattr(kind, "__annotations__", {}).items():
        lines.append(f"  {field}: {_spelled(annotation)}")
    traits = ", ".join(trait.__name__ for trait in getattr(kind, "_traits", ()))
    if traits:
        lines.append(f"  traits: {traits}")
    return "\n".join(lines) + "\n"


def _spelled(annotation: Any) -> str:
    """A field in words: operand, operands, result, attribute."""
    text = str(annotation)
    optional = "optional " if "None" in text else ""
    if "OpResult" in text:
        return f"{optional}result"
    if "Sequence" in text:
        return "operands"
    if "Value" in text:
        return f"{optional}operand"
    if "Region" in text:
        return "region"
    kinds = [getattr(arg, "__name__", "") for arg in (get_args(annotation) or (annotation,))]
    return f"{optional}attribute ({', '.join(k for k in kinds if k and k != 'NoneType')})"


def variables() -> Mapping[str, str]:
    """Environment variables that users may set, and what each does."""
    text = resources.files("tile_core").joinpath("variables.toml").read_text(encoding="utf-8")
    return tomli.loads(text)


def _code(words: str) -> Iterator[str]:
    if words.isdigit() and int(words) in list(ExitCode):
        code = ExitCode(int(words))
        yield f"exit code {int(code)} ({code.name})\n  {_CODES[code]}\n"
