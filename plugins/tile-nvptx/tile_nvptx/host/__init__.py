"""Host code in the cubin: what a launch runs to fill in the tensor maps of a kernel."""
