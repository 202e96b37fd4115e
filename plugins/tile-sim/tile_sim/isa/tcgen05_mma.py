"""`tcgen05.mma`: one thread starts a product whose accumulators are in tensor memory."""

from __future__ import annotations

from tile_sim.isa.bulk import lanes_of
from tile_sim.isa.common import B64, PRED, U32
from tile_sim.isa.tcgen05 import take_cta_group
from tile_sim.isa.tcgen05_product import Product, Variant, Work
from tile_sim.machine.group import Group
from tile_sim.machine.local import threads
from tile_sim.machine.tmem import Step
from tile_sim.numeric import umma
from tile_sim.program.decode import Decode, Exec, Getter, instruction
from tile_sim.ptx.syntax import Address, Name, Operand, Vector

_VECTORS = {"block16": "4X", "block32": "2X", "1X": "1X", "2X": "2X", "4X": "4X"}
_COLLECTOR = ("fill", "use", "lastuse", "discard")


@instruction("tcgen05.mma")
def mma(cx: Decode) -> Exec:
    variant = _variant(cx)
    operands = _Operands(cx, variant)
    if variant.ashift and not operands.a_in_tmem:
        cx.fail(".ashift needs A in tensor memory")

    def execute(g: Group) -> None:
        works = operands.read(g)
        if g.wave.unmade is not None and "products" in g.wave.settings.skipped:
            _only_told(g, variant, works)
            return
        for i, (thread, row) in enumerate(zip(threads(g), g.lane_rows(), strict=True)):
            work, word = works[i]
            form = umma.decode(word, variant.kind, variant.group, variant.sparse, variant.ws)
            product = Product(g.wave, int(g.wave.cta_of[row]), form, work, variant, int(thread))
            writes = product.mark()
            if g.wave.counters is not None:
                g.wave.counters.products(g.wave, form.m * form.n * form.k)
            if g.wave.trace is not None:
                shape = (form.m, form.n, form.k)
                g.wave.trace.product(g.wave, int(row), shape, variant.group == 2, work.a_in_tmem)
            if g.wave.monitor is not None:
                product.observe(int(row))
            skipped = "products" in g.wave.settings.skipped
            run = product.forget if skipped else product.run
            g.wave.tmem.issue(int(thread), Step(run, writes=writes))

    return execute


def _only_told(g: Group, variant: Variant, works: list[tuple[Work, int]]) -> None:
    """Of products whose results nobody asks for, a recorder hears."""
    wave = g.wave
    for (work, word), row in zip(works, g.lane_rows(), strict=True):
        form = umma.decode(word, variant.kind, variant.group, variant.sparse, variant.ws)
        if wave.trace is not None:
            shape = (form.m, form.n, form.k)
            wave.trace.product(wave, int(row), shape, variant.group == 2, work.a_in_tmem)
        wave.progress += 1


def _variant(cx: Decode) -> Variant:
    ws, sparse, group = cx.flag("ws"), cx.flag("sp"), take_cta_group(cx)
    kind = cx.prefixed("kind::")
    if kind not in umma.KINDS:
        cx.fail(f"unknown kind {kind!r}")
    scaled = cx.flag("block_scale")
    if scaled != (kind in umma.SCALED):
        cx.fail(
            f".kind::{kind} and .block_scale do not go together" if scaled else "needs .block_scale"
        )
    if ws and (scaled or group == 2):
        cx.fail(f".ws goes with neither .block_scale nor .cta_group::2 (.kind::{kind})")
    vector = cx.prefixed("scale_vec::") or cx.option("block16", "block32")
    ashift = cx.flag("ashift")
    if ashift and (ws or scaled):
        cx.fail(".ashift goes with neither .ws nor .block_scale")
    _take_collector(cx, ws, ashift)
    cx.done()
    blocks = _blocks(cx, kind, vector) if scaled else 0
    return Variant(kind, group, sparse, ws, ashift, blocks)


def _take_collector(cx: Decode, ws: bool, ashift: bool) -> None:
    """A hint: what the collector buffers keep changes no result."""
    usage = cx.prefixed("collector::")
    if usage is None:
        return
    buffer, _, op = usage.partition("::")
    legal = ("b0", "b1", "b2", "b3") if ws else ("a",)
    if buffer not in legal or op not in _COLLECTOR:
        cx.fail(f".collector::{usage} is not legal here")
    if ashift and op in ("use", "fill"):
        cx.fail(f".ashift does not go with .collector::{usage}")


def _blocks(cx: Decode, kind: str, vector: str | None) -> int:
    """Scale factors along K."""
    default = {"mxf8f6f4": "1X", "mxf4": "2X"}.get(kind)
    name = _VECTORS.get(vector or default or "")
    legal = {"mxf8f6f4": ("1X",), "mxf4": ("2X",), "mxf4nvf4": ("2X", "4X")}[kind]
    if vector == "block32" and kind == "mxf8f6f4":
        name = "1X"
    if name is None or name not in legal:
        cx.fail(f"scale vector {vector} does not fit .kind::{kind}")
    return int(name[0])


class _Operands:
    """Decoded operands: `[d], a, b {, [metadata]}, idesc {, [sfa], [sfb]} {, {lanes}}, enable
    {, scale-d}`, and with .ws a zero-column mask at the end."""

    def __init__(self, cx: Decode, variant: Variant) -> None:
        rest = list(cx.operands)
        self.d = self._tensor(cx, self._next(cx, rest))
        first = self._next(cx, rest)
        self.a_in_tmem = isinstance(first, Address)
        self.a = self._tensor(cx, first) if self.a_in_tmem else cx.src(first, B64)
        self.b = cx.src(self._next(cx, rest), B64)
        self.metadata = self._tensor(cx, self._next(cx, rest)) if variant.sparse else None
        self.idesc = cx.src(self._next(cx, rest), U32)
        self.scales: list[Getter] = []
        if variant.blocks:
            self.scales = [self._tensor(cx, self._next(cx, rest)) for _ in range(2)]
        self.disabled = self._lanes(cx, rest, variant)
        self.enable = cx.src(self._next(cx, rest), PRED)
        self.mask = cx.src(rest.pop(0), B64) if rest and variant.ws else None
        self.scale_d = self._scale_d(cx, rest, variant)
        if rest:
            cx.fail(f"takes {len(cx.operands) - len(rest)} operands, found {len(cx.operands)}")

    def _next(self, cx: Decode, rest: list[Operand]) -> Operand:
        if not rest:
            cx.fail("an operand is missing")
        return rest.pop(0)

    def _tensor(self, cx: Decode, operand: object) -> Getter:
        if not isinstance(operand, Address) or not isinstance(operand.base, Name):
            cx.fail("needs a tensor memory address [taddr]")
        return cx.src(operand.base, U32)

    def _lanes(self, cx: Decode, rest: list[Operand], variant: Variant) -> list[Getter]:
        """Disable-output-lane: 4 words for each CTA."""
        if not rest or not isinstance(rest[0], Vector):
            return []
        items = cx.vector(rest.pop(0))
        if variant.ws or variant.blocks or len(items) != 4 * variant.group:
            cx.fail(f"disable-output-lane with {len(items)} words is not legal here")
        return [cx.src(item, U32) for item in items]

    def _scale_d(self, cx: Decode, rest: list[Operand], variant: Variant) -> int:
        if not rest:
            return 0
        if variant.kind not in ("f16", "tf32") or variant.ws:
            cx.fail("only .kind::f16 and .kind::tf32 without .ws scale the input D")
        shift = cx.constant(rest.pop(0))
        if not 0 <= shift <= 15:
            cx.fail(f"scale-input-d {shift} is not in 0 .. 15")
        return shift

    def read(self, g: Group) -> list[tuple[Work, int]]:
        """What each issuing thread gave, with its instruction descriptor."""
        d, a, b, words = (lanes_of(g, get) for get in (self.d, self.a, self.b, self.idesc))
        count = len(d)
        enable = lanes_of(g, self.enable)
        scale_a, scale_b = [lanes_of(g, get) for get in self.scales] or [[0] * count] * 2
        metadata = lanes_of(g, self.metadata) if self.metadata else [0] * count
        mask = lanes_of(g, self.mask) if self.mask else [0] * count
        disabled = [lanes_of(g, get) for get in self.disabled]
        works = (
            Work(
                d[i], a[i], b[i], bool(enable[i]), self.a_in_tmem, scale_a[i], scale_b[i],
                self.scale_d, metadata[i], mask[i], tuple(int(w[i]) for w in disabled),
            )
            for i in range(count)
        )  # fmt: skip
        return list(zip(works, words, strict=True))
