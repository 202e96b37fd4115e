"""Loops whose products by mma.sync find their fragments in registers: those of the next part of K
are read while this one is multiplied, from one iteration into the next, too.

    stages 0 .. S-1 are filled, each if there is such an iteration
    if there is an iteration: wait for stage 0; sync; read its first part
    for i:
        for each part of K but the last: read the next part; multiply this one
        wait for stage i+1; sync
        read the first part of stage i+1, or of stage i again where there is no more
        multiply the last part
        fill the stage that was read in this iteration for iteration i+S, if there is one

As `Multistage`, but that the meeting stands before the last part: tensor cores have work while
threads meet, and while shared memory answers behind that. All have read stage i by then, so that
copies run one iteration further ahead. Where threads copy nothing branches: copies for iterations
that do not exist are made by none, so that ptxas finds places for addresses and copies between
products.

Of two stages that the copy engine fills, the one that was read is filled right behind the meeting:
nothing else is under way then, and the next iteration waits for it before its last part. Of more,
behind the last part: the branch around the copies would keep its products waiting.

Several products of a step are made part by part, in turn; what two of them read alike is read once.

Block scales of a step are read with its first part, those of all parts at once: they take a
register for four of an atom. Scales that come otherwise than by loads of the loop stay as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from tile_cute.linear import subtile

from tile_core.mlir import ir
from tile_tileas.dialect import distributed, layout_of
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dot_plan import WARPS, atom_name, family_of, warps_of
from tile_tileas.dots import SCALED_FAMILY, Fragments, atom_named, product_shape
from tile_tileas.pipelining.cp_async import CpAsync
from tile_tileas.pipelining.filling import Slot
from tile_tileas.pipelining.multistage import Fillings, Multistage
from tile_tileas.pipelining.prefetch import Prefetch
from tile_tileas.storage import storage_bits
from tile_tileas.tma.homes import holder_in

_FAMILIES, _DOT, _COPY = ("mma.sync", SCALED_FAMILY), "nv_tileas.dot", "nv_tileas.copy"
#: The first of a product's block scales, those of A; B and its scales.
_SCALES, _OF_B = 3, (1, 4)
#: Stages that loops of products with scales have at least.
_STAGES_OF_SCALED = 3
#: Registers of a thread, and what a loop needs beside sums and fragments: addresses, counters.
_REGISTERS, _OTHER = 255, 48
_WORD = 32


@dataclass(frozen=True)
class _Part:
    """The fragments of one step along K of `buffer`, which is operand `at` of its products."""

    buffer: ir.Value
    at: int
    type_: ir.Type


def products_to_feed(loop: ir.OpView, loads: Sequence[Prefetch], stages: int) -> list[ir.OpView]:
    """The products of a loop whose fragments may be read ahead; none if they are not all such.

    They are on `mma.sync`, in as many parts along K, and read all that `loads` bring; each result
    is used behind the last one only. Their sums, two parts of their operands and their scales have
    to fit into registers. Where there are scales, there is one product. Elements that have scales
    are multiplied in about the time in which a stage comes: of two `stages` the next one would be
    waited for while parts that are there are not multiplied. RTX 5090 (model), e4m3, 4096^3 in
    tiles of 128 x 128 x 128, two stages: 269 us as they were, 342 ahead.
    """
    body = loop.regions[0].blocks[0].operations
    products = [op for op in body if op.operation.name == _DOT]
    if not products or not all(map(_can_be_fed, products)):
        return []
    scales = [at for product in products for at in _scales(product)]
    if scales and (len(products) > 1 or stages < _STAGES_OF_SCALED):
        return []
    if any(load.is_placed_by_memory for load in loads):
        return []  # copies for iterations that there are none of do nothing, but find their place
    filled = [load.target.alloc.results[0] for load in loads if load.target is not None]
    first = products[0]
    read = [copy.operands[0] for _, copy in _scales_read(first, filled)]
    operands = [value for product in products for value in list(product.operands)[:2]]
    wanted = {*operands, *read}
    if len(loads) != len(wanted) or set(filled) != wanted:
        return []
    if any(len(list(one.uses)) != 1 + [*operands, *read].count(one) for one in filled):
        return []  # a buffer has its copy and its products, or others read it
    if None in [_part_of_scales(first, at) for at in _scales(first)]:
        return []
    if len({_count(product) for product in products}) > 1 or not _are_used_behind(products):
        return []
    return products if _registers(products) <= _REGISTERS else []


def _can_be_fed(product: ir.OpView) -> bool:
    return family_of(product) in _FAMILIES and WARPS in product.attributes


def _are_used_behind(products: Sequence[ir.OpView]) -> bool:
    """Whether what uses the results of products stands behind the last one of them."""
    body = products[-1].operation.block
    found = {holder_in(body, use.owner) for product in products for use in product.results[0].uses}
    for op in body.operations:
        if op.operation in found:  # the last one, too, may add to what an earlier one gives
            return False
        if op.operation == products[-1].operation:
            return True
    return True


def _registers(products: Sequence[ir.OpView]) -> int:
    """Registers of a thread, by what has to be there at once."""
    held = [(product.results[0].type, 1) for product in products]
    held += [(part.type_, 2) for part in _parts_read(products)]
    held += [(product.operands[at].type, 2) for product in products for at in _scales(product)]
    bits = 0
    for type_, times in held:
        layout = layout_of(type_)
        assert layout is not None, "layouts are assigned"
        bits += times * layout.elements_per_thread * storage_bits(type_.element_type)
    return bits // _WORD + _OTHER


def _count(product: ir.OpView) -> int:
    """Steps of the instruction along K."""
    return _tiles(product)[0].shape[-1] // atom_named(atom_name(product)).k


def _scales(product: ir.OpView) -> range:
    """Which operands are the block scales of A and B, if it has any."""
    return range(_SCALES, len(list(product.operands)))


def _along_k(operand: int, rank: int) -> int:
    """The axis along K of A, of B, or of the scales of one of them."""
    return rank - (2 if operand in _OF_B else 1)


def _scales_read(product: ir.OpView, filled: Sequence[ir.Value]) -> list[tuple[int, ir.OpView]]:
    """Which operands are scales that come from buffers of `filled`, and what reads those."""
    found: list[tuple[int, ir.OpView]] = []
    for at in _scales(product):
        value = product.operands[at]
        owner = value.owner
        if isinstance(owner, ir.Block) or owner.name != _COPY or len(list(value.uses)) != 1:
            continue
        if owner.operation.block == product.operation.block and owner.operands[0] in filled:
            found.append((at, owner.opview))
    return found


def _part_of_scales(product: ir.OpView, at: int) -> ir.RankedTensorType | None:
    """What threads have of the scales `at` for one step along K, of their own; None without."""
    tile, count = product.operands[at].type, _count(product)
    layout, shape = layout_of(tile), list(tile.shape)
    assert layout is not None, "layouts are assigned"
    axis = _along_k(at, len(shape))
    if shape[axis] % count:
        return None
    shape[axis] //= count
    part = subtile(layout, shape)
    if part is None:
        return None
    plain = ir.RankedTensorType.get(shape, tile.element_type)
    return ir.RankedTensorType(distributed(plain, part))


def _tiles(product: ir.OpView) -> list[ir.RankedTensorType]:
    """The types of A and B, which lie in buffers."""
    buffers = [Buffer.of(value.type) for value in list(product.operands)[:2]]
    return [buffer.tile for buffer in buffers if buffer is not None]


def _parts(product: ir.OpView) -> list[_Part]:
    """What is read of A and B for one step of the instruction along K."""
    tiles = _tiles(product)
    a, b = (tuple(tile.shape) for tile in tiles)
    atom = atom_named(atom_name(product))
    shape = (*product_shape(a, b)[:3], atom.k)
    found: list[_Part] = []
    for at, (name, tile) in enumerate(zip("ab", tiles, strict=True)):
        layout = Fragments.of(atom, name, shape, len(a), warps_of(product)).whole
        plain = ir.RankedTensorType.get(layout.shape, tile.element_type)
        found.append(_Part(product.operands[at], at, distributed(plain, layout)))
    return found


def _parts_read(products: Sequence[ir.OpView]) -> list[_Part]:
    """The same of several products, once what two of them read alike."""
    return list(dict.fromkeys(part for product in products for part in _parts(product)))


class FragmentsAhead(Multistage):
    """One `scf.for` with the products that `products_to_feed` found."""

    def __init__(
        self, loop: ir.OpView, fillings: Fillings, stages: int, products: Sequence[ir.OpView]
    ) -> None:
        super().__init__(loop, fillings, stages, in_flight=-1)
        self._products = products
        by_engine = not any(isinstance(filling, CpAsync) for filling, _ in fillings)
        self._fills_early = by_engine and stages == 2
        self._count = _count(products[0])
        self._parts = _parts_read(products)
        #: Of each product, which parts are its A and B.
        self._own = [[self._parts.index(part) for part in _parts(one)] for one in products]
        filled = [load.target.alloc.results[0] for load in self.loads if load.target is not None]
        scaled = products[0]  # the only one where there are scales
        self._scales = _scales_read(scaled, filled)
        parts = ((at, _part_of_scales(scaled, at)) for at in _scales(scaled))
        self._scale_parts = {at: type_ for at, type_ in parts if type_ is not None}

    def _first_fillings(self) -> list[ir.Value]:
        """What later loads carry, and the first fragments."""
        places = super()._first_fillings()
        at, phase = self._at, self._at.constant(0) if self.phased else None
        slot = Slot(at.constant(0), phase)
        runs = at.is_less(at.wide(self.lower), at.wide(self.upper))

        def first() -> list[ir.Value]:
            self._wait(slot, self.ahead - 1)
            if any(isinstance(filling, CpAsync) for filling, _ in self.fillings):
                at.sync()  # what others copied is there; engines tell each thread
            return [*self._read_part(slot, 0), *self._read_scales(slot)]

        types = [part.type_ for part in self._parts]
        types += [copy.results[0].type for _, copy in self._scales]
        return [*places, *at.choice(runs, first, [at.zeros(type_) for type_ in types])]

    def _step(self, slot: Slot, places: list[ir.Value]) -> list[ir.Value]:
        at, first = self._at, len(places) - len(self._parts) - len(self._scales)
        places, (*held,) = places[:first], places[first:]
        scales = self._scales_of_step(held[len(self._parts) :])
        held = held[: len(self._parts)]
        totals = [product.operands[2] for product in self._products]
        at.move(ir.InsertionPoint(self._products[-1]))
        for number in range(1, self._count):
            following = self._read_part(slot, number)
            totals, held = self._multiplied(held, totals, scales, number - 1), following
        after = self._next_or_same(slot)
        self._wait(after, self.ahead - 2)
        at.sync()
        following = [*self._read_part(after, 0), *self._read_scales(after)]
        if self._fills_early:
            places = self._fetch_next(slot, places)
        totals = self._multiplied(held, totals, scales, self._count - 1)
        if not self._fills_early:
            places = self._fetch_next(slot, places)
        for product, total in zip(self._products, totals, strict=True):
            product.results[0].replace_all_uses_with(total)
            product.operation.erase()
        for _, copy in self._scales:
            copy.operation.erase()
        return [*places, *following]

    def _scales_of_step(self, carried: Sequence[ir.Value]) -> dict[int, ir.Value]:
        """By operand, the scales of all parts of a step: `carried` here, or those there are."""
        found = {at: self._products[0].operands[at] for at in self._scale_parts}
        return found | dict(zip((at for at, _ in self._scales), carried, strict=True))

    def _if_exists(
        self,
        exists: ir.Value,
        copies: Callable[[], list[ir.Value]],
        places: list[ir.Value],
        *,
        again: bool,
    ) -> list[ir.Value]:
        """In the loop without a branch, if addresses are harmless beyond its end."""
        by_threads = [filling for filling, _ in self.fillings if isinstance(filling, CpAsync)]
        if not again or len(by_threads) < len(self.fillings) or not self._harmless():
            return super()._if_exists(exists, copies, places, again=again)
        with ExitStack() as stack:
            for filling in by_threads:
                stack.enter_context(filling.only_if(exists))
            return copies()

    def _harmless(self) -> bool:
        """Whether places can be computed where there is no such iteration: nothing divides."""
        parts = [self.updates, *(load.slice for load in self.loads)]
        names = [op.operation.name for part in parts for op in part.ops]
        return not any("div" in name or "rem" in name for name in names)

    def _next_or_same(self, slot: Slot) -> Slot:
        """The slot of the next iteration; behind the last one its own, which holds something."""
        at, following = self._at, self._following(slot)
        _, exists = self._later(self.block.arguments[0], 1)

        def chosen(then: ir.Value, other: ir.Value) -> ir.Value:
            return at.create("arith.select", [exists, then, other], [at.i32]).result

        index = chosen(following.index, slot.index)
        if slot.phase is None or following.phase is None:
            return Slot(index)
        return Slot(index, chosen(following.phase, slot.phase))

    def _wait(self, slot: Slot, pending: int) -> None:
        """Until this thread's copies for a stage are there."""
        for filling, _ in self.fillings:
            filling.wait(self._at, slot, pending)

    def _read_part(self, slot: Slot, number: int) -> list[ir.Value]:
        """The fragments of part `number` along K of all that products read."""
        at, found = self._at, []
        for part in self._parts:
            buffer = self._buffer_of(part.buffer, slot)
            type_ = ir.RankedTensorType(part.type_)
            places = self._places(part.at, type_.rank, number)
            found.append(at.create("nv_tileas.extract_slice", [buffer, *places], [type_]).result)
        return found

    def _read_scales(self, slot: Slot) -> list[ir.Value]:
        """The scales of all parts of a step that lie in its stage."""
        found: list[ir.Value] = []
        for _, copy in self._scales:
            buffer = self._buffer_of(copy.operands[0], slot)
            read = copy.operation.clone(ip=self._at.place)
            read.operands[0] = buffer
            found.append(read.results[0])
        return found

    def _buffer_of(self, named: ir.Value, slot: Slot) -> ir.Value:
        """The stage in which the loop has what its body has in the buffer `named`."""
        targets = ((load, load.target) for load in self.loads)
        (load,) = (load for load, to in targets if to is not None and to.alloc.results[0] == named)
        stage = self._at.view(self._buffers[load.load.results[0]], slot.index)
        return self._at.reinterpret(stage, named.type)

    def _places(self, operand: int, rank: int, number: int) -> list[ir.Value]:
        """The indices of part `number` along K of an operand."""
        along = _along_k(operand, rank)
        return [self._at.constant(number if axis == along else 0) for axis in range(rank)]

    def _multiplied(
        self,
        held: Sequence[ir.Value],
        totals: Sequence[ir.Value],
        scales: dict[int, ir.Value],
        number: int,
    ) -> list[ir.Value]:
        """The sums with the products of part `number`; `scales` are those of all parts."""
        at, made = self._at, []
        for old, own, total in zip(self._products, self._own, totals, strict=True):
            attributes = {name: old.attributes[name] for name in old.attributes}
            with at.instead_of(old):
                parts = [
                    at.create(
                        "nv_tileas.extract_slice",
                        [scales[operand], *self._places(operand, type_.rank, number)],
                        [type_],
                    ).result
                    for operand, type_ in self._scale_parts.items()
                ]
                operands = [*(held[part] for part in own), total, *parts]
                dot = at.create("nv_tileas.dot", operands, [total.type], attributes)
            made.append(dot.result)
        return made
