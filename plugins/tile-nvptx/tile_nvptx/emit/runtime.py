"""What code may call that is defined nowhere in its module."""

from __future__ import annotations

#: Functions that the CUDA runtime on the device provides; any other undefined one is an error.
DEVICE_RUNTIME = frozenset({"vprintf", "malloc", "free", "__assertfail"})
