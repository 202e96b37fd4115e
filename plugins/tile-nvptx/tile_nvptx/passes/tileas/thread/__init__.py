"""What rules are built from: types, builders, the state of a kernel, shared memory."""
