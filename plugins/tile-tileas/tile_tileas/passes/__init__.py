"""Passes of tile-tileas, a file per pass."""
