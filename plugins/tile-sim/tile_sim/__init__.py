"""A simulator of PTX that runs compiled kernels with no GPU."""
