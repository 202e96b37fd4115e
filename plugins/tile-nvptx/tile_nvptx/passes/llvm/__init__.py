"""Passes over MLIR's llvm dialect, right before LLVM IR is made.

None of them is in a level: what the compiler itself makes leaves them nothing to do (measured,
docs/benchmarks.md). They are for code in the llvm dialect that comes from elsewhere.
"""
