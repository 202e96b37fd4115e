"""torch's CUDA interface on the CPU: tensors for the "cuda" device become CPU tensors.

Test programs that say `device="cuda"` run unchanged beside a simulated GPU: its memory is that of
the process, its streams are synchronous. What has no meaning here (CUDA graphs) is an error.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import torch  # pyright: ignore[reportMissingImports]
from torch.overrides import TorchFunctionMode  # pyright: ignore[reportMissingImports]

_CPU = torch.device("cpu")
_STREAM_HANDLE = 0x51
# Moving a tensor to a device; the device may be the first positional argument.
_MOVES = {torch.Tensor.to, torch.Tensor.cuda}
_PRODUCTS = {
    torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__, torch.mm, torch.Tensor.mm,
    torch.bmm, torch.Tensor.bmm, torch.addmm, torch.baddbmm,
}  # fmt: skip


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
        if func is torch.Tensor.cuda:
            return args[0]
        if func is torch.Tensor.to and len(args) > 1 and is_cuda(args[1]):
            args = (args[0], _CPU, *args[2:])
        if func in _PRODUCTS and torch.backends.cuda.matmul.fp32_precision == "tf32":
            args = tuple(_as_tf32(arg) for arg in args)
        return func(*args, **kwargs)


def _as_tf32(value: Any) -> Any:
    """An operand as the tensor cores see it when torch lets products of f32 use tf32."""
    if not isinstance(value, torch.Tensor) or value.dtype != torch.float32:
        return value
    with torch._C.DisableTorchFunction():
        bits = value.contiguous().view(torch.int32)
        return ((bits + 0x1000) & ~0x1FFF).view(torch.float32)


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


class NotSimulated:
    """What needs a real device."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise NotImplementedError("CUDA graphs are not available on a simulated device")


class _Device:
    """The state behind `torch.cuda`."""

    def __init__(self, capability: tuple[int, int]) -> None:
        self.capability = capability
        self.default = Stream()
        self.current = self.default

    def properties(self, *args: Any) -> SimpleNamespace:
        major, minor = self.capability
        return SimpleNamespace(
            name=f"simulated sm_{major}{minor}", major=major, minor=minor,
            multi_processor_count=132, total_memory=1 << 34, L2_cache_size=50 << 20,
            warp_size=32, max_threads_per_multi_processor=2048,
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
            "CUDAGraph": NotSimulated, "graph": NotSimulated,
        }  # fmt: skip


def _nothing(*args: Any, **kwargs: Any) -> None:
    """Streams are synchronous and there is one device."""


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
