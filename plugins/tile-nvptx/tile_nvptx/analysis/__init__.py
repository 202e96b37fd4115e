"""Analyses over what each thread does."""
