"""Tokens of PTX text (PTX ISA, "Syntax")."""

from __future__ import annotations

import bisect
import re
from typing import NamedTuple

from tile_sim.errors import SimError, Where

#: Possessive: what follows does not match sooner where less is skipped.
_SKIPPED = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*+", re.DOTALL)
_TOKEN = re.compile(
    _SKIPPED.pattern
    + r"""
    (?:(?P<num>0[fF][0-9a-fA-F]{8}(?![0-9a-fA-F])
      |0[dD][0-9a-fA-F]{16}(?![0-9a-fA-F])
      |0[xX][0-9a-fA-F]+U?
      |0[bB][01]+U?
      |\d+\.\d+(?:[eE][+-]?\d+)?
      |\d+[eE][+-]?\d+
      |\d+U?)
  | (?P<dot>\.[A-Za-z0-9_$]+(?:::[A-Za-z0-9_$]+)*)
  | (?P<id>[A-Za-z_$%][\w$]*)
  | (?P<str>"[^"\n]*")
  | (?P<op><<|>>|<=|>=|==|!=|&&|\|\||[{}()\[\],;:+\-*/!|@<>=&~^?])
  | (?P<end>\Z))
    """,
    re.VERBOSE | re.DOTALL,
)


# Not PTX: texts of the program before it was PTX, which tileiras adds behind the kernels.
_EMBEDDED = re.compile(
    r"\.nv_intermediate_source_section\s*\{(?:\s*\.code_block\s*\{.*?\.source_end\s*\})*\s*\}",
    re.DOTALL,
)


class Token(NamedTuple):
    """`kind` is `num`, `dot`, `id`, `str`, `op` or `end`; `pos` is an offset into the text."""

    kind: str
    text: str
    pos: int


class Source:
    """The text, and the way from an offset to a line and a column."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0] + [m.end() for m in re.finditer("\n", text)]

    def where(self, pos: int, source: str | None = None) -> Where:
        line = bisect.bisect_right(self._starts, pos)
        return Where(line, pos - self._starts[line - 1] + 1, source)

    def line(self, pos: int) -> str:
        """The text of the line that holds `pos`, stripped."""
        start = self.text.rfind("\n", 0, pos) + 1
        stop = self.text.find("\n", pos)
        return self.text[start : stop if stop >= 0 else None].strip()


def tokenize(source: Source) -> list[Token]:
    """All tokens, closed by one `end` token.

    Raises SimError (`syntax`) at the first character that starts no token.
    """
    tokens: list[Token] = []
    pos: int | None = 0
    while pos is not None:
        pos = _read(source, pos, tokens)
    return tokens


def _read(source: Source, pos: int, tokens: list[Token]) -> int | None:
    """Append the tokens from `pos` on; where to go on behind an embedded source, None at the end.

    Tokens are made as tuples are, which takes half the time.
    """
    make, append = tuple.__new__, tokens.append
    for found in _TOKEN.finditer(source.text, pos):
        if found.start() != pos:
            break
        kind = found.lastgroup or ""
        word, pos = found[kind], found.end()
        if word == ".nv_intermediate_source_section":
            embedded = _EMBEDDED.match(source.text, pos - len(word))
            if embedded is None:
                where = source.where(pos - len(word))
                raise SimError("syntax", "an embedded source without end", where)
            return embedded.end()
        append(make(Token, (kind, word, pos - len(word))))
        if kind == "end":
            return None
    raise _unexpected(source, pos)


def _unexpected(source: Source, pos: int) -> SimError:
    """No token begins at `pos`, or behind the space and the comments there."""
    skipped = _SKIPPED.match(source.text, pos)
    at = skipped.end() if skipped else pos
    return SimError("syntax", f"unexpected character {source.text[at]!r}", source.where(at))
