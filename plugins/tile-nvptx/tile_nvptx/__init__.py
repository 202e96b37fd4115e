"""Lowering of distributed tiles to NVVM, PTX and cubin."""
