"""A schedule as SVG, and as a page of HTML that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from tile_core.sched.document import Body
from tile_sched.view.lanes import labels, lanes
from tile_sched.view.text import summary, table

_WIDTH, _LANE, _MARGIN, _TOP = 960, 22, 150, 24


def svg(body: Body) -> str:
    """Units over the cycles of one interval; a bar's title names the operation and its cycles."""
    ii = body.schedule.ii
    found, short = lanes(body), labels(body)
    height = _TOP + _LANE * len(found) + 8
    scale = (_WIDTH - _MARGIN - 10) / ii
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        f'font-family="sans-serif" font-size="11">',
        f'<text x="{_MARGIN}" y="14">0</text>'
        f'<text x="{_WIDTH - 10}" y="14" text-anchor="end">{ii}</text>',
    ]
    for lane, (name, bars) in enumerate(found.items()):
        top = _TOP + lane * _LANE
        parts.append(f'<text x="4" y="{top + 14}">{escape(name)}</text>')
        for bar in bars:
            node = body.graph.ops[bar.op]
            left, wide = _MARGIN + bar.first * scale, max(1.0, (bar.last - bar.first) * scale)
            hue = bar.op * 137 % 360
            title = (
                f"{short[bar.op]}: {node.name}, cycles {bar.first} to {bar.last}, "
                f"{bar.stage} iterations ago, {node.where}"
            )
            parts.append(
                f'<rect x="{left:.1f}" y="{top}" width="{wide:.1f}" height="{_LANE - 4}" '
                f'fill="hsl({hue},60%,{75 - 8 * min(bar.stage, 4)}%)" stroke="#444">'
                f"<title>{escape(title)}</title></rect>"
            )
            if wide > 14:
                parts.append(
                    f'<text x="{left + 3:.1f}" y="{top + 13}">{escape(short[bar.op])}</text>'
                )
    return "\n".join([*parts, "</svg>\n"])


def html(bodies: Sequence[Body]) -> str:
    """All bodies: what bounds them, the chart, the table."""
    parts = [
        "<!doctype html><meta charset='utf-8'><title>Schedules</title>",
        "<style>body{font-family:sans-serif;max-width:62em;margin:2em auto}"
        "pre{overflow-x:auto;font-size:12px}</style>",
    ]
    for body in bodies:
        parts.append(f"<h2>{escape(body.name)}</h2><p>{escape(summary(body))}</p>")
        parts.append(svg(body))
        parts.append(f"<pre>{escape(table(body))}</pre>")
    return "\n".join(parts) + "\n"
