"""torch's CUDA interface on the CPU: tensors for the "cuda" device become CPU tensors.

Test programs that say `device="cuda"` run unchanged beside a simulated GPU: its memory is that of
the process, its streams are synchronous.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch.nn.attention import (  # pyright: ignore[reportMissingImports]
    SDPBackend,
    sdpa_kernel,
)
from torch.overrides import TorchFunctionMode  # pyright: ignore[reportMissingImports]

from tile_sim.chip import chip_of
from tile_sim.cutile import cuda_math

_CPU = torch.device("cpu")
_STREAM_HANDLE = 0x51
_MEMORY = 1 << 34  # bytes
_LANES = 32


def is_cuda(device: Any) -> bool:
    """Whether a `device=` argument means a GPU."""
    if isinstance(device, torch.device):
        return device.type == "cuda"
    return isinstance(device, str) and device.split(":")[0] == "cuda"


class OnCpu(TorchFunctionMode):
    """Makes torch's functions use the CPU where they are told to use a GPU."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if is_cuda(kwargs.get("device")):
            kwargs["device"] = _CPU
        adapted = _ADAPTED.get(func)
        return func(*args, **kwargs) if adapted is None else adapted(func, args, kwargs)


def _move(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A tensor told to go to a device."""
    if func is torch.Tensor.cuda:
        return args[0]
    if len(args) > 1 and is_cuda(args[1]):
        args = (args[0], _CPU, *args[2:])
    return func(*args, **kwargs)


def _product(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Products with tf32 operands, or of narrow types into f32, which only GPUs have.

    Those of narrow types are summed in f64 and rounded once: a GPU's sums in f32 have another order
    than the CPU's, and neither is right where tests compare small differences of large terms.
    """
    out = kwargs.pop("out_dtype", None)
    if torch.backends.cuda.matmul.fp32_precision == "tf32":
        args = tuple(_as_tf32(arg) for arg in args)
    if out is None and _is_narrow(args[0]) and kwargs.get("out") is None:
        out = args[0].dtype
    if out is None:
        return func(*args, **kwargs)
    wide = torch.float64 if out.is_floating_point else out
    return func(*_cast(args, wide), **_cast(kwargs, wide)).to(out)


def _is_narrow(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype in (torch.float16, torch.bfloat16)


def _cast(values: Any, dtype: Any) -> Any:
    """Arguments, by place or by name, with their tensors of floats, or of integers, in `dtype`."""
    if isinstance(values, dict):
        return {name: _cast(value, dtype) for name, value in values.items()}
    if isinstance(values, tuple):
        return tuple(_cast(value, dtype) for value in values)
    if not isinstance(values, torch.Tensor):
        return values
    same_kind = values.is_floating_point() == dtype.is_floating_point
    return values.to(dtype) if same_kind else values


def _in_f32(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What GPUs sum in f32 and CPUs in the type of the operands, forwards or backwards."""
    if not _is_narrow(args[0]):
        return func(*args, **kwargs)
    result = func(*_cast(args, torch.float32), **_cast(kwargs, torch.float32))
    return result.to(args[0].dtype)


def _attention(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Attention by its definition, whichever of a GPU's kernels the program has asked for."""
    with sdpa_kernel(SDPBackend.MATH):
        return _in_f32(func, args, kwargs)


def _as_tf32(value: Any) -> Any:
    """An operand as the tensor cores see it when torch lets products of f32 use tf32.

    Ties go to even, as in cuTile's own conversion: its samples expect both to agree closely.
    """
    if not isinstance(value, torch.Tensor) or value.dtype != torch.float32:
        return value
    bits = value.contiguous().view(torch.int32)
    return ((bits + 0xFFF + ((bits >> 13) & 1)) & ~0x1FFF).view(torch.float32)


def _function(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function as CUDA's library computes it: in f32, unless the tensor is f64."""
    source = args[0]
    if kwargs or source.dtype in _KEPT or source.numel() > _MOST_ELEMENTS:
        return func(*args, **kwargs)
    result = torch.from_numpy(cuda_math.evaluate(func.__name__, source.float().numpy()))
    return result.to(source.dtype if source.is_floating_point() else torch.get_default_dtype())


def _magnitude(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return args[0].clone() if args[0].dtype == torch.bool else func(*args, **kwargs)


def _lies_on_a_gpu(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    return True


# In larger tensors nobody compares bits, and the simulator takes its time.
_MOST_ELEMENTS = 1 << 14
_KEPT = {torch.float64, torch.complex64, torch.complex128}


def _both(*names: str) -> list[Any]:
    """Functions as such, and as methods of tensors."""
    places = (torch, torch.Tensor)
    return [getattr(place, name) for name in names for place in places if hasattr(place, name)]


# What the CPU does not do as a GPU does.
_ADAPTED: dict[Any, Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]] = {
    **dict.fromkeys([torch.Tensor.to, torch.Tensor.cuda], _move),
    **dict.fromkeys(_both("matmul", "__matmul__", "mm", "bmm", "addmm", "baddbmm"), _product),
    **dict.fromkeys(_both(*cuda_math.FUNCTIONS), _function),
    **dict.fromkeys([torch.layer_norm, torch.nn.functional.layer_norm], _in_f32),
    torch.nn.functional.scaled_dot_product_attention: _attention,
    **dict.fromkeys(_both("abs"), _magnitude),
    torch.Tensor.is_cuda.__get__: _lies_on_a_gpu,
}


class Stream:
    """A stream that is always at its end."""

    cuda_stream = _STREAM_HANDLE
    stream_id, device_index, device_type = 0, 0, 1

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.device = torch.device("cuda", 0)

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    def synchronize(self, *args: Any) -> None:
        """Nothing is outstanding."""

    wait_stream = wait_event = record_event = synchronize

    def query(self) -> bool:
        return True


class Event:
    """A point in time."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.at = 0.0

    def record(self, *args: Any) -> None:
        self.at = time.perf_counter()

    def synchronize(self, *args: Any) -> None:
        """It has already passed."""

    wait = synchronize

    def query(self) -> bool:
        return True

    def elapsed_time(self, end: Event) -> float:
        """Milliseconds."""
        return (end.at - self.at) * 1000


class Graph:
    """A CUDA graph of launches: what torch itself computes while it is captured, runs at once."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.launches: list[Callable[[], None]] = []

    def replay(self) -> None:
        for launch in self.launches:
            launch()


@contextmanager
def _capture(graph: Graph, *args: Any, **kwargs: Any) -> Iterator[None]:
    from tile_sim.cutile import _SESSION as session  # noqa: N811

    session.begin_capture()
    try:
        yield
    finally:
        graph.launches = session.end_capture()


class _Device:
    """The state behind `torch.cuda`."""

    def __init__(self, capability: tuple[int, int]) -> None:
        self.capability = capability
        self.default = Stream()
        self.current = self.default

    def properties(self, *args: Any) -> SimpleNamespace:
        (major, minor), chip = self.capability, chip_of(self.capability)
        return SimpleNamespace(
            name=f"simulated sm_{major}{minor}", major=major, minor=minor,
            multi_processor_count=int(chip.sms), L2_cache_size=int(chip.l2),
            total_memory=_MEMORY, warp_size=_LANES,
            max_threads_per_multi_processor=int(chip.warps) * _LANES,
        )  # fmt: skip

    @contextmanager
    def stream(self, stream: Stream | None) -> Iterator[None]:
        before, self.current = self.current, stream or self.current
        try:
            yield
        finally:
            self.current = before

    @contextmanager
    def device(self, *args: Any) -> Iterator[None]:
        yield

    def replacements(self) -> dict[str, Any]:
        """What stands for the attributes of `torch.cuda`."""
        return {
            "is_available": lambda: True, "is_initialized": lambda: True, "init": _nothing,
            "device_count": lambda: 1, "current_device": lambda: 0, "set_device": _nothing,
            "get_device_capability": lambda *args: self.capability,
            "get_device_properties": self.properties,
            "get_device_name": lambda *args: self.properties().name,
            "synchronize": _nothing, "empty_cache": _nothing, "is_bf16_supported": lambda: True,
            "current_stream": lambda *args: self.current,
            "default_stream": lambda *args: self.default,
            "Stream": Stream, "Event": Event, "stream": self.stream, "device": self.device,
            "CUDAGraph": Graph, "graph": _capture,
            "manual_seed": _seed, "manual_seed_all": _seed,
            "memory_allocated": _no_bytes, "max_memory_allocated": _no_bytes,
            "memory_reserved": _no_bytes, "max_memory_reserved": _no_bytes,
            "reset_peak_memory_stats": _nothing,
        }  # fmt: skip


def _nothing(*args: Any, **kwargs: Any) -> None:
    """Streams are synchronous and there is one device."""


def _seed(seed: int) -> None:
    """Random numbers for the "cuda" device are the CPU's."""
    torch.default_generator.manual_seed(int(seed))


def _no_bytes(*args: Any, **kwargs: Any) -> int:
    """Tensors are in the memory of the process, of which nobody keeps count."""
    return 0


def _in_threads(mode: Callable[[], TorchFunctionMode]) -> None:
    """Modes belong to a thread: enter one in every thread that starts."""
    original = threading.Thread.run

    def run(self: threading.Thread) -> None:
        with mode():
            original(self)

    setattr(threading.Thread, "run", run)  # noqa: B010


def install(capability: tuple[int, int]) -> None:
    """Put the CPU behind `torch.cuda`, for the rest of the process."""
    for name, value in _Device(capability).replacements().items():
        setattr(torch.cuda, name, value)
    _in_threads(OnCpu)
    OnCpu().__enter__()
