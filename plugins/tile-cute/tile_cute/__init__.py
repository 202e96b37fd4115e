"""Layout algebra, swizzles and the registries of copy and MMA atoms."""
