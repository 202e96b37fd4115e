"""The layout strategies that ship with tilec."""
