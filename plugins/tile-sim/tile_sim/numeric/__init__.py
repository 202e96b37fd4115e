"""Arithmetic that NumPy has not: fused, directed-rounded, in formats of few bits."""
