"""A language server for Tile IR text, textual MLIR and pipeline files (`tilec lsp`)."""
