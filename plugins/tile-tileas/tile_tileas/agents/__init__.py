"""Kernels whose warps have roles: what an agent must compute by itself, and who does what."""
