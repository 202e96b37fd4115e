"""Pictures of layouts, fragments, swizzles and bank conflicts."""

from tile_cute.draw.grid import Grid
from tile_cute.draw.render import to_html, to_svg, to_terminal
from tile_cute.draw.sources import draw

__all__ = ["Grid", "draw", "to_html", "to_svg", "to_terminal"]
