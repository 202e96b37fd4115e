"""Rules of `convert-tileas-to-llvm`, a file per family of operations."""
