"""Remarks on what ptxas made of a kernel: its registers, what it spilt, how many blocks fit."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tile_core.remarks import Remark
from tile_core.target import Target
from tile_nvptx.emit.ptxas import KernelResources

_ENTRY_BLOCK = re.compile(r"\.entry ([\w$]+)\([^)]*\)[^{]*?\.reqntid (\d+)(?:, (\d+))?(?:, (\d+))?")


def block_sizes(ptx: str) -> dict[str, int]:
    """Kernel -> threads of its block, where the PTX fixes them."""
    found = {}
    for match in _ENTRY_BLOCK.finditer(ptx):
        x, y, z = (int(part or 1) for part in match.groups()[1:])
        found[match[1]] = x * y * z
    return found


def remarks_on(kernel: KernelResources, target: Target, threads: int | None) -> Iterator[Remark]:
    """What the kernel takes of an SM; a missed remark where registers did not suffice."""
    plain = Remark("analysis", "cubin", "", kernel.name, "Registers of a thread")
    facts: dict[str, object] = {
        "Registers": f"{kernel.registers} of {target.max_registers}",
        "Shared memory": f"{kernel.static_shared} of {target.max_shared} bytes",
    }
    if threads:
        blocks, limit = _blocks(kernel, target, threads)
        facts["Blocks of an SM"] = f"at most {blocks}, by {limit}"
        facts["Warps of an SM"] = (
            f"{blocks * threads // target.warp_size} of {target.max_warps_per_sm}"
        )
    yield plain.described({"category": "occupancy", "name": "Registers", "facts": facts})
    if kernel.spill_stores or kernel.spill_loads:
        yield Remark("missed", "cubin", "", kernel.name, "Registers were spilled").described({
            "category": "occupancy",
            "name": "Spill",
            "facts": {
                "Spill stores": f"{kernel.spill_stores} bytes",
                "Spill loads": f"{kernel.spill_loads} bytes",
            },
            "reasons": [f"a thread has {kernel.registers} registers, and its tiles want more"],
            "hint": "smaller tiles, more warps (--set num-warps=8), or a lower occupancy hint",
        })  # fmt: skip


_LOSS = re.compile(r"Potential Performance Loss: (?P<why>.*) in the function '(?P<kernel>[^']+)'")


def losses_in(log: str) -> Iterator[Remark]:
    """What ptxas says that it could not do well: products that do not overlap, above all."""
    for match in _LOSS.finditer(log):
        yield Remark(
            "missed", "cubin", "", match["kernel"], f"ptxas: {match['why']}"
        ).described({"category": "tensorcore", "name": "Serialized"})  # fmt: skip


def _blocks(kernel: KernelResources, target: Target, threads: int) -> tuple[int, str]:
    """Blocks that an SM holds at most, and the resource that there are no more."""
    limits = [
        (target.max_warps_per_sm * target.warp_size // threads, "warps"),
        (target.registers // (max(1, kernel.registers) * threads), "registers"),
    ]
    if kernel.static_shared:
        limits.append((target.max_shared // kernel.static_shared, "shared memory"))
    return min(limits)
