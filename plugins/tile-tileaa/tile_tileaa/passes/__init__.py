"""Passes of tile-tileaa, a file per pass."""
