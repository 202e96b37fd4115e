"""A plugin of tilec that is not part of it."""
