"""The TileIR bytecode format: reading and writing."""
