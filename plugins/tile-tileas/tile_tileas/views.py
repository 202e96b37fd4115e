"""Views of `tilec explore`: the layouts of a program, and the schedules of its loops."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tile_core.explore.record import Exploration, View

_LAYOUT = re.compile(r'#nv_tileas\.layout<"([^"]+)">')
#: Pictures of larger tiles have cells that nobody can read.
_MOST_ELEMENTS = 4096
_MOST_LAYOUTS = 12


def layouts(explored: Exploration) -> Iterator[View]:
    """Every layout of registers and buffers, drawn."""
    from tile_cute.draw import draw, to_svg
    from tile_cute.errors import LayoutError

    texts = dict.fromkeys(
        text for stage in explored.stages.values() for text in _LAYOUT.findall(stage)
    )
    for text in list(texts)[:_MOST_LAYOUTS]:
        shape = text.rpartition(":")[2].strip()
        count = 1
        for extent in shape.split("x"):
            count *= int(extent)
        picture = ""
        if count <= _MOST_ELEMENTS:
            try:
                picture = to_svg(draw(text))
            except LayoutError as error:
                text = f"{text}\n{error}"
        yield View(f"layout of {shape}", text, picture)


def schedules(explored: Exploration) -> Iterator[View]:
    """What the pipeline's scheduler makes of each loop."""
    from tile_tileas.cli.schedule import shown

    scheduler = explored.given["scheduler"] or "cost"
    for name, text in shown(explored, explored.source, explored.target, scheduler):
        yield View(f"schedule of {name} by {scheduler}", text)
