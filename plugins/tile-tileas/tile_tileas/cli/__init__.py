"""Commands of tile-tileas."""
