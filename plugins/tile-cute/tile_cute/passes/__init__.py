"""Passes over cute."""
