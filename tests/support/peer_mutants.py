"""Planted faults in the code of NVIDIA's compiler: one instruction dropped or changed at a time."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from tile_sim import SimError
from tile_sim.peer import Cubin, tileiras

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))

import cases  # pyright: ignore[reportMissingImports]

#: Kernels (examples) with the GPU that they are compiled for.
KERNELS = (
    ("matmul_large_f16", "sm_90"), ("matmul_large_f16", "sm_100"), ("attention_large_f16", "sm_90"),
    ("attention_large_f16", "sm_100"), ("layer_norm_f16", "sm_100"),
)  # fmt: skip
SCHEDULES = (("late", 0), ("early", 0), *(("random", seed) for seed in range(4)))
_STEPS = 60_000

_OTHER_PHASE = r"{ .reg .b32 %mutant; xor.b32 %mutant, \2, 1; \1 %mutant\3 }"
_MORE_BYTES = r"{ .reg .b32 %mutant; add.u32 %mutant, \2, 16; \1 %mutant; }"
_FEWER_BYTES = r"{ .reg .b32 %mutant; sub.u32 %mutant, \2, 16; \1 %mutant; }"
_TRY = r"(mbarrier\.try_wait\.parity\S* %p\d+, \[[^\]]*\],) (%r\d+)(,[^;]*;|;)"
_EXPECT = r"(mbarrier\.arrive\.expect_tx\S* \S+, \[[^\]]*\],) (%r\d+);"
_COMMIT = r"(?:wgmma\.commit_group|tcgen05\.commit|cp\.async\.bulk\.commit_group)[^;]*;"
#: Name, what is looked for, what takes its place.
FAULTS = (
    ("wait dropped", r"mbarrier\.try_wait\.parity\S* (%p\d+), [^;]*;", r"setp.eq.u32 \1, 0, 0;"),
    ("wrong phase", _TRY, _OTHER_PHASE),
    ("arrival dropped", r"mbarrier\.arrive\.shared\S* [^;]*;", ""),
    ("expect_tx dropped", r"mbarrier\.arrive\.expect_tx(\S* \S+, \[[^\]]*\]), %r\d+;",
     r"mbarrier.arrive\1;"),
    ("more bytes expected", _EXPECT, _MORE_BYTES),
    ("fewer bytes expected", _EXPECT, _FEWER_BYTES),
    ("commit dropped", _COMMIT, ""),
    ("group wait dropped", r"(?:wgmma|cp\.async\.bulk)\.wait_group[^;]*;", ""),
    ("load wait dropped", r"tcgen05\.wait::ld[^;]*;", ""),
    ("store wait dropped", r"tcgen05\.wait::st[^;]*;", ""),
    ("proxy fence dropped", r"fence\.proxy\.async[^;]*;", ""),
    ("tcgen05 fence dropped", r"tcgen05\.fence[^;]*;", ""),
    ("wgmma fence dropped", r"wgmma\.fence[^;]*;", ""),
    ("barrier fence dropped", r"fence\.mbarrier_init[^;]*;", ""),
    ("barrier dropped", r"(?:bar|barrier)\.sync[^;]*;", ""),
)  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """A kernel's PTX with one fault; `place` counts the instructions of its kind.

    `trapped` ends the kernel where the fault would be: to see whether it is reached.
    """

    kernel: str
    arch: str
    fault: str
    place: int
    text: str
    trapped: str

    def __str__(self) -> str:
        return f"{self.kernel} {self.arch}: {self.fault} {self.place}"


@cache
def cubin_of(kernel: str, arch: str) -> Cubin:
    return tileiras.find().compile((cases.BYTECODE / f"{kernel}.tileirbc").read_bytes(), arch)


def mutants(kernel: str, arch: str) -> Iterator[Mutant]:
    """The first and the last instruction of each kind that a fault is about."""
    text = cubin_of(kernel, arch).ptx
    for fault, pattern, by in FAULTS:
        found = list(re.finditer(pattern, text))
        for place in sorted({0, len(found) - 1}) if found else ():
            match = found[place]
            before, after = text[: match.start()], text[match.end() :]
            changed = before + match.expand(by) + after
            yield Mutant(kernel, arch, fault, place, changed, before + "trap;" + after)


@cache
def case_of(kernel: str) -> cases.Case:
    """Inputs for one block; products go round their ring of stages more than once."""
    if kernel.startswith("matmul"):
        return cases.matmul(kernel, "float16", 128, 128, 768, (128, 128))
    return cases.case(kernel)


def run(
    kernel: str, arch: str, text: str, schedule: str, seed: int, strict: bool = False
) -> tuple[Any, list[bytes]]:
    """Findings and the arrays after a launch of the example's case, one block of it."""
    cubin = Cubin(cubin_of(kernel, arch).data)
    cubin.__dict__["ptx"] = text
    values = [v.copy() if isinstance(v, np.ndarray) else v for v in case_of(kernel).flat]
    report = cubin.load(arch).launch(
        kernel, (1, 1, 1), None, values, check=True, schedule=schedule, seed=seed,
        max_steps=_STEPS, strict=strict,
    )  # fmt: skip
    return report.findings, [v.tobytes() for v in values if isinstance(v, np.ndarray)]


@cache
def right(kernel: str, arch: str) -> list[bytes]:
    """The arrays after the unchanged kernel, the same under every schedule, with no findings."""
    found = [run(kernel, arch, cubin_of(kernel, arch).ptx, *one) for one in SCHEDULES]
    assert all(not findings and arrays == found[0][1] for findings, arrays in found)
    return found[0][1]


@cache
def strict_findings(kernel: str, arch: str, text: str) -> frozenset[tuple[str, str, str]]:
    """What is found where nothing is forgiven: kind and both places."""
    findings, _ = run(kernel, arch, text, "late", 0, strict=True)
    return frozenset((f.kind, str(f.where), str(f.other)) for f in findings)


def reached(mutant: Mutant) -> bool:
    """Whether the launch executes the place of a fault at all."""
    try:
        run(mutant.kernel, mutant.arch, mutant.trapped, "late", 0)
    except SimError as error:
        return error.kind == "trap"
    return False


def caught(mutant: Mutant) -> str | None:
    """How a fault shows under some schedule: an error, a finding, other numbers; None if not.

    At last, a finding that only `strict` reports, and not about the unchanged code.
    """
    for schedule, seed in SCHEDULES:
        try:
            findings, arrays = run(mutant.kernel, mutant.arch, mutant.text, schedule, seed)
        except SimError as error:
            return f"{schedule}: {error.kind}"
        if findings:
            return f"{schedule}: {findings[0].kind}"
        if arrays != right(mutant.kernel, mutant.arch):
            return f"{schedule}: other numbers"
    before = strict_findings(mutant.kernel, mutant.arch, cubin_of(mutant.kernel, mutant.arch).ptx)
    new = sorted(strict_findings(mutant.kernel, mutant.arch, mutant.text) - before)
    return f"strict: {new[0][0]}" if new else None
