"""The schedulers, one per file."""
