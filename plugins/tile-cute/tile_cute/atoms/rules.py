"""Which combinations of qualifiers tcgen05.mma and matrix operands may have, as ordered rules.

The first rule that is broken is reported; the texts are those of the Tile IR compiler.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tile_cute.atoms.arch import parse_chip
from tile_cute.errors import LayoutError

_MX = ("mxf8f6f4", "mxf4", "mxf4nvf4")
_FP4 = ("mxf4", "mxf4nvf4")


@dataclass(frozen=True)
class TensorMmaFlags:
    """The qualifiers of one tcgen05.mma."""

    kind: str
    cta_group: int = 1
    scale_size: str = ""  # "1X", "2X", "4X" if written
    block_scale: bool = False
    sparse: bool = False
    weight_stationary: bool = False
    ashift: bool = False
    collector: str = ""  # "use", "fill", "lastuse", "discard"
    scale_input_accumulator: bool = False


def _arch_conditional(chip: str) -> bool:
    return parse_chip(chip)[1] == "a"


_RULES: tuple[tuple[Callable[[TensorMmaFlags, str], bool], str], ...] = (
    (
        lambda f, chip: f.kind == "i8" and not _arch_conditional(chip),
        "INT8 type is supported only on arch-conditional variants.",
    ),
    (
        lambda f, chip: f.sparse and f.kind in _FP4 and not _arch_conditional(chip),
        "MXF4 and MXF4NVF4 types with Sparsity are supported only on arch-conditional variants.",
    ),
    (
        lambda f, chip: bool(f.scale_size) and not _arch_conditional(chip),
        "Explicit scale vector size is supported only on arch-conditional variants.",
    ),
    (
        lambda f, chip: f.scale_input_accumulator and parse_chip(chip)[0] < 100,
        "Scale input accumulator is not supported on this architecture.",
    ),
    (
        lambda f, _: f.scale_input_accumulator and f.kind not in ("f16", "tf32"),
        "Scale input accumulator can only be used with f16 and tf32 types",
    ),
    (
        lambda f, _: f.block_scale and f.kind in ("f16", "tf32", "f8f6f4", "i8"),
        "Block scale is not supported for f16, tf32, f8f6f4, and i8 types",
    ),
    (
        lambda f, _: f.ashift and f.block_scale,
        "ashift is not supported with tcgen05.mma.block_scale variants",
    ),
    (
        lambda f, _: f.weight_stationary and f.cta_group == 2,
        "cta_group::2 is not supported with weight stationary",
    ),
    (
        lambda f, _: f.weight_stationary and f.kind in _MX,
        "Cannot use weight stationary with mxf8f6f4 and fp4 types",
    ),
    (
        lambda f, _: f.ashift and f.collector in ("use", "fill"),
        "Cannot use collector::a::use or colletor::a::fill with ashift",
    ),
    (
        lambda f, _: f.kind == "mxf8f6f4" and f.scale_size in ("2X", "4X"),
        "Cannot use 2X or 4X as scale vector size for mxf8f6f4 type",
    ),
    (
        lambda f, _: f.kind == "mxf4nvf4" and f.scale_size == "1X",
        "Cannot use 1X as scale vector size for mxf4nvf4 type",
    ),
    (
        lambda f, _: f.kind == "mxf4" and f.scale_size in ("1X", "4X"),
        "Cannot use 1X or 4X as scale vector size for mxf4 type",
    ),
)


def check_tensor_mma(flags: TensorMmaFlags, chip: str) -> None:
    """LayoutError with the first broken rule's text."""
    for broken, text in _RULES:
        if broken(flags, chip):
            raise LayoutError(text)
