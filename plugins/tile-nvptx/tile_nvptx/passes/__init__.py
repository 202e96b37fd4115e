"""Passes of tile-nvptx, a file per pass."""
