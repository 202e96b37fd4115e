"""From syntax to executable code: names, blocks, their order, decoding."""
