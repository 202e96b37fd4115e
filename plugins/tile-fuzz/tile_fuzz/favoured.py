"""What `Settings.favour` may name: statements that programs shall have more of."""

from __future__ import annotations

LOOPS, PRODUCTS, LOADS = "loops", "products", "loads"
FAVOURED = (LOOPS, PRODUCTS, LOADS)
#: How much more often a favoured statement is drawn.
MORE = 5
