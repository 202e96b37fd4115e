"""tileas-separate-host-tma: tensor maps that follow from arguments become hidden parameters (D15).

A `make_tiled_tma_desc` whose view depends on the kernel's arguments alone goes: the kernel gets a
parameter behind its own, and how host code fills it in is written down as a recipe
(`tile_cute.map_recipe`). What depends on more stays, to be made in the kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tile_cute.map_recipe import Apply, Constant, Expression, MapRecipe
from tile_cute.tensor_map import ALIGNMENT, SIZE, swizzle_fields
from tile_tileaa.dialect.types import bits_of

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, option
from tile_tileas.analysis.host_values import NotOnHost, host_expression
from tile_tileas.analysis.views import maker, view_of_memref
from tile_tileas.dialect.tma import axes_of, descriptor_parts, joined_of
from tile_tileas.tma.element_types import map_type
from tile_tileas.tma.refusals import SOURCES

#: Attribute of a kernel: its recipes, one line of JSON each, in order of their parameters.
RECIPES = "nv_tileas.tensor_maps"
#: How many maps the kernel has from the host, and how many it makes itself.
NUM_HOST, NUM_DEVICE = "nv_tileas.num-host-tmas", "nv_tileas.num-device-tmas"
#: What all parameters of a kernel may take (CUDA programming guide, "Kernel parameters", 12.1).
PARAMETER_BYTES = 32764


@dataclass(frozen=True)
class SeparateHostTma(Pass):
    """Give kernels the tensor maps that a launch can make."""

    name = "tileas-separate-host-tma"
    anchor = "func.func"
    statistics = {"host": "tensor maps from the host", "device": "tensor maps left to the kernel"}

    tma_descriptors: str = option(
        "host",
        "where tensor maps come from; 'device' leaves all to the kernel",
        choices=(*SOURCES, "off"),
    )

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        found = descriptors(op.regions[0])
        if "nv_tileaa.kernel" not in op.attributes or not found:
            return
        taken: dict[MapRecipe, ir.Value] = {}
        left = 0
        for descriptor in found:
            if self.tma_descriptors == "device":
                left += 1
                continue
            try:
                recipe = recipe_of(descriptor, op)
                if recipe not in taken:
                    taken[recipe] = _parameter(op, descriptor, len(taken))
            except NotOnHost as reason:
                cx.missed(
                    descriptor.operation,
                    f"no tensor map from the host: {reason}",
                    category="memory",
                    name="HostMapFailed",
                    hint="the kernel builds the map itself",
                )
                left += 1
                continue
            descriptor.results[0].replace_all_uses_with(taken[recipe])
            descriptor.erase()
        cx.count("host", len(taken))
        cx.count("device", left)
        _record(op, taken, left)
        _prefetch(op, list(taken.values()))


def recipe_of(descriptor: ir.OpView, kernel: ir.Operation) -> MapRecipe:
    """How host code makes the map of a `make_tiled_tma_desc`; its parameter is not chosen yet.

    Raises:
        NotOnHost: the view depends on more than arguments.
    """
    parts = descriptor_parts(descriptor.results[0].type)
    assert parts is not None, "the verifier has seen it"
    tile, swizzle = parts
    mode, atomicity = swizzle_fields(swizzle)
    memref = view_of_memref(maker(maker(descriptor.view).operands[0]))
    bits = bits_of(memref.element) or 0
    axes = axes_of(descriptor, len(memref.sizes))
    assert axes is not None, "the verifier has seen it"
    return MapRecipe(
        kernel=ir.StringAttr(kernel.attributes["sym_name"]).value,
        parameter=0,
        type=map_type(memref.element, tile.element_type),
        address=host_expression(memref.base, kernel),
        dims=tuple(_number(memref.sizes[axis], kernel) for axis in reversed(axes)),
        strides=_strides([memref.strides[axis] for axis in axes], bits, kernel),
        box=tuple(reversed(tile.shape)),
        swizzle=mode,
        atomicity=atomicity,
        fill="nan" if descriptor.oob_mode.value == "nan" else "zero",
        joined=joined_of(descriptor),
    )


def _strides(
    steps: Sequence[int | ir.Value], bits: int, kernel: ir.Operation
) -> tuple[Expression, ...]:
    """Bytes along the dimensions of the map but the innermost, which is the last of `steps`."""
    found: list[Expression] = []
    for stride in reversed(steps[:-1]):
        elements = _number(stride, kernel)
        if bits >= 8:
            found.append(_times(elements, bits // 8))
        else:
            found.append(Apply("shrui", 64, (_times(elements, bits), Constant(3))))
    return tuple(found)


def _times(expression: Expression, factor: int) -> Expression:
    if isinstance(expression, Constant):
        return Constant(expression.value * factor)
    return expression if factor == 1 else Apply("muli", 64, (expression, Constant(factor)))


def _number(value: int | ir.Value, kernel: ir.Operation) -> Expression:
    return Constant(value) if isinstance(value, int) else host_expression(value, kernel)


def descriptors(region: ir.Region) -> list[ir.OpView]:
    """Every `make_tiled_tma_desc` inside, in program order."""
    found: list[ir.OpView] = []
    for block in region.blocks:
        for op in block.operations:
            if op.name == "nv_tileas.make_tiled_tma_desc":
                found.append(op)
            for inner in op.regions:
                found += descriptors(inner)
    return found


def _parameter(kernel: ir.Operation, descriptor: ir.OpView, others: int) -> ir.Value:
    """A new last parameter of `kernel`, of the descriptor's type."""
    entry = kernel.regions[0].blocks[0]
    own = len(entry.arguments) - others
    if 8 * own + ALIGNMENT + SIZE * (others + 1) > PARAMETER_BYTES:
        raise NotOnHost(f"{others} of them fill the parameters of the kernel")
    return entry.add_argument(descriptor.results[0].type, descriptor.location)


def _prefetch(kernel: ir.Operation, maps: Sequence[ir.Value]) -> None:
    """Bring maps near before their first use, which would wait for them."""
    at = ir.InsertionPoint.at_block_begin(kernel.regions[0].blocks[0])
    for map_ in maps:
        ir.Operation.create(
            "nv_tileas.prefetch_tma_desc", operands=[map_], loc=kernel.location, ip=at
        )


def _record(kernel: ir.Operation, taken: dict[MapRecipe, ir.Value], left: int) -> None:
    """Write parameters and recipes into the kernel's attributes."""
    entry = kernel.regions[0].blocks[0]
    types = [argument.type for argument in entry.arguments]
    results = list(ir.FunctionType(ir.TypeAttr(kernel.attributes["function_type"]).value).results)
    kernel.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, results))
    if "arg_attrs" in kernel.attributes:
        own = list(ir.ArrayAttr(kernel.attributes["arg_attrs"]))
        own += [ir.DictAttr.get({})] * (len(types) - len(own))
        kernel.attributes["arg_attrs"] = ir.ArrayAttr.get(own)
    lines = [
        replace(recipe, parameter=ir.BlockArgument(value).arg_number).to_json()
        for recipe, value in taken.items()
    ]
    i32 = ir.IntegerType.get_signless(32)
    if lines:
        kernel.attributes[RECIPES] = ir.ArrayAttr.get([ir.StringAttr.get(line) for line in lines])
    kernel.attributes[NUM_HOST] = ir.IntegerAttr.get(i32, len(lines))
    kernel.attributes[NUM_DEVICE] = ir.IntegerAttr.get(i32, left)
