"""Which targets have which instructions: tables, by the name of an intrinsic, an operation or PTX.

From the "Target ISA Notes" of the PTX ISA's sections, and held against ptxas for every target
(`tests/unit/tile_nvptx/test_floors.py`). The first row that matches decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

from tile_core.target import Target


@dataclass(frozen=True)
class Floor:
    """What starts with `prefix` (or matches it, as a pattern) needs a target that `holds` takes."""

    prefix: str
    needs: str
    holds: Callable[[Target], bool]


def _since(sm: int) -> tuple[str, Callable[[Target], bool]]:
    return f"sm_{sm}", lambda target: target.sm >= sm


def _one_of(needs: str, *chips: str) -> tuple[str, Callable[[Target], bool]]:
    return needs, lambda target: target.chip in chips


def _specific(sm: int) -> tuple[str, Callable[[Target], bool]]:
    needs = f"an architecture-specific target from sm_{sm}a on"
    return needs, lambda target: target.sm >= sm and target.chip[-1] in "af"


_TENSOR_MEMORY = _one_of(
    "sm_100a, sm_103a or sm_110a",
    "sm_100a", "sm_100f", "sm_103a", "sm_103f", "sm_110a", "sm_110f",
)  # fmt: skip
_WGMMA = _one_of("sm_90a", "sm_90a")
_BLOCK_SCALE = _one_of("sm_120a or sm_121a", "sm_120a", "sm_121a")
_REDUX_FLOAT = _STOCHASTIC = _one_of(
    "sm_100a or sm_103a", "sm_100a", "sm_100f", "sm_103a", "sm_103f"
)

#: Of LLVM intrinsics, behind `llvm.nvvm.`.
INTRINSICS: tuple[Floor, ...] = (
    Floor("wgmma.", *_WGMMA),
    Floor("tcgen05.", *_TENSOR_MEMORY),
    Floor("setmaxnreg.", *_specific(90)),
    Floor("mma.block.scale.", *_BLOCK_SCALE),
    Floor("mma.sp.block.scale.", *_BLOCK_SCALE),
    Floor("cp.async.bulk.", *_since(90)),
    Floor("cp.reduce.async.bulk", *_since(90)),
    Floor("prefetch.tensormap", *_since(90)),
    Floor("stmatrix.sync.aligned.m16n8", *_specific(100)),
    Floor("stmatrix.", *_since(90)),
    Floor("ldmatrix.sync.aligned.m16n16", *_specific(100)),
    Floor("ldmatrix.sync.aligned.m8n16", *_specific(100)),
    Floor("barrier.cluster.", *_since(90)),
    Floor("mapa", *_since(90)),
    Floor("getctarank", *_since(90)),
    Floor("elect.sync", *_since(90)),
    Floor("griddepcontrol.", *_since(90)),
    Floor("fence.mbarrier_init", *_since(90)),
    Floor("fence.proxy.alias", *_since(70)),
    Floor("fence.proxy.", *_since(90)),
    Floor("fence.sc.cluster", *_since(90)),
    Floor("fence.acquire.", *_since(90)),
    Floor("fence.release.", *_since(90)),
    Floor("clusterlaunchcontrol.", *_since(100)),
    Floor("tensormap.replace.", *_specific(90)),
    Floor("mbarrier.expect.tx", *_since(90)),
    Floor("mbarrier.complete.tx", *_since(90)),
    Floor("mbarrier.arrive.expect.tx", *_since(90)),
    Floor("mbarrier.arrive.drop.expect.tx", *_since(90)),
    Floor("mbarrier.try.wait", *_since(90)),
    Floor("redux.sync.f", *_REDUX_FLOAT),
    Floor("redux.sync.", *_since(80)),
    Floor("mbarrier.", *_since(80)),
    Floor("cp.async.", *_since(80)),
)

#: Of operations, behind `nvvm.`.
OPERATIONS: tuple[Floor, ...] = (
    Floor("wgmma.", *_WGMMA),
    Floor("tcgen05.", *_TENSOR_MEMORY),
    Floor("setmaxregister", *_specific(90)),
    Floor("mma.block_scale", *_BLOCK_SCALE),
    Floor("mma.sp.block_scale", *_BLOCK_SCALE),
    Floor("cp.async.bulk.", *_since(90)),
    Floor("cp.reduce.async.bulk", *_since(90)),
    Floor("stmatrix", *_since(90)),
    Floor("cluster.", *_since(90)),
    Floor("mapa", *_since(90)),
    Floor("elect.sync", *_since(90)),
    Floor("griddepcontrol", *_since(90)),
    Floor("fence.mbarrier.init", *_since(90)),
    Floor("fence.proxy", *_since(90)),
    Floor("fence.sc.cluster", *_since(90)),
    Floor("clusterlaunchcontrol.", *_since(100)),
    Floor("st.bulk", *_since(100)),
    Floor("tensormap.replace", *_specific(90)),
    Floor("mbarrier.expect_tx", *_since(90)),
    Floor("mbarrier.complete_tx", *_since(90)),
    Floor("mbarrier.arrive.expect_tx", *_since(90)),
    Floor("mbarrier.arrive_drop.expect_tx", *_since(90)),
    Floor("mbarrier.try_wait", *_since(90)),
    Floor("convert.f32x2.to.f8x2", *_since(89)),
    Floor("convert.f16x2.to.f8x2", *_since(89)),
    Floor("convert.f8x2.to.f16x2", *_since(89)),
    Floor("convert.f32x2.to.f6x2", *_specific(100)),
    Floor("convert.f32x2.to.f4x2", *_specific(100)),
    Floor("convert.f6x2.", *_specific(100)),
    Floor("convert.f4x2.", *_specific(100)),
    Floor("convert.f32x4.", *_STOCHASTIC),
    Floor("redux.sync", *_since(80)),
    Floor("mbarrier.", *_since(80)),
    Floor("cp.async.", *_since(80)),
)

#: Of PTX, as patterns: what inline code may hold.
PTX: tuple[Floor, ...] = (
    Floor(r"wgmma\.", *_WGMMA),
    Floor(r"tcgen05\.", *_TENSOR_MEMORY),
    Floor(r"setmaxnreg\.", *_specific(90)),
    Floor(r"mma\.sync\.\S*kind::", *_BLOCK_SCALE),
    Floor(r"mma\.(?:sp\S*\.)?sync\.\S*\.e[45]m[23]\.", *_since(89)),
    Floor(r"mma\.sync\.\S*m16n8k\d+\S*\.f64\.f64", *_since(90)),
    Floor(r"cp\.(?:reduce\.)?async\.bulk", *_since(90)),
    Floor(r"ldmatrix\.\S*(?:m16n16|m8n16)", *_specific(100)),
    Floor(r"stmatrix\.\S*m16n8", *_specific(100)),
    Floor(r"stmatrix\.", *_since(90)),
    Floor(r"mbarrier\.try_wait", *_since(90)),
    Floor(r"mbarrier\.(?:arrive(?:_drop)?\.)?(?:expect_tx|complete_tx)", *_since(90)),
    Floor(r"mbarrier\.\S*[.:]cluster", *_since(90)),
    # With a count: `noComplete` has always had one.
    Floor(
        r"mbarrier\.arrive(?:_drop)?(?:\.(?!noComplete)[\w:]+)*\.b64\s+\S+,\s*\[[^\]]*\]\s*,",
        *_since(90),
    ),
    Floor(r"fence\.mbarrier_init", *_since(90)),
    Floor(r"fence\.(?:acq_rel|sc)\.cluster", *_since(90)),
    Floor(r"fence\.(?:acquire|release)\.", *_since(90)),
    Floor(r"prefetch\.(?:\w+\.)?tensormap", *_since(90)),
    Floor(r"tensormap\.cp_fenceproxy", *_since(90)),
    Floor(r"getctarank", *_since(90)),
    Floor(r"isspacep\.shared::cluster", *_since(90)),
    Floor(r"st\.bulk", *_since(100)),
    Floor(r"barrier\.cluster\.", *_since(90)),
    Floor(r"mapa\.", *_since(90)),
    Floor(r"griddepcontrol\.", *_since(90)),
    Floor(r"multimem\.", *_since(90)),
    Floor(r"elect\.sync", *_since(90)),
    Floor(r"(?:st|red)\.async\.", *_since(90)),
    Floor(r"fence\.proxy\.(?:async|tensormap)", *_since(90)),
    Floor(r"clusterlaunchcontrol\.", *_since(100)),
    Floor(r"tensormap\.replace\.", *_specific(90)),
    Floor(r"cvt\.rs\.", *_STOCHASTIC),
    Floor(r"cvt\.\S*satfinite\.tf32", *_since(100)),
    Floor(r"cvt\.r[nz]\.(?:relu\.)?tf32", *_since(90)),
    Floor(r"cvt\.\S*\.bf16\.(?:[su]\d+|f16|f64)\b", *_since(90)),
    Floor(r"cvt\.\S*(?:[su]\d+|f16|f64)\.bf16\b", *_since(90)),
    Floor(r"cvt\.\S*e[23]m[123]x2", *_specific(100)),
    Floor(r"cvt\.\S*ue8m0x2", *_specific(100)),
    Floor(r"cvt\.\S*e[45]m[23]x2", *_since(89)),
    Floor(r"(?:atom|red)\.\S*add\.noftz\.bf16", *_since(90)),
    Floor(r"(?:atom|red)\.\S*\.(?:v[248]\.|b128)", *_since(90)),
    Floor(r"(?:atom|red|ld|st)\.(?:[\w:]+\.)*(?:shared::)?cluster\b", *_since(90)),
    Floor(r"(?:ld|st)\.\S*\.(?:v8\.|v4\.[bsuf]64)", *_since(100)),
    Floor(r"(?:add|sub|mul)\.(?:\w+\.)*bf16", *_since(90)),
    Floor(r"(?:ex2|tanh)\.approx\.(?:ftz\.)?bf16", *_since(90)),
    Floor(r"(?:add|sub|mul|fma)\.(?:\w+\.)*f32x2", *_since(100)),
    # With three operands.
    Floor(r"(?:max|min)\.(?:\w+\.)*f32\s+(?:[^,;]+,){3}", *_since(100)),
    Floor(r"redux\.sync\.\S*f32", *_REDUX_FLOAT),
)
_FIRST = re.compile("|".join(f"(?P<at{at}>(?<![\\w.]){f.prefix})" for at, f in enumerate(PTX)))


def missing(name: str, table: Iterable[Floor], target: Target) -> Floor | None:
    """The row that keeps `target` from what is called `name`, if any."""
    row = next((row for row in table if name.startswith(row.prefix)), None)
    return None if row is None or row.holds(target) else row


@lru_cache(maxsize=1024)
def missing_in_ptx(text: str, target: Target) -> tuple[str, Floor] | None:
    """The first instruction of PTX `text` that `target` lacks, and the row that says so."""
    for found in _FIRST.finditer(text):
        row = PTX[int((found.lastgroup or "at0")[2:])]
        if not row.holds(target):
            end = re.compile(r"[\s;]|$").search(text, found.end())
            return text[found.start() : end.start() if end else len(text)], row
    return None
