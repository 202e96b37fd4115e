"""Instructions that multiply tiles: which one a product runs on, and where its operands lie."""
