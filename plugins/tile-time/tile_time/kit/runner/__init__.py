"""What runs on the machine with the GPU: it is copied into the kit, and imports NumPy alone.

`cuda.bindings` is loaded by name when a part starts; PyTorch, CuPy and Triton where they are found.
"""
