"""Functions that kernels call, as MLIR text."""
