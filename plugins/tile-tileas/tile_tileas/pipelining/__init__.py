"""Loops whose loads run ahead: what may, how far, and the loop that comes of it."""
