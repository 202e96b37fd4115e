"""Analyses over nv_tileaa and nv_tileas functions."""
