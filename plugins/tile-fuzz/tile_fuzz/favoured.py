"""What `Settings.favour` may name: statements that programs shall have more of."""

from __future__ import annotations

LOOPS, PRODUCTS, LOADS = "loops", "products", "loads"
#: Loops that add up products as large as instructions for matrices take.
MATRICES = "matrices"
#: Loops whose products read what others gave, as attention's do.
CHAINS = "chains"
FAVOURED = (LOOPS, PRODUCTS, LOADS, MATRICES, CHAINS)
#: How much more often a favoured statement is drawn.
MORE = 5
