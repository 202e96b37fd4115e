"""The table of cuTile's samples, and what torch computes beside a simulated GPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from tile_sim.suite.sample_table import Line, as_lines, render


@dataclass(frozen=True)
class Compiled:
    file: str
    error: str = ""


def test_a_difference_within_the_tolerance_is_good() -> None:
    close = Line("FFT", "9.0", "a", share=0.9, largest=1e-6)
    far = Line("FFT", "9.0", "a", share=1.1, largest=2e-6)
    assert (close.good, close.cell()) == (True, "1.0e-06")
    assert (far.good, far.cell()) == (False, "**2.0e-06**")


def test_a_process_that_dies_is_a_failure() -> None:
    output = json.dumps({"name": "a", "error": "", "share": 0.1, "largest": 0.0, "seconds": 2})
    (whole,) = as_lines("FFT", "9.0", output, "a warning", ended=True)
    assert whole.good
    first, second = as_lines("FFT", "9.0", output, "Segmentation fault", ended=False)
    assert first.good
    assert second.error == "Segmentation fault"
    (nothing,) = as_lines("FFT", "9.0", "", "", ended=True)
    assert nothing.error == "ended without a result"


def test_checks_of_an_unchanged_program_are_counted() -> None:
    said = "Correctness check passed\nCorrectness check passed\nmore than 9 s"
    (line,) = as_lines("FFT", "9.0", "", said, ended=False)
    assert line.cell() == "**fails** after 2 checks"


def test_the_table_has_a_row_for_each_input_and_each_sample() -> None:
    lines = [
        Line("FFT", "9.0", "small", share=0.5, largest=1e-6, rtol=1e-3, atol=1e-5),
        Line("FFT", "10.0", "small", share=0.0, largest=0.0, rtol=1e-3, atol=1e-5),
        Line("MoE", "9.0", "", error="CompileError: no"),
        Line("MatMul", "9.0", "", skipped="for 10.0 and later"),
    ]
    kernels = [Compiled("FFT.1"), Compiled("FFT.1"), Compiled("FFT.2", "refused")]
    table = render(lines, kernels, ["9.0", "10.0"])
    assert "| FFT | small | 1.0e-03 of it + 1.0e-05 | 1.0e-06 | 0 |" in table
    assert "- MoE at 9.0: CompileError: no" in table
    assert "- MatMul at 9.0: for 10.0 and later" in table
    assert "| FFT | 2 | 3 | 2 |\n- refused" in table


ADDITION = """
import torch, cuda.tile as ct

@ct.kernel
def add(a, b, c, n: ct.Constant[int]):
    at = (ct.bid(0),)
    ct.store(c, at, ct.load(a, at, (n,)) + ct.load(b, at, (n,)) SIGN)

@ct.kernel
def add_rows(a, b, c, n: ct.Constant[int]):
    at = (ct.bid(0), ct.bid(1))
    ct.store(c, at, ct.load(a, at, (1, n)) + ct.load(b, at, (1, n)))

def vec_add(a, b, gather):
    c = torch.empty_like(a, device="cuda")
    grid = (-(-a.shape[0] // 64),) if a.dim() == 1 else (a.shape[0], -(-a.shape[1] // 64))
    ct.launch(torch.cuda.current_stream(), grid, add if a.dim() == 1 else add_rows, (a, b, c, 64))
    print("something for people")
    return c
"""


@pytest.mark.torch
@pytest.mark.parametrize("sign", ["", "* 1.5"])
def test_a_sample_is_compared_with_the_reference(tmp_path: Path, sign: str) -> None:
    (tmp_path / "VectorAddition.py").write_text(ADDITION.replace("SIGN", sign))
    kept = tmp_path / "kept"
    kept.mkdir()
    command = [sys.executable, "-m", "tile_sim.suite.sample_process", str(tmp_path)]
    done = subprocess.run(
        [*command, "VectorAddition", "--bytecode", str(kept)],
        env={**os.environ, "TILE_SIM_ARCH": "sm_90"}, capture_output=True, text=True, timeout=100,
    )  # fmt: skip
    lines = as_lines("VectorAddition", "9.0", done.stdout, done.stderr, done.returncode == 0)
    assert [line.error for line in lines] == [""] * 4, done.stderr
    assert [line.good for line in lines] == [not sign, not sign, True, True]
    assert len(list(kept.glob("VectorAddition.*.tileirbc"))) >= 2


REFERENCES = """
from tile_sim.cutile import torch_cuda
torch_cuda.install((9, 0))
import torch, torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

torch.manual_seed(0)
# Beside 2**24, a one is lost in f32.
a = torch.tensor([[4096.0, *[1.0] * 62, -4096.0]], dtype=torch.bfloat16)
assert (a @ a.abs().T).item() == 62 and (a @ a.abs().T).dtype == torch.bfloat16
large = 32 * torch.ones(1, 4096, dtype=torch.float16)
assert torch.mm(large, large.T, out_dtype=torch.float32).item() == 4096 * 1024
torch.set_float32_matmul_precision("high")
ties = torch.tensor([[1 + 2**-11, 0.0], [0.0, -1 - 3 * 2**-11]])
assert (ties @ torch.eye(2)).diag().tolist() == [1.0, -1 - 4 * 2**-11]
torch.set_float32_matmul_precision("highest")
assert torch.equal(ties @ torch.eye(2), ties)
x = torch.ones(4096, 8, dtype=torch.bfloat16)
weight = torch.ones(8, dtype=torch.bfloat16, requires_grad=True)
bias = torch.zeros(8, dtype=torch.bfloat16, requires_grad=True)
y = F.layer_norm(x, (8,), weight, bias)
assert y.dtype == torch.bfloat16
y.backward(torch.ones_like(y))
assert bias.grad.tolist() == [4096.0] * 8, bias.grad
q, k, v = (torch.randn(1, 2, 16, 8, dtype=torch.float16, device="cuda") for _ in range(3))
with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
    got = F.scaled_dot_product_attention(q, k, v, is_causal=True)
scores = (q.double() @ k.double().mT / 8**0.5).masked_fill(
    torch.ones(16, 16).tril() == 0, float("-inf"))
torch.testing.assert_close(got.double(), scores.softmax(-1) @ v.double(), atol=1e-3, rtol=1e-3)
"""


@pytest.mark.torch
def test_references_are_summed_as_on_a_gpu() -> None:
    done = subprocess.run([sys.executable, "-c", REFERENCES], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
