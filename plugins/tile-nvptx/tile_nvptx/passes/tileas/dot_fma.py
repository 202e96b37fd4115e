"""Products without tensor cores: fused multiply-adds of operands in shared memory."""

from __future__ import annotations

from tile_cute.linear import LinearLayout
from tile_tileas.dot_plan import FmaPlan, plan_fma
from tile_tileas.dots import product_shape
from tile_tileas.scratch import OPERATION_LIMIT

from tile_core.convert import Conversion
from tile_core.mlir import ir
from tile_nvptx.passes.tileas.build import Builder
from tile_nvptx.passes.tileas.rules import state, text
from tile_nvptx.passes.tileas.shared import scratch_pointer
from tile_nvptx.passes.tileas.types import element_of, vector_of

#: Bits that one access to shared memory reads at most (PTX ISA, "ld").
_WIDEST = 128


class FmaProduct:
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
        shape = product_shape(self.layouts[0].shape, self.layouts[1].shape)
        self.plan: FmaPlan = plan_fma(op, shape, element.width, OPERATION_LIMIT)
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
