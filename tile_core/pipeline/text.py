"""Pipelines as one line of text, the way MLIR writes them.

    builtin.module(gpu.module(func.func(tileas-slicing{count=2},mlir:cse)))

Upstream passes keep their prefix `mlir:`. `*` in front of an anchor means "at any depth".
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tile_core.diagnostics import ConfigurationError, nearest
from tile_core.explain import message_of
from tile_core.nesting import MAX_DEPTH, too_deep
from tile_core.options import Spelled
from tile_core.pipeline.build import ANY, ROOT
from tile_core.pipeline.resolve import NATIVE, PassCall, SegmentCall
from tile_core.registry import Registry


def as_text(segments: Sequence[SegmentCall]) -> str:
    """The pipeline of `segments` as text."""
    parts: list[str] = []
    for segment in segments:
        body = ",".join(str(call) for call in segment.passes)
        if not body:
            continue
        for name in reversed(segment.nest):
            body = f"{name}({body})"
        parts.append(body)
    return f"{ROOT}({','.join(parts)})"


def parse_text(text: str, registry: Registry) -> tuple[SegmentCall, ...]:
    """The segments that `text` spells.

    Raises:
        ConfigurationError: it spells none.
    """
    if too_deep(text) is not None:
        raise ConfigurationError(f"the pipeline is nested deeper than {MAX_DEPTH} levels")
    reader = _Reader(text, registry)
    segments = reader.pipeline()
    return tuple(
        SegmentCall(f"p{i}", nest, tuple(calls)) for i, (nest, calls) in enumerate(segments)
    )


def parse_list(text: str, registry: Registry) -> tuple[SegmentCall, ...]:
    """The segments of a plain list `pass,pass{opt=1}`; each pass finds its own anchors."""
    reader = _Reader(text, registry)
    segments: list[SegmentCall] = []
    for at, call in enumerate(reader.calls_only()):
        nest: tuple[str, ...] = ()
        if not call.name.startswith(NATIVE):
            anchor = registry.load("pass", call.name).anchor
            nest = () if anchor in (ROOT, ANY) else (ANY, anchor)
        segments.append(SegmentCall(f"p{at}", nest, (call,)))
    return tuple(segments)


_NAME = re.compile(r"[A-Za-z_][\w.:-]*|\*")


class _Reader:
    def __init__(self, text: str, registry: Registry) -> None:
        self._text = text.strip()
        self._at = 0
        self._registry = registry
        self._nest: tuple[str, ...] = ()

    def pipeline(self) -> list[tuple[tuple[str, ...], list[PassCall]]]:
        found: list[tuple[tuple[str, ...], list[PassCall]]] = []
        root = self._name()
        if root != ROOT or self._peek() != "(":
            raise self._error(f"a pipeline starts with '{ROOT}('")
        self._list((), found)
        if self._at != len(self._text):
            raise self._error("unexpected text after the pipeline")
        return found

    def calls_only(self) -> list[PassCall]:
        calls = [self._call(self._name())]
        while self._peek() == ",":
            self._at += 1
            calls.append(self._call(self._name()))
        if self._at != len(self._text):
            raise self._error("expected ',' between passes")
        return calls

    def _list(
        self, nest: tuple[str, ...], found: list[tuple[tuple[str, ...], list[PassCall]]]
    ) -> None:
        self._take("(")
        self._nest = nest or (ROOT,)
        while self._peek() != ")":
            name = self._name()
            if self._peek() == "(":
                self._list((*nest, name), found)
                self._nest = nest or (ROOT,)
            else:
                call = self._call(name)
                if found and found[-1][0] == nest:
                    found[-1][1].append(call)
                else:
                    found.append((nest, [call]))
            if self._peek() != ")":
                self._take(",")
        self._take(")")

    def _call(self, name: str) -> PassCall:
        if not name.startswith(NATIVE) and not self._registry.has("pass", name):
            known = message_of(self._registry, f"there is no pass '{name}'")
            said = f"unknown pass '{name}' at {self._level()}"
            if known is not None:
                raise self._error(said, known.do, known.why)
            close = nearest(name, self._registry.names("pass"))
            hint = f"did you mean '{close}'?" if close else f"MLIR's own passes: {NATIVE}{name}"
            raise self._error(said, hint)
        if self._peek() != "{":
            return PassCall(name, name, {})
        body = self._braces(name)
        if name.startswith(NATIVE):
            return PassCall(f"{name}{{{body}}}", name, {})
        options = {}
        for word in _words(body):
            key, sign, value = word.partition("=")
            options[key] = Spelled(value if sign else "true")
        return PassCall(name, name, options)

    def _braces(self, name: str) -> str:
        start, depth = self._at + 1, 0
        while self._at < len(self._text):
            depth += {"{": 1, "}": -1}.get(self._text[self._at], 0)
            self._at += 1
            if depth == 0:
                return self._text[start : self._at - 1].strip()
        raise self._error(f"invalid option block for pass '{name}': '{{' is not closed")

    def _name(self) -> str:
        self._peek()
        match = _NAME.match(self._text, self._at)
        if match is None:
            raise self._error("expected a pass or an operation name")
        self._at = match.end()
        return match[0]

    def _peek(self) -> str:
        while self._at < len(self._text) and self._text[self._at].isspace():
            self._at += 1
        return self._text[self._at] if self._at < len(self._text) else ""

    def _take(self, wanted: str) -> None:
        if self._peek() != wanted:
            raise self._error(f"expected '{wanted}'")
        self._at += 1

    def _level(self) -> str:
        """What the passes here run on, by the nest that is open."""
        return f"the level of '{self._nest[-1]}'" if self._nest else "the level of its own anchor"

    def _error(self, message: str, hint: str | None = None, *notes: str) -> ConfigurationError:
        shown = f"{self._text[: self._at]}<here>{self._text[self._at :]}"
        return ConfigurationError(f"{message} in pass pipeline", notes=(*notes, shown), hint=hint)


def _words(body: str) -> list[str]:
    """`a=1 b={x y} c="s t"` -> its options; braces and quotes hold spaces together."""
    found = re.findall(r"(?:[^\s{}\"']|\{[^{}]*\}|\"[^\"]*\"|'[^']*')+", body)
    return [re.sub(r"=([\"'])(.*)\1$", r"=\2", word) for word in found]
