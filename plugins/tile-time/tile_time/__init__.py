"""How long a kernel takes on a GPU, without one."""
