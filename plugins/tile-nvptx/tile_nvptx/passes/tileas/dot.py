"""dot: tensor cores on fragments, or fused multiply-adds of operands in shared memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from tile_cute.atoms import MmaAtom
from tile_cute.linear import LinearLayout
from tile_tileas.dot_plan import FmaPlan, atom_name, plan_fma
from tile_tileas.dot_stage import Stage, stages
from tile_tileas.dots import FMA, Grid, atom_named, fragment, grid_of, product_shape
from tile_tileas.scratch import OPERATION_LIMIT

from tile_core.convert import Conversion
from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_nvptx.passes.tileas.build import Builder
from tile_nvptx.passes.tileas.convert_layout import RoundTrip, join
from tile_nvptx.passes.tileas.mma_text import Counts, mma_fragments
from tile_nvptx.passes.tileas.rules import rules, state, text
from tile_nvptx.passes.tileas.shared import scratch_pointer
from tile_nvptx.passes.tileas.types import element_of, storage_type, vector_of

#: Bits that one access to shared memory reads at most (PTX ISA, "ld").
_WIDEST = 128


@rules.on("nv_tileas.dot")
def dot(op: ir.OpView, cx: Conversion) -> ir.Value:
    """dot {atom} => mma.sync on whole fragments, or "fma": a loop over K in shared memory"""
    if atom_name(op) == FMA:
        return _Fma(op, cx).run()
    return _tensor_cores(op, cx)


def _shape(op: ir.OpView, cx: Conversion) -> tuple[int, int, int, int]:
    """(B, M, N, K), from layouts: operands are vectors by now."""
    a, b = (state(cx).operand_layout(op, at).shape for at in (0, 1))
    return product_shape(a, b)


def _tensor_cores(op: ir.OpView, cx: Conversion) -> ir.Value:
    atom, shape = atom_named(atom_name(op)), _shape(op, cx)
    layout = state(cx).operand_layout(op, 2)
    grid = grid_of(atom, shape, state(cx).num_warps, layout)
    if grid is None:
        raise error_at(op, f"has an accumulator that is no tile of {atom}: {layout}")
    batch, m, n, k = shape
    counts = (
        max(1, batch // grid[0]),
        max(1, m // (grid[1] * atom.m)),
        max(1, n // (grid[2] * atom.n)),
        k // atom.k,
    )
    return _TensorCores(op, cx, atom, counts, _sources(op, cx, atom, shape, grid)).run()


def _sources(
    op: ir.OpView, cx: Conversion, atom: MmaAtom, shape: tuple[int, int, int, int], grid: Grid
) -> list[_Held | _Staged]:
    """Where A and B come from: registers, or shared memory that they are written to here."""
    found = state(cx)
    layouts = [found.operand_layout(op, at) for at in (0, 1)]
    rank = layouts[0].rank
    a, b = (fragment(atom, operand, shape, rank, grid) for operand in "ab")
    values = list(op.operands)[:2]
    plans = stages((layouts[0], layouts[1]), (a, b), storage_type(element_of(values[0].type)).width)
    if plans is None:
        raise error_at(op, f"has operands that are no tiles of {atom}: {layouts[0]}, {layouts[1]}")
    if "barrier_before" in op.attributes:
        Builder(cx).barrier()
    sources: list[_Held | _Staged] = []
    for value, stage in zip(values, plans[0], strict=True):
        sources.append(_Held(value) if stage is None else _Staged.of(op, cx, value, stage))
    if any(stage is not None for stage in plans[0]):
        Builder(cx).barrier()
    return sources


@dataclass
class _Held:
    """An operand whose fragment is in registers."""

    value: ir.Value

    def registers(self, cx: Conversion, picks: list[int]) -> ir.Value:
        """The fragment's registers `picks`."""
        return Builder(cx).shuffle(self.value, picks)


@dataclass
class _Staged:
    """An operand in shared memory; each load happens when its first register is asked for."""

    trip: RoundTrip
    element: ir.Type
    loaded: dict[int, ir.Value] = field(default_factory=dict)

    @staticmethod
    def of(op: ir.OpView, cx: Conversion, value: ir.Value, stage: Stage) -> _Staged:
        """Store the operand; the caller places the barrier."""
        plan, start = stage
        trip = RoundTrip(cx, plan, scratch_pointer(op, cx, start), Builder(cx).to_storage(value))
        trip.store()
        return _Staged(trip, element_of(value.type))

    def registers(self, cx: Conversion, picks: list[int]) -> ir.Value:
        """The fragment's registers `picks`."""
        accesses = self.trip.plan.load.accesses[0]
        place = {
            slot: (number, at)
            for number, access in enumerate(accesses)
            for at, slot in enumerate(access.registers)
        }
        wanted = [place[self.trip.plan.gather[pick]] for pick in picks]
        needed = sorted({number for number, _ in wanted})
        for number in needed:
            if number not in self.loaded:
                self.loaded[number] = self.trip.load(accesses[number])
        b, starts, total = Builder(cx), dict[int, int](), 0
        for number in needed:
            starts[number] = total
            total += len(accesses[number].registers)
        joined = join(b, [self.loaded[number] for number in needed])
        order = b.shuffle(joined, [starts[number] + at for number, at in wanted])
        return b.from_storage(order, self.element)


@dataclass
class _TensorCores:
    """C + A B, one step of the atom along K after the other."""

    op: ir.OpView
    cx: Conversion
    atom: MmaAtom
    counts: Counts  # atoms of a warp along B, M, N, K
    sources: list[_Held | _Staged]

    def run(self) -> ir.Value:
        """The new accumulator."""
        batches, ms, ns, ks = self.counts
        total = self.op.operands[2]
        for k in range(ks):
            a = self._step(0, batches * ms, k)
            b = self._step(1, batches * ns, k)
            elements = (str(element_of(a.type)), str(element_of(b.type)))
            name, body = mma_fragments(
                self.atom, (*elements, str(element_of(total.type))), (batches, ms, ns, 1)
            )
            helpers = state(self.cx).helpers
            total = helpers.call(self.cx, name, body, [a, b, total], total.type).result
        return total

    def _step(self, at: int, atoms: int, k: int) -> ir.Value:
        """Fragments of step `k` of all atoms; K follows the atom's own bits (see `fragment`)."""
        layout = self.atom.b_layout if at else self.atom.a_layout
        assert layout is not None
        size, ks = layout.elements_per_thread, self.counts[3]
        picks = [(i * ks + k) * size + r for i in range(atoms) for r in range(size)]
        return self.sources[at].registers(self.cx, picks)


class _Fma:
    """A product without tensor cores.

    A and B go to shared memory, a part of K at a time, as [K, B, M] and [K, B, N]. Each thread
    then walks along K: it reads the rows and columns that its accumulator needs and multiplies.
    f16, bf16 and smaller floats are multiplied and accumulated in f32, and rounded once.
    """

    def __init__(self, op: ir.OpView, cx: Conversion) -> None:
        self.op, self.cx, self.b = op, cx, Builder(cx)
        found = state(cx)
        self.layouts = [found.operand_layout(op, at) for at in range(3)]
        element = element_of(op.operands[0].type)
        self.plan: FmaPlan = plan_fma(op, _shape(op, cx), element.width, OPERATION_LIMIT)
        self.base = scratch_pointer(op, cx)
        self.result = element_of(op.operands[2].type)
        narrow = isinstance(self.result, ir.FloatType) and self.result.width < 32
        self.kind = ir.F32Type.get() if narrow else self.result

    def run(self) -> ir.Value:
        """The new accumulator."""
        parts = self.plan.shape[3] // self.plan.step
        total = self._cast(self.op.operands[2], self.kind)
        for part in range(parts):
            if part or "barrier_before" in self.op.attributes:
                self.b.barrier()
            for at in (0, 1):
                self._write(at, part)
            self.b.barrier()
            total = self._walk(total)
        return self._cast(total, self.result)

    # -- operands to shared memory -----------------------------------------------------------

    def _k_axis(self, at: int) -> int:
        return self.layouts[at].rank - (1 if at == 0 else 2)

    def _steps(self, at: int) -> list[int]:
        """What one step along each axis of an operand adds to the element's place."""
        batch, m, n, _ = self.plan.shape
        extent = m if at == 0 else n
        other_axis = self.layouts[at].rank - (2 if at == 0 else 1)
        steps = [extent] * self.layouts[at].rank  # the batch, where there is one
        steps[other_axis] = 1
        steps[self._k_axis(at)] = batch * extent
        return steps

    def _start(self, at: int) -> ir.Value:
        return self.b.offset(self.base, self.plan.b_offset if at else 0, self.b.i8)

    def _write(self, at: int, part: int) -> None:
        """Store what threads hold of operand `at` in a part of K; each element once."""
        owner = state(self.cx).holds_unique(self.cx, self.layouts[at])
        if owner is None:
            self._store(at, part)
            return
        branch = self.cx.create("scf.if", [owner], regions=2)
        with self.cx.at(ir.InsertionPoint(branch.regions[0].blocks.append())):
            self._store(at, part)
            self.cx.create("scf.yield")

    def _store(self, at: int, part: int) -> None:
        layout, axis, steps = self.layouts[at], self._k_axis(at), self._steps(at)
        stored = self.b.to_storage(self.op.operands[at])
        element = element_of(stored.type)
        thread = self._thread_place(layout, steps)
        copies = layout.free_mask("register")
        first = part * self.plan.step
        start = self._start(at)
        for register, coords in enumerate(layout.coords("register")):
            if register & copies or not first <= coords[axis] < first + self.plan.step:
                continue
            inside = [c - first if dim == axis else c for dim, c in enumerate(coords)]
            own = sum(c * step for c, step in zip(inside, steps, strict=True))
            place = self._join(thread, own)
            one = self.b.shuffle(stored, [register])
            self.b.store(one, self.b.offset(start, place, element), element.width // 8)

    def _thread_place(self, layout: LinearLayout, steps: list[int]) -> ir.Value | None:
        """The thread's part of the place of its elements; extents are powers of two, so that
        parts join by XOR.
        """
        bits = (*layout.bases["lane"], *layout.bases["warp"])
        places = [sum(c * step for c, step in zip(b, steps, strict=True)) for b in bits]
        return state(self.cx).linear(self.cx, tuple(places))

    def _join(self, thread: ir.Value | None, own: int) -> ir.Value | int:
        return own if thread is None else self.b.with_constant("xori", thread, own)

    # -- the walk along K -----------------------------------------------------------------------

    def _walk(self, total: ir.Value) -> ir.Value:
        """total + A B over the part of K that lies in shared memory."""
        bounds = [self.b.constant(value) for value in (0, self.plan.step, 1)]
        loop = self.cx.create("scf.for", [*bounds, total], [total.type], regions=1)
        body = loop.regions[0].blocks.append(self.b.i32, total.type)
        with self.cx.at(ir.InsertionPoint(body)):
            k, before = body.arguments
            left, right = self._read(0, k), self._read(1, k)
            self.cx.create("scf.yield", [self._multiply(left, right, before)])
        return loop.result

    def _read(self, at: int, k: ir.Value) -> ir.Value:
        """For each register of the accumulator the element of operand `at` that it needs."""
        needed = self._needed(at)
        places = sorted(set(needed))
        element = element_of(self.op.operands[at].type)
        batch, m, n, _ = self.plan.shape
        row = self.b.with_constant("muli", k, batch * (n if at else m))
        start = self.b.offset(self._start(at), row, element)
        thread = self._accumulator_place(at)
        run = _run(places, self._thread_mask(at), _WIDEST // element.width)
        loaded = []
        for first in range(0, len(places), run):
            pointer = self.b.offset(start, self._join(thread, places[first]), element)
            type_ = vector_of(run, element)
            loaded.append(self.b.load(pointer, type_, run * element.width // 8))
        picked = self.b.concat(loaded)
        wide = self._cast(picked, self.kind, at)
        where = {place: index for index, place in enumerate(places)}
        return self.b.shuffle(wide, [where[place] for place in needed])

    def _accumulator_steps(self, at: int) -> list[int]:
        """What a step along each axis of C adds to a place in a row of operand `at`."""
        _, m, n, _ = self.plan.shape
        steps = [n if at else m, 0, 1] if at else [m, 1, 0]
        return steps[-self.layouts[2].rank :]

    def _needed(self, at: int) -> list[int]:
        steps = self._accumulator_steps(at)
        coords = self.layouts[2].coords("register")
        return [sum(c * step for c, step in zip(x, steps, strict=True)) for x in coords]

    def _thread_places(self, at: int) -> list[int]:
        steps, layout = self._accumulator_steps(at), self.layouts[2]
        bits = (*layout.bases["lane"], *layout.bases["warp"])
        return [sum(c * step for c, step in zip(b, steps, strict=True)) for b in bits]

    def _accumulator_place(self, at: int) -> ir.Value | None:
        return state(self.cx).linear(self.cx, tuple(self._thread_places(at)))

    def _thread_mask(self, at: int) -> int:
        mask = 0
        for place in self._thread_places(at):
            mask |= place
        return mask

    def _multiply(self, left: ir.Value, right: ir.Value, total: ir.Value) -> ir.Value:
        if isinstance(self.kind, ir.FloatType):
            operands = [left, right, total]
            return self.cx.create("llvm.intr.fma", operands, [total.type]).result
        return self.b.binary("addi", total, self.b.binary("muli", left, right))

    def _cast(self, value: ir.Value, kind: ir.Type, at: int = 2) -> ir.Value:
        """`value` with elements of `kind`; integers of operand `at` by its signedness."""
        before = element_of(value.type)
        if before == kind:
            return value
        if isinstance(kind, ir.FloatType):
            name = "arith.extf" if before.width < kind.width else "arith.truncf"
        else:
            signed = text(self.op, f"signedness_{'ab'[at]}") == "signed"
            name = "arith.extsi" if signed else "arith.extui"
        type_ = vector_of(value.type.shape[0], kind)
        return self.cx.create(name, [value], [type_]).result


def _run(places: list[int], threads: int, widest: int) -> int:
    """How many neighbours, up to `widest`, each aligned group of the sorted `places` holds, so
    that one access reads them; `threads` are bits that the thread's own part may set.
    """
    run = 1
    while run < widest and len(places) % (2 * run) == 0 and not threads & run:
        run *= 2
        starts = range(0, len(places), run)
        if any(places[s] % run or places[s + run - 1] != places[s] + run - 1 for s in starts):
            return run // 2
    return run
