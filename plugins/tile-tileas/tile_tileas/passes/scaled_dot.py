"""Products with block scales, on targets and shapes without an instruction for them.

Elements and scales are widened and multiplied, and what comes out is multiplied as usual (Tile IR
specification, "mmaf_scaled"). Elements have at most four significant bits and scales four, so
that bf16 holds their products, unless the scales are powers of two far from one. Those are looked
at while the kernel runs: if any is, the whole product is made in f64, which holds all of them.
"""

from __future__ import annotations

from collections.abc import Callable

from tile_core.convert import Conversion
from tile_core.mlir import ir
from tile_tileas.analysis.axis import shape_of

#: Codes of f8E8M0FNU around that of one (127) for which products of elements, of scales and of
#: both stay normal numbers of f32; and the code of NaN, which is NaN either way.
_FIRST_CODE, _LAST_CODE, _NAN_CODE = 87, 167, 255
_POWERS = "f8E8M0FNU"
_ULE, _EQ = 7, 0  # arith.CmpIPredicate

Product = Callable[[ir.Value, ir.Value, ir.Value], ir.Value]


class ScaledProduct:
    """`c + (a * sfa) @ (b * sfb)`; `multiply(a, b, c)` makes a product without scales."""

    def __init__(self, op: ir.OpView, cx: Conversion, multiply: Product) -> None:
        self.op, self.cx, self.multiply = op, cx, multiply

    def run(self) -> ir.Value:
        """The new accumulator."""
        bf16, f64 = ir.BF16Type.get(), ir.F64Type.get()
        if str(self.op.sfa.type.element_type) != _POWERS:
            return self._product(bf16)
        ordinary = [self._are_ordinary(scale) for scale in (self.op.sfa, self.op.sfb)]
        flag = self._create("arith.andi", ordinary, ordinary[0].type)
        branch = self.cx.create("scf.if", [flag], [self.op.result.type], regions=2)
        for region, kind in zip(branch.regions, (bf16, f64), strict=True):
            with self.cx.at(ir.InsertionPoint(region.blocks.append())):
                self.cx.create("scf.yield", [self._product(kind)])
        return branch.result

    def _product(self, kind: ir.Type) -> ir.Value:
        """The product of elements of `kind`."""
        a = self._scaled(self.op.a, self.op.sfa, kind, along=-1)
        b = self._scaled(self.op.b, self.op.sfb, kind, along=-2)
        if not isinstance(kind, ir.F64Type):
            return self.multiply(a, b, self.op.c)
        found = self.multiply(a, b, self._cast(self.op.c, kind))
        return self._cast(found, self.op.result.type.element_type)

    def _scaled(self, value: ir.Value, scale: ir.Value, kind: ir.Type, along: int) -> ir.Value:
        """The elements, each times its scale; axis `along` of the scale is in blocks."""
        whole, few = shape_of(value), list(shape_of(scale))
        axis = len(few) + along
        block = whole[axis] // few[axis]
        thin, wide = ([*few[: axis + 1], n, *few[axis + 1 :]] for n in (1, block))
        factor = self._view(self._cast(scale, kind), thin)
        factor = self._create("nv_tileaa.broadcast", [factor], ir.RankedTensorType.get(wide, kind))
        factor = self._view(factor, list(whole))
        return self._create("nv_tileaa.mulf", [self._cast(value, kind), factor], factor.type)

    def _are_ordinary(self, scale: ir.Value) -> ir.Value:
        """i1: all scales are near one, or NaN."""
        i1, i8, i32 = (ir.IntegerType.get_signless(width) for width in (1, 8, 32))
        shape = list(shape_of(scale))
        codes = self._create("nv_tileaa.bitcast", [scale], ir.RankedTensorType.get(shape, i8))
        flags = ir.RankedTensorType.get(shape, i1)
        above = self._create("arith.subi", [codes, self._splat(_FIRST_CODE, codes.type)],
                             codes.type)  # fmt: skip
        limit = self._splat(_LAST_CODE - _FIRST_CODE, codes.type)
        near = self._compare(_ULE, above, limit, flags)
        nan = self._compare(_EQ, codes, self._splat(_NAN_CODE, codes.type), flags)
        good = self._create("arith.ori", [near, nan], flags)
        words = ir.RankedTensorType.get(shape, i32)
        count = 1
        for extent in shape:
            count *= extent
        flat = self._view(self._create("arith.extui", [good], words), [count])
        one = ir.IntegerAttr.get(i32, 1)
        found = self._all_bits(flat, i32, one)
        return self._compare(_EQ, found, self._constant(one, i32), i1)

    def _all_bits(self, values: ir.Value, kind: ir.Type, one: ir.Attribute) -> ir.Value:
        """The conjunction of a 1-D tile of words."""
        attributes = {
            "axis": ir.IntegerAttr.get(kind, 0),
            "identities": ir.ArrayAttr.get([one]),
        }
        fold = self.cx.create("nv_tileas.reduce", [values], [kind], attributes, regions=1)
        block = fold.regions[0].blocks.append(kind, kind)
        with self.cx.at(ir.InsertionPoint(block)):
            both = self._create("arith.andi", list(block.arguments), kind)
            self.cx.create("nv_tileas.yield", [both])
        return fold.result

    # -- small pieces -----------------------------------------------------------------------

    def _create(self, name: str, operands: list[ir.Value], result: ir.Type) -> ir.Value:
        return self.cx.create(name, operands, [result]).result

    def _constant(self, value: ir.Attribute, type_: ir.Type) -> ir.Value:
        return self.cx.create("arith.constant", [], [type_], {"value": value}).result

    def _splat(self, number: int, type_: ir.Type) -> ir.Value:
        signed = number - 256 if number > 127 else number
        value = ir.IntegerAttr.get(type_.element_type, signed)
        return self._constant(ir.DenseElementsAttr.get_splat(type_, value), type_)

    def _compare(self, predicate: int, a: ir.Value, b: ir.Value, result: ir.Type) -> ir.Value:
        number = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate)
        return self.cx.create("arith.cmpi", [a, b], [result], {"predicate": number}).result

    def _view(self, value: ir.Value, shape: list[int]) -> ir.Value:
        type_ = ir.RankedTensorType.get(shape, value.type.element_type)
        return self._create("nv_tileas.view", [value], type_)

    def _cast(self, value: ir.Value, kind: ir.Type) -> ir.Value:
        type_ = ir.RankedTensorType.get(value.type.shape, kind)
        return self._create("nv_tileaa.fp_to_fp", [value], type_)
