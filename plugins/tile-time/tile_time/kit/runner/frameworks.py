"""What others' libraries take for the same work: cuBLAS and SDPA by PyTorch, Triton, CuPy.

Each is imported by the function that needs it; that it is missing is a result, not an error.
"""
# pyright: reportMissingImports=false

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .launching import FEWEST, MOST, WARM, summary

Sizes = Mapping[str, Any]
_L2_WORDS = 64 << 20


def timed(work: Callable[[], Any], seconds: float) -> dict[str, Any]:
    """As ours is timed: events of PyTorch's current stream around single calls, L2 flushed."""
    import torch

    other = torch.empty(_L2_WORDS, dtype=torch.int32, device="cuda")
    for _ in range(WARM):
        work()
    torch.cuda.synchronize()
    end, us = time.perf_counter() + seconds, []
    while len(us) < MOST and (len(us) < FEWEST or time.perf_counter() < end):
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        other.zero_()
        first.record()
        work()
        last.record()
        last.synchronize()
        us.append(first.elapsed_time(last) * 1000)
    return {**summary(us), "version": str(torch.__version__)}


def _torch_type(name: str) -> Any:
    import torch

    return {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}[name]


def _random(kind: str, *shape: int) -> Any:
    import torch

    generator = torch.Generator(device="cuda").manual_seed(1)
    made = torch.randint(-127, 128, shape, device="cuda", generator=generator) / 128
    return made.to(_torch_type(kind))


def cublas(sizes: Sizes) -> Callable[[], Any]:
    """A product by torch.mm."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = True
    a = _random(sizes["kind"], sizes["m"], sizes["k"])
    b = _random(sizes["kind"], sizes["k"], sizes["n"])
    out = torch.empty(sizes["m"], sizes["n"], dtype=a.dtype, device="cuda")
    return lambda: torch.mm(a, b, out=out)


def sdpa(sizes: Sizes) -> Callable[[], Any]:
    """Attention by torch.nn.functional.scaled_dot_product_attention."""
    import torch

    shape = 1, sizes["heads"], sizes["length"], sizes["depth"]
    q, k, v = (_random("f16", *shape) for _ in range(3))
    function = torch.nn.functional.scaled_dot_product_attention
    return lambda: function(q, k, v, is_causal=sizes["causal"])


def softmax(sizes: Sizes) -> Callable[[], Any]:
    import torch

    x = _random(sizes["kind"], sizes["rows"], sizes["columns"])
    return lambda: torch.softmax(x, -1)


def layer_norm(sizes: Sizes) -> Callable[[], Any]:
    import torch

    x = _random(sizes["kind"], sizes["rows"], sizes["columns"])
    w, b = (_random(sizes["kind"], sizes["columns"]) for _ in range(2))
    return lambda: torch.nn.functional.layer_norm(x, (sizes["columns"],), w, b)


def copy(sizes: Sizes) -> Callable[[], Any]:
    import torch

    x = _random(sizes["kind"], sizes["rows"], sizes["columns"])
    y = torch.empty_like(x)
    return lambda: y.copy_(x)


def transpose(sizes: Sizes) -> Callable[[], Any]:
    import torch

    x = _random(sizes["kind"], sizes["rows"], sizes["columns"])
    y = torch.empty(sizes["columns"], sizes["rows"], dtype=x.dtype, device="cuda")
    return lambda: y.copy_(x.T)


def cupy_copy(sizes: Sizes) -> Callable[[], Any]:
    """A copy by CuPy, in PyTorch's stream, so that the same events time it."""
    import cupy
    import torch

    x = cupy.zeros((sizes["rows"], sizes["columns"]), cupy.float16)
    y = cupy.empty_like(x)
    stream = cupy.cuda.ExternalStream(torch.cuda.current_stream().cuda_stream)

    def work() -> None:
        with stream:
            cupy.copyto(y, x)

    return work


def triton_softmax(sizes: Sizes) -> Callable[[], Any]:
    """A row a program, as Triton's tutorial on fused softmax describes it."""
    from . import triton_kernels

    return triton_kernels.softmax(_random(sizes["kind"], sizes["rows"], sizes["columns"]))


def triton_matmul(sizes: Sizes) -> Callable[[], Any]:
    from . import triton_kernels

    a = _random(sizes["kind"], sizes["m"], sizes["k"])
    return triton_kernels.matmul(a, _random(sizes["kind"], sizes["k"], sizes["n"]))


FUNCTIONS: dict[str, Callable[[Sizes], Callable[[], Any]]] = {
    "cublas": cublas, "sdpa": sdpa, "softmax": softmax, "layer_norm": layer_norm, "copy": copy,
    "transpose": transpose, "cupy_copy": cupy_copy, "triton_softmax": triton_softmax,
    "triton_matmul": triton_matmul,
}  # fmt: skip
NAMES: Sequence[str] = tuple(FUNCTIONS)
