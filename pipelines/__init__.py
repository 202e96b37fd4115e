"""Pipelines of the -O levels, as TOML."""
