"""convert-cute-and-cute-nvgpu-to-llvm: layouts and views to addresses and instructions."""
