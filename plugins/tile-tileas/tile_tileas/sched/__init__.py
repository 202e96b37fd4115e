"""The schedulers that ship with tilec, and the facts they work with."""
