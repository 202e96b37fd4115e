"""Broken programs give a SimError, never another exception or a hang."""

from __future__ import annotations

import random
import re
import signal
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tile_sim import Module, SimError

CUDA = Path(__file__).parent / "cuda"
TOKEN = re.compile(r"[\w%$.:]+|\s+|[^\w\s]")


def _ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


Launch = tuple[str, tuple[int, int, int], Callable[[], list], int]
KERNELS: dict[str, Launch] = {
    "saxpy": ("saxpy", (64, 1, 1), lambda: [100, 2.0, _ones(100), _ones(100)], 0),
    "matmul": (
        "matmul", (16, 16, 1), lambda: [_ones(16, 16), _ones(16, 16), _ones(16, 16), 16, 16, 16], 0,
    ),
    "reduce": ("reduce_sum", (96, 1, 1), lambda: [_ones(300), 300, _ones(1)], 0),
    "sort": ("bitonic", (32, 1, 1), lambda: [np.arange(64, dtype=np.uint32)], 256),
    "softmax": ("softmax", (64, 1, 1), lambda: [_ones(1, 70), _ones(1, 70), 70], 0),
    "pipeline": ("groups", (32, 1, 1), lambda: [_ones(300), _ones(300), 300], 0),
    "tensor_sm80": (
        "mma_tile", (32, 1, 1),
        lambda: [_ones(16, 8).view(np.float16), _ones(16, 4).view(np.float16), _ones(16, 8), 8, 16],
        0,
    ),
}  # fmt: skip


def _damage_text(rng: random.Random, text: str) -> str:
    tokens = TOKEN.findall(text)
    for _ in range(rng.randint(1, 3)):
        at, kind = rng.randrange(len(tokens)), rng.random()
        if kind < 0.3:
            del tokens[at]
        elif kind < 0.6:
            tokens[at] = rng.choice(tokens)
        elif kind < 0.8:
            tokens.insert(at, rng.choice(tokens))
        elif kind < 0.9:
            tokens = tokens[: at + 1]
        else:
            tokens[at] = tokens[at][::-1]
    return "".join(tokens)


def _damage_program(rng: random.Random, text: str) -> str:
    lines = text.split("\n")
    code = [
        i for i, line in enumerate(lines)
        if line.startswith("\t") and ";" in line and ".reg" not in line and ".param" not in line
    ]  # fmt: skip
    for _ in range(rng.randint(1, 2)):
        at, kind = rng.choice(code), rng.random()
        if kind < 0.3:
            lines[at] = ""
        elif kind < 0.5:
            lines[at] = lines[rng.choice(code)]
        elif registers := re.findall(r"%[a-z]+\d+", lines[at]):
            old = rng.choice(registers)
            new = re.sub(r"\d+", str(rng.randint(1, 12)), old)
            lines[at] = lines[at].replace(old, new, 1)
    return "\n".join(lines)


def _parse_damaged(seed: int) -> None:
    rng = random.Random(seed)
    text = (CUDA / f"{rng.choice(sorted(KERNELS))}.ptx").read_text()
    try:
        Module(_damage_text(rng, text))
    except SimError as error:
        assert str(error)  # noqa: PT017


def _run_damaged(seed: int) -> None:
    rng = random.Random(seed)
    name = rng.choice(sorted(KERNELS))
    entry, block, args, shared = KERNELS[name]
    text = _damage_program(rng, (CUDA / f"{name}.ptx").read_text())
    schedule, check = rng.choice(["late", "early", "random"]), rng.random() < 0.4
    try:
        Module(text).launch(
            entry, (1, 1, 1), block, args(), shared_bytes=shared, schedule=schedule, check=check,
            max_steps=2000,
        )  # fmt: skip
    except SimError as error:
        assert str(error)  # noqa: PT017


@pytest.mark.parametrize("first", range(0, 80, 20))
def test_some(first: int) -> None:
    for seed in range(first, first + 20):
        _parse_damaged(seed)
        _run_damaged(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 9000, 500))
def test_many(first: int) -> None:
    for seed in range(first, first + 500):
        _parse_damaged(seed)
        _run_damaged(seed)


def test_a_loop_without_end(kernel: Callable[..., Module]) -> None:
    module = kernel("LOOP: add.u32 %r1, %r1, 1; bra LOOP;")
    with pytest.raises(SimError) as caught:
        module.launch("k", (1, 1, 1), (32, 1, 1), [], max_steps=500)
    assert caught.value.kind == "timeout"
    assert "CTA 0 warps 0 (32 threads): polls at add.u32" in str(caught.value)


SPIN = """
    LOOP: ld.acquire.gpu.global.u32 %r2, [flag];
    add.u32 %r1, %r1, 1;
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra LOOP;
"""


def test_a_flag_that_nobody_sets(kernel: Callable[..., Module]) -> None:
    """The counter makes it look alive: it is ended after a bound, or by Ctrl-C, and says where."""
    flag = np.zeros(1, np.uint32)
    module = kernel(SPIN, "u64 flag")
    with pytest.raises(SimError) as caught:
        module.launch("k", (1, 1, 1), (32, 1, 1), [flag], max_steps=500)
    assert caught.value.kind == "timeout"
    assert "polls at ld.acquire.gpu.global.u32" in str(caught.value)
    alarm = signal.signal(signal.SIGALRM, signal.default_int_handler)  # as Ctrl-C
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with pytest.raises(SimError) as caught:
            module.launch("k", (1, 1, 1), (32, 1, 1), [flag])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, alarm)
    assert caught.value.kind == "interrupted"
    assert caught.value.where is not None
