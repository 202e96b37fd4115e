"""nv_tileaa.dot => nv_tileas.dot: the instruction is chosen here, by the tiers of `mma`.

Tensor cores multiply where the target has an MMA of these types whose shape divides the tiles.
8-bit floats without one are widened to f16, and those of four bits with block scales to 8-bit
floats where tcgen05 takes these, which is exact. What is left is computed with fused multiply-adds:
f32 is never rounded to tf32 silently.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tile_tileaa.dialect.dot import blocks_of

from tile_core.convert import Conversion
from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_core.target import Target
from tile_tileas.analysis.axis import shape_of
from tile_tileas.analysis.orders import axis_in_memory
from tile_tileas.dot_plan import PROMOTES
from tile_tileas.dots import (
    FMA,
    PTX_TYPES,
    SCALE_TYPES,
    SCALED_FAMILY,
    SCALED_PTX_TYPES,
    product_shape,
)
from tile_tileas.mma.families import TENSOR, WARPGROUP
from tile_tileas.mma.tensor_scaled import COPIED_ROWS, COPIED_SCALES, reads_packed
from tile_tileas.mma.tier import Choice, Product, Tier, Unfit, choose
from tile_tileas.mma.tiers import tier_of, tiers_up_to
from tile_tileas.nibbles import bytes_along_k
from tile_tileas.passes.ruleset import DotState, rules
from tile_tileas.passes.scaled_dot import ScaledProduct
from tile_tileas.passes.turned_dot import turned_choice, turned_in_fragments, turned_product
from tile_tileas.remedies import remedy

#: Tiers that multiply matrices and no batches of them.
_OF_MATRICES = (TENSOR, WARPGROUP)
_BYTE_FLOATS = ("f8E4M3FN", "f8E5M2")
#: Elements of four bits, and those of eight that have all their numbers.
_NIBBLE, _NIBBLE_IN_BYTE = "f4E2M1FN", "f8E4M3FN"


@rules.on("nv_tileaa.dot")
def dot(op: ir.OpView, cx: Conversion[DotState]) -> ir.Value:
    """nv_tileaa.dot => nv_tileas.dot {atom}; 8-bit floats are widened, and elements with block
    scales multiplied by them, where no atom takes them
    """

    def multiply(a: ir.Value, b: ir.Value, c: ir.Value) -> ir.Value:
        return _product(op, cx, [a, b, c])

    if op.sfa is not None:
        return _scaled(op, cx, op.sfa, op.sfb) or ScaledProduct(op, cx, multiply).run()
    return _with_unit_scales(op, cx) or multiply(op.a, op.b, op.c)


def _scaled(
    op: ir.OpView, cx: Conversion[DotState], sfa: ir.Value, sfb: ir.Value
) -> ir.Value | None:
    """`op` on an instruction that takes scales; None where there is none."""
    scale = _scale_of(op.a, sfa)
    if scale is None:
        return None
    asked = _Asked(op, cx, scale, [sfa, sfb], _packed(op))
    tiers = tiers_up_to(cx.state.highest, scaled=True)
    operands = [op.a, op.b, op.c]
    found = asked.of(operands, tiers)
    if found is not None:
        return found
    refused = {tier.family: tier.choose(asked.product(operands)) for tier in tiers}
    reasons = {name: why.reason for name, why in refused.items() if isinstance(why, Unfit)}
    found = _in_bytes(asked, [tier for tier in tiers if tier.family == TENSOR])
    for family, reason in reasons.items():
        if reason and found is not None and family == TENSOR:
            _remark(op, cx, f"is multiplied as {_NIBBLE_IN_BYTE} on {family}: {reason}", reason)
        elif reason and op.sfa is not None:
            _missed(op, cx, family, reason)
    return found


def scaled_choice(
    op: ir.OpView, target: Target, highest: str, num_warps: int, parts: int = 1
) -> Choice | None:
    """The instruction for a product with block scales, or for one of `parts` along its rows, on
    `highest` or lower tiers; None if none takes it.
    """
    scale = _scale_of(op.a, op.sfa)
    if scale is None:
        return None
    tiers = tiers_up_to(highest, scaled=True)
    product = product_of(op, [op.a, op.b, op.c], target, num_warps, scale=scale)
    product = replace(product.part(parts), packed=bool(_packed(op)))
    if product.shape[0] == 1:
        product = replace(product, rank=2)
    nibble, byte = SCALED_PTX_TYPES[_NIBBLE], SCALED_PTX_TYPES[_NIBBLE_IN_BYTE]
    a, b, acc = product.types
    wide = (byte if a == nibble else a, byte if b == nibble else b, acc)
    found = choose(product, tiers)
    if found is None and wide != product.types:
        in_tensor = [tier for tier in tiers if tier.family == TENSOR]
        found = choose(replace(product, types=wide), in_tensor)
    return found


def _scale_of(a: ir.Value, sfa: ir.Value) -> tuple[str, int] | None:
    """PTX type of scales, and how many elements along K have one; None without such a type."""
    scale = SCALE_TYPES.get(str(sfa.type.element_type))
    return None if scale is None else (scale, shape_of(a)[-1] // shape_of(sfa)[-1])


def _packed(op: ir.OpView) -> list[ir.Value]:
    """A and B as bytes of two elements along K; nothing where one of them is not there so."""
    if any(str(value.type.element_type) != _NIBBLE for value in (op.a, op.b)):
        return []
    a, b = bytes_along_k(op.a, turned=False), bytes_along_k(op.b, turned=True)
    return [] if a is None or b is None else [a, b]


def _in_bytes(asked: _Asked, tiers: Sequence[Tier]) -> ir.Value | None:
    """The product with elements of four bits as 8-bit floats, which have all their numbers; None
    if it has no such elements, or none of `tiers` takes it that way either.
    """
    op, cx = asked.op, asked.cx
    operands = [op.a, op.b, op.c]
    narrow = [str(value.type.element_type) == _NIBBLE for value in operands]
    wide = [ir.Float8E4M3FNType.get() if one else None for one in narrow]
    types = [SCALED_PTX_TYPES[_NIBBLE_IN_BYTE] if one else None for one in narrow]
    if not any(narrow) or not asked.is_taken(operands, types, tiers):
        return None
    pairs = zip(operands, wide, strict=True)
    values = [value if kind is None else _cast(cx, value, kind) for value, kind in pairs]
    return asked.of(values, tiers)


@dataclass(frozen=True)
class _Asked:
    """A product with block scales, of whatever elements its operands are taken as."""

    op: ir.OpView
    cx: Conversion[DotState]
    scale: tuple[str, int]
    scales: list[ir.Value]
    packed: list[ir.Value]

    def product(self, operands: list[ir.Value], rank: int = 0) -> Product:
        """What tiers are asked."""
        warps = self.cx.state.num_warps
        found = product_of(
            self.op, operands, self.cx.target, warps, rank=rank, scale=self.scale
        )  # fmt: skip
        return replace(found, packed=bool(self.packed))

    def is_taken(
        self, operands: list[ir.Value], types: Sequence[str | None], tiers: Sequence[Tier]
    ) -> bool:
        """Whether one of `tiers` takes it with operands of other `types`, where these are said."""
        rank = 2 if _is_single(operands) else 0
        product = self.product(operands, rank)
        a, b, c = (new or old for new, old in zip(types, product.types, strict=True))
        return choose(replace(product, types=(a, b, c)), tiers) is not None

    def of(self, operands: list[ir.Value], tiers: Sequence[Tier]) -> ir.Value | None:
        """It by the first of `tiers` that has an instruction for it; None if none has."""
        op, cx = self.op, self.cx
        if _is_single(operands):
            choice = choose(self.product(operands, 2), tiers)
            if choice is not None and tier_of(choice.atom).family in _OF_MATRICES:
                values = (*operands, *self.scales)
                flat = [_reshaped(cx, value, shape_of(value)[1:]) for value in values]
                return _reshaped(cx, self._made(flat, choice), shape_of(op.c))
        choice = choose(self.product(operands), tiers)
        return None if choice is None else self._made([*operands, *self.scales], choice)

    def _made(self, operands: list[ir.Value], choice: Choice) -> ir.Value:
        """It by that instruction, on bytes where this reads them."""
        if not reads_packed(choice.atom):
            return _scaled_by(self.op, self.cx, operands, choice)
        (m, k), n = shape_of(operands[0]), shape_of(operands[1])[1]
        a, b = (
            _reshaped(self.cx, value, [rows, k // 2])
            for value, rows in zip(self.packed, (m, n), strict=True)
        )
        type_ = ir.RankedTensorType.get([k // 2, n], b.type.element_type)
        order = {"permutation": ir.DenseI32ArrayAttr.get([1, 0])}
        turned = self.cx.create("nv_tileaa.permute", [b], [type_], order).result
        return _scaled_by(self.op, self.cx, [a, turned, *operands[2:]], choice)


def _scaled_by(
    op: ir.OpView, cx: Conversion[DotState], operands: list[ir.Value], choice: Choice
) -> ir.Value:
    """The product of A, B, C and scales; those of tcgen05 are repeated to whole copies."""
    if tier_of(choice.atom).family == TENSOR:
        sfa, sfb = operands[3:]
        least = COPIED_ROWS, COPIED_SCALES
        operands[3:] = [_repeated(cx, sfa, least), _repeated(cx, sfb, least[::-1])]
    return _made(op, cx, operands, choice)


def _repeated(cx: Conversion[DotState], value: ir.Value, least: Sequence[int]) -> ir.Value:
    """A tile, as often along each axis as it takes to reach `least`."""
    for axis, wanted in enumerate(least):
        shape = list(shape_of(value))
        times = wanted // shape[axis]
        if times > 1:
            one, many = ([*shape[:axis], n, *shape[axis:]] for n in (1, times))
            type_ = ir.RankedTensorType.get(many, value.type.element_type)
            wide = cx.create("nv_tileaa.broadcast", [_reshaped(cx, value, one)], [type_]).result
            shape[axis] = wanted
            value = _reshaped(cx, wide, shape)
    return value


#: Elements along K of 8-bit floats that share a scale, and what scales them by one.
_BLOCK, _UNIT = 32, "f8E8M0FNU"


def _with_unit_scales(op: ir.OpView, cx: Conversion[DotState]) -> ir.Value | None:
    """8-bit floats on an instruction that takes scales, all of them one; None where there is none.

    Chips for desktops multiply 8-bit floats into f32 at half their rate, but not where scales are
    given (mmapeak on an RTX 5090: 370 and 737 TFLOP/s). The products are the same.
    """
    k = shape_of(op.a)[-1]
    if {str(value.type.element_type) for value in (op.a, op.b)} - {*_BYTE_FLOATS} or k % _BLOCK:
        return None
    sizes = [list(shape_of(op.a)), list(shape_of(op.b))]
    sizes[0][-1] = sizes[1][-2] = k // _BLOCK
    operands, warps = [op.a, op.b, op.c], cx.state.num_warps
    scale = SCALE_TYPES[_UNIT], _BLOCK
    product = product_of(op, operands, cx.target, warps, scale=scale)
    tiers = tiers_up_to(cx.state.highest, scaled=True)
    if choose(product, [tier for tier in tiers if tier.family == SCALED_FAMILY]) is None:
        return None
    return _scaled(op, cx, *(_ones(cx, size) for size in sizes))


def _ones(cx: Conversion[DotState], shape: list[int]) -> ir.Value:
    element = ir.Float8E8M0FNUType.get()
    type_ = ir.RankedTensorType.get(shape, element)
    value = ir.DenseElementsAttr.get_splat(type_, ir.FloatAttr.get(element, 1.0))
    return cx.create("arith.constant", [], [type_], {"value": value}).result


def _product(op: ir.OpView, cx: Conversion[DotState], operands: list[ir.Value]) -> ir.Value:
    """`op` on operands without scales."""
    if _is_single(operands) and _family(op, cx, operands) in _OF_MATRICES:
        # One product, and no batch: instructions for matrices take it.
        flat = [_reshaped(cx, value, shape_of(value)[1:]) for value in operands]
        return _reshaped(cx, _product(op, cx, flat), shape_of(operands[2]))
    product = product_of(op, operands, cx.target, cx.state.num_warps)
    tiers = tiers_up_to(cx.state.highest)
    turned = turned_choice(op, product, tiers) or turned_in_fragments(product, tiers)
    if turned is not None:
        return turned_product(
            op, operands, cx, lambda values, given: _made(op, cx, values, turned, given)
        )
    choice = _choice(op, cx, operands)
    if choice.atom == FMA and str(operands[0].type.element_type) in _BYTE_FLOATS:
        half = ir.F16Type.get()
        operands = [_cast(cx, operands[0], half), _cast(cx, operands[1], half), operands[2]]
        choice = _choice(op, cx, operands)
    return _made(op, cx, operands, choice)


def _made(
    op: ir.OpView,
    cx: Conversion[DotState],
    operands: list[ir.Value],
    choice: Choice,
    given: dict[str, ir.Attribute] | None = None,
) -> ir.Value:
    """The product by the chosen instruction; `operands` are A, B, C and the scales if any. With
    `given` these attributes and not those of `op`.
    """
    for family, reason in choice.refused:
        _missed(op, cx, family, reason)
    attributes = given or {name: op.attributes[name] for name in op.attributes}
    attributes["atom"] = ir.StringAttr.get(choice.atom)
    if _promotes(op, operands[0], operands[2]):
        attributes[PROMOTES] = ir.UnitAttr.get()
    scales = int(len(operands) > 3)
    segments = ir.DenseI32ArrayAttr.get([1, 1, 1, scales, scales])
    attributes["operandSegmentSizes"] = segments
    return cx.create("nv_tileas.dot", operands, [operands[2].type], attributes).result


def _missed(op: ir.OpView, cx: Conversion[DotState], family: str, reason: str) -> None:
    _remark(op, cx, f"does not run on {family}: {reason}", reason)


def _remark(op: ir.OpView, cx: Conversion[DotState], message: str, reason: str) -> None:
    cx.cx.missed(
        op.operation, message, category="tensorcore", name="TensorCoreMMA", hint=remedy([reason])
    )


def _family(op: ir.OpView, cx: Conversion[DotState], operands: list[ir.Value]) -> str:
    """The tier that takes the product as one of matrices."""
    return tier_of(_choice(op, cx, operands, 2).atom).family


def _is_single(operands: list[ir.Value]) -> bool:
    return len(shape_of(operands[0])) == 3 and shape_of(operands[0])[0] == 1


def _reshaped(cx: Conversion[DotState], value: ir.Value, shape: Sequence[int]) -> ir.Value:
    type_ = ir.RankedTensorType.get(list(shape), value.type.element_type)
    return cx.create("nv_tileas.view", [value], [type_]).result


def _choice(
    op: ir.OpView, cx: Conversion[DotState], operands: list[ir.Value], rank: int = 0
) -> Choice:
    """The instruction, of tiles of another rank if that is said."""
    product = product_of(op, operands, cx.target, cx.state.num_warps, rank=rank)
    found = choose(product, tiers_up_to(cx.state.highest))
    if found is None:
        assert product.ctas > 1, "multiply-adds take every product of one block"
        raise error_at(op, f"is for {product.ctas} blocks together, and no instruction takes it so")
    return found


def product_of(
    op: ir.OpView,
    operands: Sequence[ir.Value],
    target: Target,
    num_warps: int,
    *,
    rank: int = 0,
    scale: tuple[str, int] | None = None,
) -> Product:
    """What tiers are asked about: `op` on operands, of tiles of another rank if that is said."""
    a, b, c = operands
    names = SCALED_PTX_TYPES if scale else PTX_TYPES
    types = [_ptx_type(op, x, name, names) for x, name in zip(operands, "abc", strict=True)]
    return Product(
        target.chip,
        (types[0], types[1], types[2]),
        product_shape(shape_of(a), shape_of(c)),
        rank or len(shape_of(a)),
        num_warps,
        target.max_shared,
        promotes=_promotes(op, a, c),
        orders=(_order(a, -1), _order(b, -2)),
        scale=scale,
        ctas=blocks_of(op),
    )


def _order(value: ir.Value, k: int) -> str:
    """How an operand whose axis `k` is K lies in memory; "" if nobody knows."""
    found = axis_in_memory(value)
    if found is None:
        return ""
    return "K" if found == len(shape_of(value)) + k else "MN"


def _promotes(op: ir.OpView, a: ir.Value, c: ir.Value) -> bool:
    """Whether sums of 8-bit floats have to leave the tensor cores (Tile IR specification,
    "mmaf": without `fast_acc`).
    """
    wide = str(c.type.element_type) == "f32"
    return wide and str(a.type.element_type) in _BYTE_FLOATS and "fast_acc" not in op.attributes


def _ptx_type(op: ir.OpView, value: ir.Value, operand: str, names: dict[str, str]) -> str:
    element = value.type.element_type
    if isinstance(element, ir.IntegerType) and element.width == 8:
        name = ir.StringAttr(op.attributes[f"signedness_{operand}"]).value
        return "s8" if name == "signed" else "u8"
    if str(element) not in names:
        raise error_at(op, f"failed to find available mma partition for elements of {element}")
    return names[str(element)]


def _cast(cx: Conversion[DotState], value: ir.Value, element: ir.Type) -> ir.Value:
    type_ = ir.RankedTensorType.get(value.type.shape, element)
    return cx.create("nv_tileaa.fp_to_fp", [value], [type_]).result
