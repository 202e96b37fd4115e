"""The nv_tileaa dialect: neutral tiles with explicit memory tokens."""
