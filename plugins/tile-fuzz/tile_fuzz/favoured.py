"""What `Settings.favour` may name: statements that programs shall have more of."""

from __future__ import annotations

LOOPS, PRODUCTS, LOADS = "loops", "products", "loads"
#: Loops that add up products as large as instructions for matrices take.
MATRICES = "matrices"
#: Loops that add up such products whose operands have a scale for each block.
SCALES = "scales"
#: Loops whose products read what others gave, as attention's do.
CHAINS = "chains"
#: What tunes code: clusters, warps and occupancy of kernels, latency and copies of loads.
HINTS = "hints"
FAVOURED = (LOOPS, PRODUCTS, LOADS, MATRICES, SCALES, CHAINS, HINTS)
#: How much more often a favoured statement is drawn.
MORE = 5
