"""Reads tokens of assembly text, and says where something is wrong."""

from __future__ import annotations

import re
from re import Pattern

from tile_core.diagnostics import InputError, SourceLocation

_SPACE = re.compile(r"(?:\s+|//[^\n]*)*")
_WORD = re.compile(r"[A-Za-z_][\w$.]*")
_INTEGER = re.compile(r"-?\d+")
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_ESCAPE = re.compile(r"\\([0-9A-Fa-f]{2}|.)", re.DOTALL)
_PLAIN_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\", '"': '"'}


class TextError(InputError):
    """Assembly that cannot be read; `where` has line and column."""


class Scanner:
    """A position in a text."""

    def __init__(self, text: str, name: str, position: int = 0) -> None:
        self.text = text
        self.position = position
        self._name = name
        self.skip()

    def skip(self) -> None:
        """Skips white space and comments."""
        match = _SPACE.match(self.text, self.position)
        assert match is not None
        self.position = match.end()

    def error(self, message: str, at: int | None = None) -> TextError:
        """An error here, or at another position."""
        position = self.position if at is None else at
        line = self.text.count("\n", 0, position) + 1
        column = position - (self.text.rfind("\n", 0, position) + 1) + 1
        return TextError(message, where=SourceLocation(self._name, line, column))

    def at_end(self) -> bool:
        """Whether nothing is left."""
        return self.position >= len(self.text)

    def starts(self, literal: str) -> bool:
        """Whether `literal` comes next; a word must end where it ends."""
        if not self.text.startswith(literal, self.position):
            return False
        end = self.position + len(literal)
        inside = literal[-1].isalnum() or literal[-1] == "_"
        return not (
            inside
            and end < len(self.text)
            and _WORD.match("a" + self.text[end : end + 1])
            and re.match(r"[\w$.]", self.text[end]) is not None
        )

    def accept(self, literal: str) -> bool:
        """Takes `literal` if it comes next."""
        if not self.starts(literal):
            return False
        self.position += len(literal)
        self.skip()
        return True

    def expect(self, literal: str) -> None:
        """Takes `literal`, which must come next."""
        if not self.accept(literal):
            raise self.error(f"expected '{literal}'")

    def take(self, pattern: Pattern[str], what: str) -> str:
        """Takes what `pattern` matches."""
        found = self.maybe(pattern)
        if found is None:
            raise self.error(f"expected {what}")
        return found

    def maybe(self, pattern: Pattern[str]) -> str | None:
        """Takes what `pattern` matches, if it does."""
        match = pattern.match(self.text, self.position)
        if match is None:
            return None
        self.position = match.end()
        self.skip()
        return match[0]

    def word(self, what: str = "a keyword") -> str:
        """Takes a keyword."""
        return self.take(_WORD, what)

    def integer(self, what: str = "an integer") -> int:
        """Takes an integer."""
        return int(self.take(_INTEGER, what))

    def string(self) -> str:
        """Takes a string literal."""
        match = _STRING.match(self.text, self.position)
        if match is None:
            raise self.error("expected a string")
        self.position = match.end()
        self.skip()

        def unescape(escape: re.Match[str]) -> bytes:
            code = escape[1]
            if len(code) == 2:
                return bytes((int(code, 16),))
            return _PLAIN_ESCAPES.get(code, code).encode()

        out, last, body = b"", 0, match[1]
        for escape in _ESCAPE.finditer(body):
            out += body[last : escape.start()].encode() + unescape(escape)
            last = escape.end()
        return (out + body[last:].encode()).decode("utf-8", "surrogateescape")
