"""The command line's own rules, which are those of LLVM's option library.

One dash or two; `--name=value` or, where a value is required, `--name value`; the last occurrence
wins; one-letter options in groups (`-gO0`); `@file` for more arguments; `--` ends the options. All
mistakes are reported before the tool gives up, except that an action such as `--version` happens
as soon as it is met.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tile_dropin.nearest import nearest_option
from tile_dropin.options import OPTIONS, PREVIEW_FEATURES, Option

_TRUE = ("", "true", "TRUE", "True", "1")
_FALSE = ("false", "FALSE", "False", "0")
_INTEGER = re.compile(r"-?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+|0[0-7]*|[1-9][0-9]*)")
_INT_RANGE = range(-(2**31), 2**31)
#: Files of arguments may name further ones; LLVM stops at circles, this at a depth.
_DEEPEST = 20


@dataclass
class Given:
    """What a command line says.

    `action` is the name of the option that ends the run before anything is read; the messages
    are then those of the arguments before it.
    """

    source: str = ""
    values: dict[str, Any] = field(default_factory=dict)
    action: str | None = None
    errors: list[str] = field(default_factory=list)

    def __getitem__(self, name: str) -> Any:
        return self.values.get(name)


class _Action(Exception):
    """An option that ends the run was met."""


def parse(arguments: Sequence[str], program: str) -> Given:
    """What `arguments` say; mistakes are in `Given.errors`.

    Args:
        program: how the tool was called, for messages.
    """
    parser = _Parser(expanded(arguments), program)
    try:
        parser.run()
    except _Action as action:
        parser.given.action = str(action)
    return parser.given


class _Parser:
    """One pass over the arguments."""

    def __init__(self, arguments: list[str], program: str) -> None:
        self.arguments = arguments
        self.program = program
        self.tool = Path(program).name
        self.at = 0
        self.given = Given()

    def run(self) -> None:
        positional: list[str] = []
        options_end = False
        while self.at < len(self.arguments):
            argument = self.arguments[self.at]
            if options_end or not argument.startswith("-") or argument == "-":
                positional.append(argument)
            elif argument == "--":
                options_end = True
            else:
                self._option(argument)
            self.at += 1
        if len(positional) > 1:
            self._say("Too many positional arguments specified!")
            self.given.errors.append(
                f"Can specify at most 1 positional arguments: See: {self.program} --help"
            )
        elif positional:
            self.given.source = positional[0]

    def _option(self, argument: str) -> None:
        text = argument[2:] if argument.startswith("--") else argument[1:]
        option, value = _whole(text)
        if option is None:
            option, value, text = self._prefixed(text)
        if option is not None:
            self._provide(option, value)
            return
        self._say(f"Unknown command line argument '{argument}'.  Try: '{self.program} --help'")
        close = nearest_option(text)
        if close:
            self._say(f"Did you mean '{_dashed(close)}'?")

    def _prefixed(self, text: str) -> tuple[Option | None, str | None, str]:
        """An option that `text` starts with, its value, and the part of `text` that names it.

        `-O3`, `-gO0`; of a group with a mistake, the part that was being looked at.
        """
        option = _longest(text, text) if len(text) > 1 else None
        while option is not None:
            rest = text[len(option.name) :]
            if not rest:
                return option, None, text
            if option.prefix:
                return option, rest, text
            if rest.startswith("="):
                return option, rest[1:], text
            if option.takes_value:
                self._wrong(option.name, "may not occur within a group!")
                return None, None, option.name
            self._provide(option, None)
            text = rest
            option = _longest(text, text, in_group=True)
        return None, None, text

    def _provide(self, option: Option, value: str | None) -> None:
        if option.takes_value and value is None:
            if option.prefix or self.at + 1 >= len(self.arguments):
                return self._wrong(option.name, "requires a value!")
            self.at += 1
            value = self.arguments[self.at]
        elif option.kind == "action" and value is not None:
            return self._wrong(option.name, f"does not allow a value! '{value}' specified.")
        return self._take(OPTIONS[option.alias or option.name], value or "")

    def _take(self, option: Option, text: str) -> None:
        """Keep the value that `text` spells."""
        try:
            value = _READ[option.kind](option, text)
        except ValueError as error:
            return self._wrong(option.name, str(error))
        if option.kind == "action" or (option.name == "list-versions" and value):
            raise _Action(option.name)
        if option.many:
            value = (*self.given.values.get(option.name, ()), value)
        elif option.kind == "features":
            value = tuple(dict.fromkeys((*self.given.values.get(option.name, ()), *value)))
        self.given.values[option.name] = value
        return None

    def _wrong(self, name: str, message: str) -> None:
        self._say(f"for the {_dashed(name)} option: {message}")

    def _say(self, message: str) -> None:
        self.given.errors.append(f"{self.tool}: {message}")


def _whole(text: str) -> tuple[Option | None, str | None]:
    """The option that all of `text` names, with the value after its first `=`."""
    name, equals, value = text.partition("=")
    option = OPTIONS.get(name)
    if option is None or (equals and option.prefix):
        return None, None
    return option, value if equals else None


def _longest(text: str, name: str, *, in_group: bool = False) -> Option | None:
    """The option with the longest name that `text` starts with, of those that allow it."""
    while name:
        option = OPTIONS.get(name)
        if option is not None and (option.groups or (option.prefix and not in_group)):
            return option
        name = name[:-1]
    return None


def _dashed(name: str) -> str:
    return f"-{name}" if len(name) == 1 else f"--{name}"


# --- values --------------------------------------------------------------------------------------


def _action(_option: Option, _text: str) -> bool:
    return True


def _flag(_option: Option, text: str) -> bool:
    if text in _TRUE:
        return True
    if text in _FALSE:
        return False
    raise ValueError(f"'{text}' is invalid value for boolean argument! Try 0 or 1")


def _int(_option: Option, text: str) -> int:
    """A number with C's prefixes; a leading zero means octal."""
    if _INTEGER.fullmatch(text):
        digits = text.lstrip("-")
        octal = len(digits) > 1 and digits.isdigit() and digits.startswith("0")
        value = int(digits, 8 if octal else 0) * (-1 if text.startswith("-") else 1)
        if value in _INT_RANGE:
            return value
    raise ValueError(f"'{text}' value invalid for integer argument!")


def _enum(option: Option, text: str) -> str:
    if text in dict(option.choices):
        return text
    raise ValueError(f"Cannot find option named '{text}'!")


def _text(_option: Option, text: str) -> str:
    return text


def _features(_option: Option, text: str) -> tuple[str, ...]:
    for name in text.split(","):
        if name not in PREVIEW_FEATURES:
            known = ", ".join(PREVIEW_FEATURES)
            raise ValueError(f"unknown preview feature '{name}'; supported features: {known}")
    return tuple(text.split(","))


_READ = {
    "action": _action,
    "flag": _flag,
    "int": _int,
    "enum": _enum,
    "text": _text,
    "features": _features,
}


# --- files of arguments --------------------------------------------------------------------------


def expanded(arguments: Sequence[str], depth: int = 0) -> list[str]:
    """`arguments` with each `@file` replaced by what the file holds; unreadable ones stay."""
    found: list[str] = []
    for argument in arguments:
        text = _file(argument[1:]) if argument.startswith("@") and depth < _DEEPEST else None
        found += [argument] if text is None else expanded(_words(text), depth + 1)
    return found


def _file(name: str) -> str | None:
    try:
        return Path(name).read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return None


# A backslash protects the next character, inside of quotes as well; a missing quote ends with the
# text.
_DOUBLE, _SINGLE = r'"((?:\\.|[^"\\])*)(?:"|\Z)', r"'((?:\\.|[^'\\])*)(?:'|\Z)"
_PART = re.compile(rf"""\\(.)|{_DOUBLE}|{_SINGLE}|([^\s"'\\]+)""", re.S)


def _words(text: str) -> list[str]:
    """The words of `text` as GNU tools split them: quotes join, a backslash protects."""
    words: list[str] = []
    end = -1  # of the part before, which this one goes on where they touch
    for part in _PART.finditer(text):
        plain = _plain(part)
        if part.start() == end:
            words[-1] += plain
        else:
            words.append(plain)
        end = part.end()
    return words


def _plain(part: re.Match[str]) -> str:
    escaped, double, single, plain = part.groups()
    quoted = double if double is not None else single
    if quoted is not None:
        return re.sub(r"\\(.)", r"\1", quoted, flags=re.S)
    return escaped if escaped is not None else plain
