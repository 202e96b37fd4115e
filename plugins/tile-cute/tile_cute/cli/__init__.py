"""Verbs of `tilec`."""
