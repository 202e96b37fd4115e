"""Local rewrites of nv_tileas (Tile IR specification, "nv_tileas folds and memory consistency").

They work on slices of tiles before layouts are chosen, and on the branches around them. Chains are
followed through slices, insertions, views and constants only, all of which are pure: no rule moves
an access, a fold or anything with an effect.

An insertion makes a new value here (there is no storage that branches could share), so what the
specification does by allocating anew in each branch is to insert once, after the branch.
"""

from __future__ import annotations

from collections.abc import Sequence

from tile_tileaa.canonical.registry import (
    constant_of,
    number,
    same_everywhere,
    scalar_of,
    uniform_integer,
)
from tile_tileaa.dialect.types import shape_of

from tile_core.mlir import ir
from tile_core.rewrite import Rewriter, Rewrites, made_by

rules = Rewrites("tileas-canonicalize")

_EXTRACT = "nv_tileas.extract_slice"
_INSERT = "nv_tileas.insert_slice"


def _grid(whole: ir.Type, part: ir.Type) -> list[int]:
    """How many parts there are along each axis."""
    return [w // p for w, p in zip(shape_of(whole), shape_of(part), strict=True)]


def _place(index: ir.Value, count: int) -> int | None:
    """A known index; they count modulo the extent of the grid."""
    if count == 1:
        return 0
    known = uniform_integer(index)
    return None if known is None else known % count


def _same_place(left: Sequence[ir.Value], right: Sequence[ir.Value], grid: list[int]) -> bool:
    for one, other, count in zip(left, right, grid, strict=True):
        if one == other:
            continue
        place = _place(one, count)
        if place is None or place != _place(other, count):
            return False
    return True


def _other_place(left: Sequence[ir.Value], right: Sequence[ir.Value], grid: list[int]) -> bool:
    """Whether the places are known to differ along some axis."""
    places = [
        (_place(one, count), _place(other, count))
        for one, other, count in zip(left, right, grid, strict=True)
    ]
    return any(None not in pair and pair[0] != pair[1] for pair in places)


@rules.on("nv_tileaa.splat")
def splat_of_constant(op: ir.OpView, cx: Rewriter) -> ir.Value | None:
    """splat(constant) => constant, which arithmetic on constants folds"""
    attribute = constant_of(op.operands[0])
    if not isinstance(attribute, ir.IntegerAttr) or isinstance(attribute, ir.BoolAttr):
        return None
    return number(attribute, op.results[0].type, cx)


@rules.on(_EXTRACT)
def slice_of_the_whole(op: ir.OpView, _: Rewriter) -> ir.Value | None:
    """extract_slice(x) of x's own shape => x"""
    source = op.operands[0]
    return source if source.type == op.results[0].type else None


@rules.on(_EXTRACT)
def slice_of_splat(op: ir.OpView, cx: Rewriter) -> ir.Value | None:
    """extract_slice(splat(x)) => splat(x); so are constants"""
    source, type_ = op.operands[0], op.results[0].type
    if not same_everywhere(source):
        return None
    if made_by(source, "nv_tileaa.splat") is not None:
        return cx.create("nv_tileaa.splat", [scalar_of(source, cx)], [type_]).result
    value = ir.DenseElementsAttr(source.owner.attributes["value"])
    return number(value.get_splat_value(), type_, cx)


def _insertion(op: ir.OpView) -> ir.OpView | None:
    """The insertion that a slice is taken of, if both are of one type."""
    inner = made_by(op.operands[0], _INSERT)
    same = inner is not None and inner.operands[0].type == op.results[0].type
    return inner if same else None


@rules.on(_EXTRACT)
def slice_of_insertion(op: ir.OpView, _: Rewriter) -> ir.Value | None:
    """extract_slice(insert_slice(x, d, o), o) => x"""
    if (inner := _insertion(op)) is None:
        return None
    source, *indices = op.operands
    inserted, _destination, *places = inner.operands
    grid = _grid(source.type, inserted.type)
    return inserted if _same_place(indices, places, grid) else None


@rules.on(_EXTRACT)
def slice_beside_insertion(op: ir.OpView, cx: Rewriter) -> ir.Value | None:
    """extract_slice(insert_slice(x, d, o), p) => extract_slice(d, p), if p is known not to be o"""
    if (inner := _insertion(op)) is None:
        return None
    source, *indices = op.operands
    inserted, destination, *places = inner.operands
    if not _other_place(indices, places, _grid(source.type, inserted.type)):
        return None
    return cx.create(_EXTRACT, [destination, *indices], [op.results[0].type]).result


@rules.on(_INSERT)
def insertion_of_the_whole(op: ir.OpView, _: Rewriter) -> ir.Value | None:
    """insert_slice(x, d) of d's shape => x"""
    source = op.operands[0]
    return source if source.type == op.results[0].type else None


@rules.on(_EXTRACT)
def slice_of_view(op: ir.OpView, cx: Rewriter) -> ir.Value | None:
    """extract_slice(view(x)) => view(extract_slice(x)), if the view moves axes of one element only

    Then each index is one of the source's, and of an axis of one element there is one slice.
    """
    source, *indices = op.operands
    inner = made_by(source, "nv_tileas.view")
    if inner is None:
        return None
    before = inner.operands[0]
    wide = [at for at, extent in enumerate(shape_of(source.type)) if extent > 1]
    own = [at for at, extent in enumerate(shape_of(before.type)) if extent > 1]
    extents = [shape_of(source.type)[at] for at in wide]
    if not own or extents != [shape_of(before.type)[at] for at in own]:
        return None
    cut = shape_of(op.results[0].type)
    shape, places = (
        [1] * len(shape_of(before.type)),
        [indices[wide[0]]] * len(shape_of(before.type)),
    )
    for at, axis in zip(own, wide, strict=True):
        shape[at], places[at] = cut[axis], indices[axis]
    part = ir.RankedTensorType.get(shape, before.type.element_type)
    slice_ = cx.create(_EXTRACT, [before, *places], [part]).result
    return cx.create("nv_tileas.view", [slice_], [op.results[0].type]).result


# -- branches -----------------------------------------------------------------------------------


def _inside(value: ir.Value, op: ir.Operation) -> bool:
    """Whether `value` is made inside of `op`."""
    owner = value.owner
    at = owner.owner.operation if isinstance(owner, ir.Block) else owner.operation
    parent = at if isinstance(owner, ir.Block) else at.parent
    while parent is not None:
        if parent == op:
            return True
        parent = parent.parent
    return False


def _common_insertions(op: ir.OpView) -> dict[int, list[ir.OpView]]:
    """Results that both branches insert into the same place of the same tile from outside."""
    ends = [list(region.blocks[0].operations)[-1] for region in op.regions]
    found: dict[int, list[ir.OpView]] = {}
    for at, result in enumerate(op.results):
        made = [made_by(end.operands[at], _INSERT) for end in ends]
        pair = [insertion for insertion in made if insertion is not None]
        if len(pair) != 2:
            continue
        (one, into, *places), (other, also, *others) = (list(i.operands) for i in pair)
        same = one.type == other.type and into == also and places == others
        outside = not any(_inside(value, op.operation) for value in (into, *places))
        if same and outside and one.type != result.type:
            found[at] = pair
    return found


@rules.on("scf.if")
def insertion_after_branch(op: ir.OpView, cx: Rewriter) -> list[ir.Value] | None:
    """if { insert(x, d, o) } else { insert(y, d, o) } => insert(if { x } else { y }, d, o)"""
    if not len(op.results) or any(len(region.blocks) != 1 for region in op.regions):
        return None
    found = _common_insertions(op)
    if not found:
        return None
    types = [result.type for result in op.results]
    for at, pair in found.items():
        types[at] = pair[0].operands[0].type
    new = cx.create("scf.if", [op.operands[0]], types, regions=2)
    for which, region in enumerate(op.regions):
        block = region.blocks[0]
        block.append_to(new.regions[which])
        end = list(block.operations)[-1]
        for at, pair in found.items():
            end.operands[at] = pair[which].operands[0]
    values: list[ir.Value] = list(new.results)
    for at, pair in found.items():
        _, into, *places = pair[0].operands
        made = cx.create(_INSERT, [values[at], into, *places], [op.results[at].type])
        values[at] = made.result
    return values


# -- loops --------------------------------------------------------------------------------------

_PERMUTE = "nv_tileaa.permute"


def _turned_inside(op: ir.OpView) -> dict[int, tuple[ir.OpView, ir.OpView]]:
    """Values that a loop carries, permutes before it uses them, and permutes back in its end."""
    block = op.regions[0].blocks[0]
    end = list(block.operations)[-1]
    found: dict[int, tuple[ir.OpView, ir.OpView]] = {}
    for at, value in enumerate(end.operands):
        uses = list(block.arguments[at + 1].uses)
        last = made_by(value, _PERMUTE)
        first = uses[0].owner.opview if len(uses) == 1 else None
        if last is None or first is None or first.operation.name != _PERMUTE:
            continue
        alone = len(list(value.uses)) == 1 and first.operation.block == last.operation.block
        orders = [
            list(ir.DenseI32ArrayAttr(one.attributes["permutation"])) for one in (first, last)
        ]
        back = [orders[0][axis] for axis in orders[1]] == sorted(orders[0])
        if alone and back and first.operation.block == block:
            found[at] = first, last
    return found


@rules.on("scf.for")
def permuted_outside(op: ir.OpView, cx: Rewriter) -> list[ir.Value] | None:
    """for (x = a) { permute(.. permute(x) ..) } => permute(for (x = permute(a)) { .. x .. })"""
    found = _turned_inside(op)
    if not found:
        return None
    operands, types = list(op.operands), [result.type for result in op.results]
    for at, (first, _) in found.items():
        attributes = {"permutation": first.attributes["permutation"]}
        types[at] = first.results[0].type
        operands[at + 3] = cx.create(_PERMUTE, [operands[at + 3]], [types[at]], attributes).result
    attributes = {name: op.attributes[name] for name in op.attributes}
    new = cx.create("scf.for", operands, types, attributes, regions=1)
    op.regions[0].blocks[0].append_to(new.regions[0])
    block, values = new.regions[0].blocks[0], list[ir.Value](new.results)
    end = list(block.operations)[-1]
    for at, (first, last) in found.items():
        argument, order = block.arguments[at + 1], last.attributes["permutation"]
        argument.set_type(types[at])
        first.results[0].replace_all_uses_with(argument)
        first.operation.erase()
        end.operands[at] = last.operands[0]
        last.operation.erase()
        back = cx.create(_PERMUTE, [values[at]], [op.results[at].type], {"permutation": order})
        values[at] = back.result
    return values


coalescing = Rewrites("tileas-canonicalize")


def _trips(loop: ir.OpView) -> tuple[int, int, int] | None:
    """First value, step and number of iterations of a loop with constant bounds."""
    bounds = [uniform_integer(value) for value in list(loop.operands)[:3]]
    lower, upper, step = bounds
    if lower is None or upper is None or step is None or step <= 0:
        return None
    return lower, step, max(0, -(-(upper - lower) // step))


@coalescing.on("scf.for")
def nest_of_loops(op: ir.OpView, cx: Rewriter) -> list[ir.Value] | None:
    """for i { for j { .. } } => for t { i, j = divmod(t, n) .. }, of constant bounds

    Only if nothing else stands in the outer loop and neither carries a value. The number of
    iterations must fit the type of the variable: with bounds that are known when the kernel runs
    it might not, so those loops stay.
    """
    body = list(op.regions[0].blocks[0].operations)
    if len(op.results) or len(body) != 2 or body[0].operation.name != "scf.for":
        return None
    inner = body[0]
    if len(inner.results) or "unsignedCmp" in op.attributes or "unsignedCmp" in inner.attributes:
        return None
    type_ = op.operands[0].type
    if not isinstance(type_, ir.IntegerType) or inner.operands[0].type != type_:
        return None
    outside, inside = _trips(op), _trips(inner)
    if outside is None or inside is None or inside[2] == 0:
        return None
    total = outside[2] * inside[2]
    if total >= 1 << (type_.width - 1):
        return None
    return _merged(op, inner, (outside, inside, total), cx)


def _merged(
    op: ir.OpView,
    inner: ir.OpView,
    trips: tuple[tuple[int, int, int], tuple[int, int, int], int],
    cx: Rewriter,
) -> list[ir.Value]:
    outside, inside, total = trips
    type_ = op.operands[0].type

    def constant(value: int) -> ir.Value:
        return number(ir.IntegerAttr.get(type_, value), type_, cx)

    # Before the loop, that is, before it is made.
    bounds = [constant(value) for value in (0, total, 1)]
    count = constant(inside[2])
    scales = [(constant(stride), constant(start)) for start, stride, _ in (outside, inside)]
    new = cx.create("scf.for", bounds, [], regions=1)
    block = inner.regions[0].blocks[0]
    block.append_to(new.regions[0])
    variable = block.arguments[0]
    first = next(iter(block.operations))
    ip, location = ir.InsertionPoint(first), op.location
    made: list[ir.Operation] = []

    def step(name: str, left: ir.Value, right: ir.Value) -> ir.Value:
        made.append(
            ir.Operation.create(f"arith.{name}", [type_], [left, right], loc=location, ip=ip)
        )
        return made[-1].result

    for name, (stride, start) in zip(("divsi", "remsi"), scales, strict=True):
        step("addi", step("muli", step(name, variable, count), stride), start)
    outer_value, inner_value = made[2].result, made[5].result
    variable.replace_all_uses_except(inner_value, made)
    op.regions[0].blocks[0].arguments[0].replace_all_uses_with(outer_value)
    return []
