"""From the last MLIR to a cubin: LLVM IR text, PTX, ptxas.

In call order: `llvm_ir` (with `guards`, `debug_info`, `intrinsic_calls` and `llvm_compat`), `ptx`
(with `pool` on the caller's side and `worker`, `codegen`, `libdevice` inside the worker process),
`ptx_text`, `cubin` (with `ptxas`). `toolchain` finds ptxas and libdevice for all of them, and
`checks` tells `tilec doctor` what it found.
"""
