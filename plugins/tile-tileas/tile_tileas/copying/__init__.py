"""Which way each tile is copied between memory and the block, and why not another."""
