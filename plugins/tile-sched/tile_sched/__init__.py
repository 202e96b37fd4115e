"""Schedulers: plain graphs in, plain schedules out; no MLIR."""
