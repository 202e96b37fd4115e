"""Ways through shared memory as buffers and copies: a file per family of operations."""
