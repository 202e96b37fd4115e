"""What CUTLASS orchestrates kernels with: pipes, barriers, tile schedulers.

`pipes`, `schedules` and `records` say what they mean, in arithmetic that works on numbers of Python
and on values of generated code alike: what is tested here is what `convert-pipeline-to-nvvm` makes.
`model` runs pipes under all interleavings. `dialect` holds the operations; only it knows MLIR.
"""
