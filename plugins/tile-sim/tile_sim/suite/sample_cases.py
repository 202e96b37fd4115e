"""Small inputs for the samples of the cuTile repository, and what NumPy makes of them in f64.

A case is given a sample's module and yields what its functions returned beside the reference. The
tolerances are those that the samples themselves use, or tighter ones; sizes are no multiples of the
tiles wherever a sample allows that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]

Array = np.ndarray
#: Half a unit in the last place of a type, beside which sums of f32 are off a little.
_ROUNDING = {torch.float32: 2.0**-24, torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8}


@dataclass(frozen=True)
class Result:
    """`got` is a tensor; it agrees where |got - wanted| <= atol + rtol |wanted| everywhere."""

    name: str
    got: Any
    wanted: Array
    rtol: float
    atol: float

    def error(self) -> float:
        """The largest difference."""
        return float(np.max(np.abs(_exact(self.got) - self.wanted), initial=0.0))

    def share(self) -> float:
        """The largest part of what is tolerated that a difference makes up: at most 1 agrees."""
        got = _exact(self.got)
        if got.shape != self.wanted.shape or not np.isfinite(got).all():
            return math.inf
        off, allowed = np.abs(got - self.wanted), self.atol + self.rtol * np.abs(self.wanted)
        shares = np.divide(off, allowed, out=np.where(off > 0, np.inf, 0.0), where=allowed > 0)
        return float(np.max(shares, initial=0.0))


@dataclass(frozen=True)
class Sample:
    """`file` lies in the folder of samples; `least` is the lowest compute capability it is for."""

    file: str
    cases: Callable[[Any], Iterator[Result]]
    least: tuple[int, int] = (8, 0)


def _exact(tensor: Any) -> Array:
    """A tensor in f64."""
    if isinstance(tensor, np.ndarray):
        return tensor.astype(np.float64)
    kind = torch.complex128 if tensor.is_complex() else torch.float64
    return tensor.detach().to(kind).numpy()


def _normal(*shape: int, dtype: Any = torch.float32, scale: float = 1.0, mean: float = 0.0) -> Any:
    return (torch.randn(shape) * scale + mean).to(dtype)


def _tf32(tensor: Any) -> Array:
    """A tensor of f32 with the ten bits of mantissa that a product keeps, in f64."""
    bits = tensor.numpy().view(np.uint32)
    odd = (bits >> 13) & 1
    return (((bits + 0xFFF + odd) >> 13) << 13).astype(np.uint32).view(np.float32).astype(float)


def _sum_error(terms: int, size: float) -> float:
    """What a sum of f32 in some order may be off: it grows with the root of the terms' number."""
    return 4 * math.sqrt(terms) * 2.0**-23 * size


# --- memory ---------------------------------------------------------------------------------------


def vector_addition(sample: Any) -> Iterator[Result]:
    for shape in ((3000,), (50, 100)):
        for gather in (False, True):
            a, b = _normal(*shape), _normal(*shape)
            name = f"{'x'.join(map(str, shape))} f32, {'gather' if gather else 'tiles'}"
            wanted = _exact(a) + _exact(b)
            yield Result(name, sample.vec_add(a, b, gather), wanted, 2.0**-24, 0.0)


def transpose(sample: Any) -> Iterator[Result]:
    for shape, dtype in (((200, 130), torch.float16), ((100, 77), torch.float32)):
        x = _normal(*shape, dtype=dtype)
        name = f"{shape[0]}x{shape[1]} {_name(dtype)}"
        yield Result(name, sample.cutile_transpose(x), _exact(x).T, 0.0, 0.0)


def quickstart(sample: Any) -> Iterator[Result]:
    sample.test()  # compares by itself
    size = 4096
    a, b, c = np.random.rand(size), np.random.rand(size), np.zeros(size)
    sample.ct.launch(sample.cp.cuda.get_current_stream(), (16,), sample.vector_add, (a, b, c, 256))
    yield Result(f"{size} f64", c, a + b, 0.0, 0.0)


# --- products -------------------------------------------------------------------------------------


def _product(name: str, got: Any, a: Array, b: Array) -> Result:
    """A product whose operands are exact in f64, summed in f32 and rounded to the result's type."""
    terms = a.shape[-1]
    atol = _sum_error(terms, float(np.std(a) * np.std(b)) * math.sqrt(terms))
    return Result(name, got, a @ b, _ROUNDING[got.dtype] * 1.01, atol)


def matmul(sample: Any) -> Iterator[Result]:
    a, b = _normal(200, 150, dtype=torch.float16), _normal(150, 300, dtype=torch.float16)
    yield _product("200x150x300 f16", sample.cutile_matmul(a, b), _exact(a), _exact(b))
    a, b = _normal(200, 150, dtype=torch.bfloat16), _normal(150, 300, dtype=torch.bfloat16)
    got = sample.cutile_matmul(a, b, persistent=True)
    yield _product("200x150x300 bf16, persistent", got, _exact(a), _exact(b))
    a, b = _normal(100, 70), _normal(70, 50)
    for persistent in (False, True):
        name = "100x70x50 tf32" + (", persistent" if persistent else "")
        got = sample.cutile_matmul(a, b, persistent=persistent)
        yield _product(name, got, _tf32(a), _tf32(b))


def batch_matmul(sample: Any) -> Iterator[Result]:
    kinds = [(torch.float16, torch.float16)]
    if torch.cuda.get_device_capability() >= (8, 9):  # before, cuTile refuses the type
        kinds.append((torch.float8_e4m3fn, torch.float32))
    for dtype, out in kinds:
        a, b = _normal(2, 130, 140, dtype=dtype), _normal(2, 140, 260, dtype=dtype)
        name = f"2x130x140x260 {_name(dtype)} to {_name(out)}"
        yield _product(name, sample.bmm(a, b, out), _exact(a), _exact(b))


def all_gather_matmul(sample: Any) -> Iterator[Result]:
    """The kernel alone: two inputs of one device stand for those of two."""
    parts, w = [_normal(130, 100) for _ in range(2)], _normal(100, 70)
    m, n, tile = len(parts[0]), w.shape[1], 64
    rows = -(-m // tile) * tile  # of each peer in the result, whose tiles do not straddle two
    out = torch.zeros(2 * rows, n)
    grid = (out.shape[0] // tile, -(-n // tile))
    arguments = (parts, w, out, tile, tile, 32)
    sample.ct.launch(torch.cuda.current_stream(), grid, sample.gather_matmul_kernel, arguments)
    got = torch.cat([out[:m], out[rows : rows + m]])
    wanted = np.concatenate([_tf32(part) for part in parts])
    yield _product("kernel alone: 2 of 130x100x70 tf32", got, wanted, _tf32(w))


def block_scaled_matmul(sample: Any) -> Iterator[Result]:
    m = n = k = 256
    (a, a_scale), (b, b_scale) = (sample.block_quantize(torch.rand(rows, k), 32) for rows in (m, n))
    wanted = _scaled(a, a_scale) @ _scaled(b, b_scale).T
    plain = (a_scale, b_scale.T)
    swizzled = (sample.swizzle_32_4_4(a_scale), sample.swizzle_32_4_4(b_scale))
    for name, (left, right) in (("scales in rows", plain), ("scales swizzled", swizzled)):
        got = sample.cutile_block_scaled_matmul(a, left, b.T, right)
        yield Result(f"{m}x{k}x{n} e4m3, {name}", got, wanted, 1e-3, 1e-4)


def _scaled(values: Any, scales: Any) -> Array:
    return _exact(values) * np.repeat(_exact(scales.to(torch.float32)), 32, axis=1)


# --- networks -------------------------------------------------------------------------------------


def attention(sample: Any) -> Iterator[Result]:
    wholes = ((128, 128, 1, 128), (96, 160, 2, 64))
    for queries, keys, group, tile in wholes:
        for causal in (False, True):
            q, k, v = _heads(queries, keys, 4, group)
            got = sample.cutile_fmha(
                q, k, v, tile_m=tile, tile_n=tile, causal=causal, query_group_size=group
            )
            name = f"{queries} queries, {keys} keys, group {group}{', causal' if causal else ''}"
            yield Result(name, got, _attention(q, k, v, group, causal), 1e-3, 1e-3)
    q, k, v = _heads(128, 128, 1, 1)
    best = sample.tune_cutile_fmha(q, k, v, 0.125, causal=True)
    tuned = sample.fmha_kernel.replace_hints(num_ctas=best.num_ctas, occupancy=best.occupancy)
    got = sample.cutile_fmha(
        q, k, v, tile_m=best.TILE_M, tile_n=best.TILE_N, causal=True, kernel=tuned
    )
    yield Result("128 queries, tuned", got, _attention(q, k, v, 1, True), 1e-3, 1e-3)


def _heads(queries: int, keys: int, heads: int, group: int) -> tuple[Any, Any, Any]:
    others = (1, heads // group, keys, 64)
    shapes = ((1, heads, queries, 64), others, others)
    q, k, v = (_normal(*shape, dtype=torch.float16) for shape in shapes)
    return q, k, v


def _attention(q: Any, k: Any, v: Any, group: int, causal: bool) -> Array:
    queries, keys, values = _exact(q), _exact(k), _exact(v)
    keys, values = np.repeat(keys, group, axis=1), np.repeat(values, group, axis=1)
    scores = queries @ keys.swapaxes(-1, -2) / math.sqrt(queries.shape[-1])
    if causal:
        scores = np.where(np.tri(*scores.shape[-2:], dtype=bool), scores, -np.inf)
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights @ values / weights.sum(axis=-1, keepdims=True)


def layer_norm(sample: Any) -> Iterator[Result]:
    for dtype in (torch.bfloat16, torch.float32):
        rows, columns, eps = 70, 1100, 1e-5
        x = _normal(rows, columns, dtype=dtype, scale=0.5, mean=-2.3).requires_grad_(True)
        weight, bias = (_normal(columns, dtype=dtype).requires_grad_(True) for _ in range(2))
        slope = _normal(rows, columns, dtype=dtype, scale=0.1)
        y = sample.cutile_layer_norm(x, weight, bias, eps)
        y.backward(slope)
        got = (y, x.grad, weight.grad, bias.grad)
        wanted = _layer_norm(_exact(x), _exact(weight), _exact(bias), _exact(slope), eps)
        tolerance = 1e-2 if dtype == torch.bfloat16 else 1e-5
        for name, one, reference in zip(("y", "dx", "dw", "db"), got, wanted, strict=True):
            title = f"{rows}x{columns} {_name(dtype)}: {name}"
            yield Result(title, one, reference, tolerance, tolerance)


def _layer_norm(x: Array, w: Array, b: Array, dy: Array, eps: float) -> Sequence[Array]:
    """The result and the slopes by x, w and b."""
    centred = x - x.mean(axis=1, keepdims=True)
    scale = 1 / np.sqrt((centred**2).mean(axis=1, keepdims=True) + eps)
    unit, inner = centred * scale, dy * w
    along = (inner * unit).mean(axis=1, keepdims=True)
    dx = (inner - inner.mean(axis=1, keepdims=True) - unit * along) * scale
    return unit * w + b, dx, (dy * unit).sum(axis=0), dy.sum(axis=0)


def mixture_of_experts(sample: Any) -> Iterator[Result]:
    tokens, hidden, experts, inner, top = 20, 96, 5, 128, 2
    dtype = torch.bfloat16
    x = _normal(tokens, hidden, dtype=dtype, scale=0.5)
    w1 = _normal(experts, 2 * inner, hidden, dtype=dtype, scale=0.1)
    w2 = _normal(experts, hidden, inner, dtype=dtype, scale=0.1)
    chosen = torch.stack([torch.randperm(experts)[:top] for _ in range(tokens)])
    weights = torch.softmax(torch.randn(tokens, top), dim=-1).to(dtype)
    wanted = _experts(_exact(x), _exact(w1), _exact(w2), _exact(weights), chosen.numpy())
    for tile in (16, 64):
        got = sample.cutile_moe(x, w1, w2, weights, chosen, tile, tile, 32)
        name = f"{tokens} tokens, {experts} experts, tiles of {tile}"
        yield Result(name, got, wanted, 1e-2, 1e-2)


def _experts(x: Array, w1: Array, w2: Array, weights: Array, chosen: Array) -> Array:
    out = np.zeros_like(x)
    for token, rank in np.ndindex(chosen.shape):
        expert = chosen[token, rank]
        gate, up = np.split(w1[expert] @ x[token], 2)
        out[token] += weights[token, rank] * (w2[expert] @ (gate / (1 + np.exp(-gate)) * up))
    return out


def fourier(sample: Any) -> Iterator[Result]:
    for batch, factors, packing in ((2, (2, 2, 2), 2), (4, (4, 8, 2), 16)):
        size = math.prod(factors)
        x = torch.randn(batch, size, dtype=torch.complex64)
        got = sample.cutile_fft(x, factors, packing)
        name = f"{batch} of {size} complex f32"
        yield Result(name, got, np.fft.fft(_exact(x)), 1.3e-6, 1e-5)


def _name(dtype: Any) -> str:
    return str(dtype).rsplit(".", 1)[-1].replace("bfloat", "bf").replace("float", "f")


SAMPLES: Mapping[str, Sample] = {
    "VectorAddition": Sample("VectorAddition.py", vector_addition),
    "VectorAdd_quickstart": Sample("quickstart/VectorAdd_quickstart.py", quickstart),
    "Transpose": Sample("Transpose.py", transpose),
    "FFT": Sample("FFT.py", fourier),
    "MatMul": Sample("MatMul.py", matmul),
    "BatchMatMul": Sample("BatchMatMul.py", batch_matmul),
    "AllGatherMatmul": Sample("AllGatherMatmul.py", all_gather_matmul),
    "BlockScaledMatMul": Sample("BlockScaledMatMul.py", block_scaled_matmul, (10, 0)),
    "AttentionFMHA": Sample("AttentionFMHA.py", attention),
    "LayerNorm": Sample("LayerNorm.py", layer_norm),
    "MoE": Sample("MoE.py", mixture_of_experts),
}


def stand_in_for_cupy() -> ModuleType:
    """What the quickstart asks of CuPy, whose arrays are NumPy's here."""
    module = ModuleType("cupy")
    current = lambda: torch.cuda.current_stream()  # noqa: E731
    module.__dict__.update(
        random=np.random, zeros_like=np.zeros_like, asnumpy=np.asarray,
        cuda=type("cuda", (), {"get_current_stream": staticmethod(current)}),
    )  # fmt: skip
    return module
