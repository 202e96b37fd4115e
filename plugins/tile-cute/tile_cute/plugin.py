"""What tile-cute adds to tilec; hooks return lazy references."""

from tile_core.hookspecs import SPEC_VERSION

TILE_SPEC_VERSION = SPEC_VERSION
