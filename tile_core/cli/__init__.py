"""The command line of tilec: a thin module per command."""
