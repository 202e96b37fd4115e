"""Tile blocks that several blocks of a cluster work on: how their tiles are cut."""
