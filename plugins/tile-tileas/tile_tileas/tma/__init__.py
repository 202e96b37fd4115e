"""Tiles that tensor maps copy (TMA): which may, in which boxes, and where the maps come from."""
