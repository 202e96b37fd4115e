"""Pipes as plain data: what agents do with them, and whether that can work. No MLIR here, but in
`extract`.
"""
