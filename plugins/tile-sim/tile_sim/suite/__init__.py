"""Runs test suites of cuTile programs, written for a GPU, through the compiler and the simulator.

`plugin` is a pytest plugin for one process and target, `torch_cuda` puts torch's CPU behind its
CUDA interface, `runner` spreads a suite over processes, `causes` and `report` say what failed.
"""
