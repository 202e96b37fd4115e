"""A schedule as lanes: one per resource, with what holds it in each cycle of the interval."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.sched.document import Body


@dataclass(frozen=True)
class Bar:
    """`op`, begun `stage` iterations ago, holds a resource in [first, last) of the interval."""

    op: int
    first: int
    last: int
    stage: int


def lanes(body: Body) -> dict[str, list[Bar]]:
    """Resource -> its bars by first cycle; resources in order of how busy they are."""
    ii = body.schedule.ii
    found: dict[str, list[Bar]] = {}
    for op, (node, start) in enumerate(zip(body.graph.ops, body.schedule.start, strict=True)):
        for use in node.footprint:
            first = start + use.at
            while first < start + use.at + use.cycles:
                last = min(start + use.at + use.cycles, (first // ii + 1) * ii)
                bar = Bar(op, first % ii, first % ii + last - first, first // ii)
                found.setdefault(use.resource, []).append(bar)
                first = last
    busy = {name: -sum(bar.last - bar.first for bar in bars) for name, bars in found.items()}
    order = sorted(found, key=lambda name: (busy[name], name))
    return {name: sorted(found[name], key=lambda bar: (bar.first, bar.op)) for name in order}


def labels(body: Body) -> list[str]:
    """A short name for every op that holds anything: a, b, ..., z, aa, ab, ...; "" for others."""
    found, number = [], 0
    for op in body.graph.ops:
        number += bool(op.footprint)
        found.append(_letters(number) if op.footprint else "")
    return found


def _letters(number: int) -> str:
    text = ""
    while number:
        number, rest = divmod(number - 1, 26)
        text = chr(ord("a") + rest) + text
    return text
