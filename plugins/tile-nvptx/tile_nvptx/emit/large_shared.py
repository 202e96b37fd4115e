"""Shared memory beyond what ptxas takes as a static array.

ptxas refuses static arrays above 48 KiB for targets without architecture-specific features. Their
kernels are assembled with an array of unknown size (`.extern .shared`), and the cubin is told
afterwards how large it is: the size of section `.nv.shared.<kernel>` is what a launch sets aside,
whether ptxas wrote it or not. The code is the same either way.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from tile_core.diagnostics import CompileError
from tile_core.elf import NOBITS, Elf, with_size
from tile_nvptx.emit.ptx_text import entries_of
from tile_nvptx.emit.ptxas import KernelResources

_ARRAY = re.compile(
    r"^[ \t]*(?:// demoted variable\n[ \t]*)?\.shared (?P<align>\.align \d+) \.b8 "
    r"(?P<name>[\w$]+)\[(?P<size>\d+)\];\n",
    re.MULTILINE,
)
_DYNAMIC = re.compile(r"^[ \t]*\.extern \.shared [^;]*?([\w$]+)\[\];", re.MULTILINE)
_FIRST_ENTRY = re.compile(r"^(?:\.visible |\.weak )?\.entry ", re.MULTILINE)


@dataclass(frozen=True)
class LargeShared:
    """PTX whose array has no size, and the size in bytes of that array for each kernel."""

    ptx: str
    sizes: dict[str, int]

    def counted(self, kernel: KernelResources) -> KernelResources:
        """What ptxas said of a kernel, and the array that it did not see."""
        size = kernel.static_shared + self.sizes.get(kernel.name, 0)
        return replace(kernel, static_shared=size)


def without_large_arrays(ptx: str, limit: int) -> LargeShared:
    """`ptx` with static shared arrays of more than `limit` bytes made external.

    Raises:
        CompileError: a kernel has an array of that kind already; external arrays all begin at the
            same place.
    """
    sizes: dict[str, int] = {}
    arrays = [found for found in _ARRAY.finditer(ptx) if int(found["size"]) > limit]
    dynamic = _DYNAMIC.findall(ptx) if arrays else []
    for array in arrays:
        external = f".extern .shared {array['align']} .b8 {array['name']}[];\n"
        for entry, body in _bodies(ptx):
            if _uses(body, array["name"]):
                if any(_uses(body, name) for name in dynamic):
                    raise CompileError(
                        f"kernel '{entry}' has {array['size']} bytes of shared memory of fixed "
                        f"size, more than {limit}, beside dynamic shared memory: take all of it "
                        "from that"
                    )
                sizes[entry] = sizes.get(entry, 0) + int(array["size"])
        ptx = ptx.replace(array[0], "", 1)
        first = _FIRST_ENTRY.search(ptx)
        at = first.start() if first else len(ptx)
        ptx = ptx[:at] + external + ptx[at:]
    return LargeShared(ptx, sizes)


def _uses(body: str, name: str) -> bool:
    return re.search(rf"\b{re.escape(name)}\b", body) is not None


def _bodies(ptx: str) -> list[tuple[str, str]]:
    starts = [match.start() for match in _FIRST_ENTRY.finditer(ptx)]
    ends = [*starts[1:], len(ptx)][: len(starts)]
    texts = [ptx[a:b] for a, b in zip(starts, ends, strict=True)]
    return list(zip(entries_of(ptx), texts, strict=True))


def with_shared_sizes(cubin: bytes, sizes: dict[str, int]) -> bytes:
    """`cubin` with `sizes[kernel]` bytes more of shared memory for each kernel.

    Raises:
        CompileError: a kernel has no section of shared memory.
    """
    if not sizes:
        return cubin
    left = dict(sizes)
    for section in Elf(cubin).sections:
        kernel = section.name.removeprefix(".nv.shared.")
        if section.type == NOBITS and kernel != section.name and kernel in left:
            cubin = with_size(cubin, section, section.size + left.pop(kernel))
    if left:
        raise CompileError(f"ptxas made no shared memory for kernel '{min(left)}'")
    return cubin
