"""TileIR bytecode and the cuda_tile dialect."""
