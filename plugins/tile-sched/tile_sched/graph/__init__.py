"""Algorithms on dependence graphs."""
