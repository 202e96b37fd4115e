"""How many blocks run at once whose products no loop makes."""

from __future__ import annotations

import re

import pytest
from support.tiles import registry

from tile_core.opt import OptJob, Selection, optimize

_PRODUCT = """
    %{name} = "nv_tileaa.dot"(%a, %b, %{sum}) {{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}} : (tensor<128x64xf16>, tensor<64x{columns}xf16>, tensor<128x{columns}xf32>) -> tensor<128x{columns}xf32>
"""  # noqa: E501 - MLIR
_LOOP = """
    %r = scf.for %i = %zero to %n step %one iter_args(%t = %c) -> (tensor<128x{columns}xf32>) : i32 {{
      {product}
      scf.yield %d : tensor<128x{columns}xf32>
    }}
"""  # noqa: E501 - MLIR
_TEXT = """
gpu.module @m attributes {{tt.num_warps = 0 : i32, tt.num_ctas = 1 : i32}} {{
  func.func @f(%a: tensor<128x64xf16>, %b: tensor<64x{columns}xf16>, %c: tensor<128x{columns}xf32>, %n: i32) attributes {{nv_tileaa.kernel{hints}}} {{
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    {body}
    return
  }}
}}
"""  # noqa: E501 - MLIR


def occupancy(
    target: str, columns: int = 64, *, in_loop: bool = False, hints: str = ""
) -> str | None:
    """What a kernel with one product asks for."""
    product = _PRODUCT.format(name="d", sum="t" if in_loop else "c", columns=columns)
    body = _LOOP.format(product=product, columns=columns) if in_loop else product
    given = "mma=tcgen05 tma-descriptors=host"
    job = OptJob(
        registry(), Selection(passes=f"convert-tileaa-to-tileas{{{given}}}", target=target)
    )
    made = optimize(_TEXT.format(columns=columns, hints=hints, body=body), 0, job).text
    found = re.search(r"kernel_spec = \{([^}]*)\}", made)
    assert found is not None
    return dict(re.findall(r"(\w+) = (\d+) : i32", found[1])).get("occupancy")


@pytest.mark.parametrize("target", ["sm_80", "sm_90", "sm_100", "sm_120"])
def test_another_block_computes_meanwhile(target: str) -> None:
    assert occupancy(target) == "2"


def test_a_loop_hides_what_its_products_take() -> None:
    assert occupancy("sm_100", in_loop=True) is None


def test_tiles_leave_room() -> None:
    assert occupancy("sm_90", columns=256) is None


def test_a_hint_says_how_many() -> None:
    hint = ", nv_tileaa.optimization_hints = {default = {occupancy = 1 : i32}}"
    assert occupancy("sm_100", hints=hint) == "1"
