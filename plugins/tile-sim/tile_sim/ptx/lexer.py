"""Tokens of PTX text (PTX ISA, "Syntax")."""

from __future__ import annotations

import bisect
import re
from typing import NamedTuple

from tile_sim.errors import SimError, Where

_TOKEN = re.compile(
    r"""
    (?P<skip>[ \t\r\n]+|//[^\n]*|/\*.*?\*/)
  | (?P<num>0[fF][0-9a-fA-F]{8}(?![0-9a-fA-F])
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
    pos, text = 0, source.text
    match = _TOKEN.match
    while pos < len(text):
        found = match(text, pos)
        if found is None:
            raise SimError("syntax", f"unexpected character {text[pos]!r}", source.where(pos))
        kind = found.lastgroup
        if kind == "dot" and found[0] == ".nv_intermediate_source_section":
            found = _EMBEDDED.match(text, pos)
            if found is None:
                raise SimError("syntax", "an embedded source without end", source.where(pos))
            pos = found.end()
            continue
        if kind != "skip":
            tokens.append(Token(str(kind), found[0], pos))
        pos = found.end()
    tokens.append(Token("end", "", len(text)))
    return tokens
