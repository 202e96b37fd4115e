"""How many warps make chained products of 64 rows: one warpgroup's, where its registers suffice."""

from __future__ import annotations

import re

import pytest
from support.tiles import registry

from tile_core.opt import OptJob, Selection, optimize

_DYNAMIC = -(1 << 63)
_TEXT = """
gpu.module @m attributes {tt.num_warps = 0 : i32, tt.num_ctas = 1 : i32} {
  func.func @f(%base: !nv_tileaa.ptr<f16, 1 : i32>, %n: i32) attributes {nv_tileaa.kernel<HINTS>} {
    %p = "nv_tileaa.assume"(%base) {predicate = {divisor = <DIVISOR> : i64, kind = "div_by"}} : (!nv_tileaa.ptr<f16, 1 : i32>) -> !nv_tileaa.ptr<f16, 1 : i32>
    %m = "nv_tileaa.make_memref"(%p) {operandSegmentSizes = array<i32: 1, 0, 0>} : (!nv_tileaa.ptr<f16, 1 : i32>) -> <MEMREF>
    %t = "nv_tileaa.create_mem_token"() : () -> !nv_tileaa.mem_token
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %none = arith.constant dense<0.0> : tensor<<ROWS>x<KEYS>xf32>
    %sum = arith.constant dense<0.0> : tensor<<ROWS>x<DEPTH>xf32>
    %qv = "nv_tileaa.block_tile"(%m) : (<MEMREF>) -> <QVIEW>
    %kv = "nv_tileaa.block_tile"(%m) : (<MEMREF>) -> <KVIEW>
    %vv = "nv_tileaa.block_tile"(%m) : (<MEMREF>) -> <VVIEW>
    %q:2 = "nv_tileaa.tiled_load"(%qv, %zero, %zero, %t) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 1>} : (<QVIEW>, i32, i32, !nv_tileaa.mem_token) -> (tensor<<ROWS>x<DEPTH>xf16>, !nv_tileaa.mem_token)
    %r = scf.for %i = %zero to %n step %one iter_args(%a = %sum) -> (tensor<<ROWS>x<DEPTH>xf32>) : i32 {
      %k:2 = "nv_tileaa.tiled_load"(%kv, %zero, %i, %t) {mem_semantic = "weak"<KHINTS>, operandSegmentSizes = array<i32: 1, 2, 1>} : (<KVIEW>, i32, i32, !nv_tileaa.mem_token) -> (tensor<<DEPTH>x<KEYS>xf16>, !nv_tileaa.mem_token)
      %s = "nv_tileaa.dot"(%q#0, %k#0, %none) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<<ROWS>x<DEPTH>xf16>, tensor<<DEPTH>x<KEYS>xf16>, tensor<<ROWS>x<KEYS>xf32>) -> tensor<<ROWS>x<KEYS>xf32>
      %e = "nv_tileaa.exp2"(%s) : (tensor<<ROWS>x<KEYS>xf32>) -> tensor<<ROWS>x<KEYS>xf32>
      <MORE>
      %w = "nv_tileaa.fp_to_fp"(<MADE>) : (tensor<<ROWS>x<KEYS>xf32>) -> tensor<<ROWS>x<KEYS>xf16>
      %vt:2 = "nv_tileaa.tiled_load"(%vv, %i, %zero, %t) {mem_semantic = "weak", operandSegmentSizes = array<i32: 1, 2, 1>} : (<VVIEW>, i32, i32, !nv_tileaa.mem_token) -> (tensor<<KEYS>x<DEPTH>xf16>, !nv_tileaa.mem_token)
      %o = "nv_tileaa.dot"(%w, %vt#0, %a) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<<ROWS>x<KEYS>xf16>, tensor<<KEYS>x<DEPTH>xf16>, tensor<<ROWS>x<DEPTH>xf32>) -> tensor<<ROWS>x<DEPTH>xf32>
      <TURNED>
      scf.yield %o : tensor<<ROWS>x<DEPTH>xf32>
    }
    return
  }
}
"""  # noqa: E501 - MLIR, whose lines are as long as its types
_MEMREF = "!nv_tileaa.memref<f16, array<i64: 4096, 4096>, array<i64: 4096, 1>>"


_PRODUCT = """
      %yN = "nv_tileaa.dot"(%x, %q#0, %c) {operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<<KEYS>x<ROWS>xf16>, tensor<<ROWS>x<DEPTH>xf16>, tensor<<KEYS>x<DEPTH>xf32>) -> tensor<<KEYS>x<DEPTH>xf32>
"""  # noqa: E501
#: Products of what the first one gives, turned: their rows are the first one's columns.
_TURNED = f"""
      %c = arith.constant dense<0.0> : tensor<<KEYS>x<DEPTH>xf32>
      %x = "nv_tileaa.permute"(%w) {{permutation = array<i32: 1, 0>}} : (tensor<<ROWS>x<KEYS>xf16>) -> tensor<<KEYS>x<ROWS>xf16>
      {"".join(_PRODUCT.replace("N", str(i)) for i in range(4))}
      %u = arith.addf %y0, %y1 : tensor<<KEYS>x<DEPTH>xf32>
      %v = arith.addf %y2, %y3 : tensor<<KEYS>x<DEPTH>xf32>
"""  # noqa: E501


def _view(rows: int, columns: int) -> str:
    tile = f"array<i32: {rows}, {columns}>, array<i32: 0, 1>"
    return f'!nv_tileaa.tiled_view<{_MEMREF}, {tile}, "">'


def kernel_spec(
    rows: int = 64, keys: int = 256, depth: int = 128, *, divisor: int = 16, gpu: str = "sm_90",
    hints: str = "", of_keys: str = "", twice: bool = False, turned: bool = False,
    cut: bool = False, **options: str,
) -> dict[str, str]:  # fmt: skip
    """How a kernel of two products is launched, of tiles of rows x keys and rows x depth; `twice`:
    what the first one gives is used twice, so that two tiles of it live at once; `turned`: others
    have it turned; `cut`: the compiler chooses how many blocks share the tiles.
    """
    parts = {
        "ROWS": rows, "KEYS": keys, "DEPTH": depth, "DIVISOR": divisor, "MEMREF": _MEMREF,
        "QVIEW": _view(rows, depth), "KVIEW": _view(depth, keys), "VVIEW": _view(keys, depth),
        "HINTS": hints, "KHINTS": of_keys,
        "MORE": f"%f = arith.mulf %e, %s : tensor<{rows}x{keys}xf32>" if twice else "",
        "MADE": "%f" if twice else "%e",
    }  # fmt: skip
    text = _TEXT.replace("<TURNED>", _TURNED if turned else "")
    for name, value in parts.items():
        text = text.replace(f"<{name}>", str(value))
    chosen = {"mma": "tcgen05", "tma-descriptors": "host", **options}
    given = " ".join(f"{name.replace('_', '-')}={value}" for name, value in chosen.items())
    passes = f"convert-tileaa-to-tileas{{{given}}}"
    if cut:
        text = text.replace("tt.num_ctas = 1", "tt.num_ctas = 0")
        passes = f"tileas-plan-cta{{mma={chosen['mma']}}},{passes}"
    job = OptJob(registry(), Selection(passes=passes, target=gpu))
    made = optimize(text, 0, job).text
    found = re.search(r"kernel_spec = \{([^}]*)\}", made)
    assert found is not None
    return dict(re.findall(r"(\w+) = (\d+) : i32", found[1]))


def warps(**changed: object) -> int:
    """The warps of such a kernel."""
    return int(kernel_spec(**changed)["num_warps"])  # pyright: ignore[reportArgumentType]


def test_one_warpgroup_hands_on_in_registers_what_two_would_store() -> None:
    assert warps() == 4
    assert warps(hints=", nv_tileaa.optimization_hints = {default = {occupancy = 4 : i32}}") == 4


def test_two_blocks_of_one_warpgroup_where_two_of_two_have_no_registers() -> None:
    assert warps(rows=128, keys=128, depth=32, twice=True) == 4
    assert warps(rows=128, keys=128, depth=64, twice=True) == 8  # sums that leave one too few
    assert warps(rows=128, keys=128, depth=32) == 8  # two of two have enough


def test_one_warpgroup_where_some_products_have_its_rows_and_others_twice_as_many() -> None:
    assert warps(keys=128, depth=64, turned=True) == 4
    assert warps(keys=128, depth=64, turned=True, divisor=2) == 8  # threads copy
    assert warps(keys=128, depth=128, turned=True) == 8  # far more than a thread holds
    assert warps(keys=64, depth=64, turned=True) == 4  # all have 64 rows


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"keys": 64, "depth": 64}, (4, 4)),
        ({"rows": 128, "keys": 64, "depth": 64}, (2, 4)),  # slower by four, where blocks are few
        ({"keys": 128, "depth": 64}, (2, 4)),  # columns for two; rows of one instruction
        ({"rows": 128, "keys": 128, "depth": 64}, (2, 8)),
        ({"rows": 128, "keys": 128, "depth": 256}, (1, 8)),
    ],
    ids=str,
)
def test_blocks_in_turn(changed: dict[str, int], found: tuple[int, int]) -> None:
    """As many as have columns for their sums, whether a hint asks for two or none does."""
    for hints in ("", ", nv_tileaa.optimization_hints = {default = {occupancy = 2 : i32}}"):
        spec = kernel_spec(**changed, gpu="sm_100", hints=hints)  # pyright: ignore[reportArgumentType]
        assert (int(spec.get("occupancy", 1)), int(spec["num_warps"])) == found


def test_four_blocks_of_long_tiles_where_a_hint_says_so() -> None:
    """They have four warps each; eight, where a hint says that, leave no registers to four."""
    four = ", nv_tileaa.optimization_hints = {default = {occupancy = 4 : i32}}"
    spec = kernel_spec(128, 64, 64, gpu="sm_100", hints=four)
    assert (spec["occupancy"], spec["num_warps"]) == ("4", "4")
    eight = ", nv_tileaa.optimization_hints = {default = {num_worker_warps_per_cta = 8 : i32}}"
    spec = kernel_spec(64, 64, 64, gpu="sm_100", hints=eight)
    assert (spec["occupancy"], spec["num_warps"]) == ("2", "8")


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"rows": 64, "keys": 64, "depth": 32, "gpu": "sm_90"}, (4, 4)),
        ({"rows": 128, "keys": 128, "depth": 128, "gpu": "sm_90"}, (1, 8)),  # four of four spill
    ],
    ids=str,
)
def test_more_than_two_blocks_have_four_warps(
    changed: dict[str, object], found: tuple[int, int]
) -> None:
    """Eight have half of the registers each; where tiles do not fit, fewer blocks as without."""
    hints = ", nv_tileaa.optimization_hints = {default = {occupancy = 4 : i32}}"
    spec = kernel_spec(**changed, hints=hints)  # pyright: ignore[reportArgumentType]
    assert (int(spec["occupancy"]), int(spec["num_warps"])) == found


@pytest.mark.parametrize("hint", ["num_cta_in_cga = 2 : i32", "occupancy = 1 : i32"])
def test_no_more_blocks_than_hints_leave(hint: str) -> None:
    """Blocks of a cluster, which fill each other's stages, are not made in turn."""
    hints = f", nv_tileaa.optimization_hints = {{default = {{{hint}}}}}"
    spec = kernel_spec(128, 64, 64, gpu="sm_100", hints=hints)
    assert spec.get("occupancy", "1") == "1"


@pytest.mark.parametrize(
    "changed",
    [
        {"rows": 128, "keys": 128},  # two warpgroups have 64 rows each
        {"depth": 256},  # sums and scores take 256 registers
        {"divisor": 8},  # no tensor map: threads load keys into registers
        {"of_keys": ", hints = {allow_tma = false}"},
        {"tma_descriptors": "off"},
        {"strategy": "none"},
        {"mma": "mma.sync"},
        {"gpu": "sm_80"},
        {"gpu": "sm_100"},  # tcgen05, whose sums are in tensor memory
    ],
    ids=str,
)
def test_two_otherwise(changed: dict[str, object]) -> None:
    assert warps(**changed) == 8


@pytest.mark.parametrize(
    ("changed", "found"),
    [
        ({"keys": 64}, 4),
        ({"keys": 128}, 4),  # 227 registers of tiles
        ({"keys": 256}, 8),  # 355
        ({"rows": 128, "keys": 64}, 8),  # sixteen rows for each of eight
    ],
    ids=str,
)
def test_four_warps_have_the_rows_of_fragments(changed: dict[str, int], found: int) -> None:
    """Products by mma.sync: eight would have half of each row of 64, and meet for what folds it."""
    for gpu in ("sm_80", "sm_120"):
        assert warps(**changed, gpu=gpu) == found  # pyright: ignore[reportArgumentType]
    assert warps(**changed, mma="mma.sync") == found  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("changed", "gpu", "found"),
    [
        ({"rows": 128, "keys": 64}, "sm_120", (2, 4)),
        ({"rows": 128, "keys": 128}, "sm_120", (2, 4)),
        ({"rows": 256, "keys": 64}, "sm_120", (4, 4)),
        ({"rows": 128, "keys": 256}, "sm_120", (2, 8)),  # for the scores; 64 rows have too many
        ({"rows": 64, "keys": 64}, "sm_120", (1, 4)),
        ({"rows": 128, "keys": 64}, "sm_80", (1, 8)),  # no clusters
    ],
    ids=str,
)
def test_blocks_have_rows_of_four_warps(
    changed: dict[str, int], gpu: str, found: tuple[int, int]
) -> None:
    """On sm_120, whose blocks share nothing, tiles are cut into 64 rows where nobody asks."""
    spec = kernel_spec(**changed, gpu=gpu, cut=True)  # pyright: ignore[reportArgumentType]
    assert (int(spec["num_ctas"]), int(spec["num_warps"])) == found


def test_a_hint_says_how_many() -> None:
    named = ", nv_tileaa.optimization_hints = {default = {num_worker_warps_per_cta = 8 : i32}}"
    assert warps(hints=named) == 8


def blocks(rows: int, keys: int, depth: int, gpu: str, wanted: int = 2) -> int:
    """Blocks of a multiprocessor that such a kernel is made for, of as many as hints ask for."""
    hints = (
        ", nv_tileaa.optimization_hints = {default = {num_worker_warps_per_cta = 8 : i32, "
        f"occupancy = {wanted} : i32}}}}"
    )
    return int(kernel_spec(rows, keys, depth, gpu=gpu, hints=hints)["occupancy"])


@pytest.mark.parametrize(
    ("rows", "keys", "depth", "gpu", "found"),
    [
        (128, 128, 64, "sm_100", 2),
        (128, 128, 128, "sm_100", 2),  # beside each other in tensor memory
        (128, 128, 64, "sm_80", 1),  # sums are in registers while they are made
        (256, 128, 64, "sm_100", 1),  # too many registers
        (64, 256, 128, "sm_100", 1),  # operands of two blocks do not fit
    ],
)
def test_blocks_whose_products_are_in_tensor_memory(
    rows: int, keys: int, depth: int, gpu: str, found: int
) -> None:
    assert blocks(rows, keys, depth, gpu) == found


@pytest.mark.parametrize("gpu", ["sm_90", "sm_100"])
def test_a_hint_of_four_warps_that_cannot_hold_tiles_is_raised(gpu: str) -> None:
    four = ", nv_tileaa.optimization_hints = {default = {num_worker_warps_per_cta = 4 : i32}}"
    assert kernel_spec(256, 128, 128, gpu=gpu, hints=four)["num_warps"] == "8"
    assert kernel_spec(128, 64, 64, gpu=gpu, hints=four)["num_warps"] == "4"


@pytest.mark.parametrize("hint", [-3, 0, 2**31 - 1])
def test_a_hint_of_blocks_that_is_out_of_range(hint: int) -> None:
    """Verifiers let it pass, with a warning if one is asked for."""
    hints = f", nv_tileaa.optimization_hints = {{default = {{occupancy = {hint} : i32}}}}"
    assert int(kernel_spec(64, 64, 64, hints=hints).get("occupancy", 1)) in range(1, 33)
