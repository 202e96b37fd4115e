"""Parts of kernels for sm_100a in PTX that the products of `gemm_sm100.py` and
`gemm_sm100_pair.py` share: copies of both operands, their products, waits, the way out."""

from __future__ import annotations

from dataclasses import dataclass

ROWS = 128  # of A and of the accumulators, in one CTA


@dataclass(frozen=True)
class Step:
    """One step along K of a CTA: columns of B that it holds, K, stages, bytes of a row of a box,
    whether a copy takes the boxes of all rows at once, and how many CTAs multiply together."""

    n: int
    k: int
    stages: int
    box: int = 128
    planes: bool = False
    ctas: int = 1

    @property
    def a_bytes(self) -> int:
        return ROWS * self.k * 2

    @property
    def bytes(self) -> int:
        """Of a stage."""
        return self.a_bytes + self.n * self.k * 2

    @property
    def operands(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """A and B in a stage: the first byte, and rows."""
        return (0, ROWS), (self.a_bytes, self.n)

    def copies(self, stage: str, step: str, places: tuple[str, str], barrier: str) -> str:
        """Both operands of a step into the stage at address `stage`, by one thread. `places` are
        the rows in the arrays; the maps are %rd1 and %rd2."""
        wide, group = self.box // 2, f".cta_group::{self.ctas}" if self.ctas > 1 else ""
        space = "cluster" if self.ctas > 1 else "cta"
        copy = f"cp.async.bulk.tensor.{3 if self.planes else 2}d.shared::{space}.global.tile" + (
            f".mbarrier::complete_tx::bytes{group}"
        )
        text = f"mul.lo.u32 %r23, {step}, {self.k // wide if self.planes else self.k};\n"
        for (first, rows), source, row in zip(
            self.operands, ("%rd1", "%rd2"), places, strict=True
        ):  # fmt: skip
            for part in range(1 if self.planes else self.k // wide):
                where = f"0, {row}, %r25" if self.planes else f"%r25, {row}"
                text += (f"add.u32 %r24, {stage}, {first + part * rows * self.box}; "
                         f"add.u32 %r25, %r23, {part * wide};\n"
                         f"{copy} [%r24], [{source}, {{{where}}}], [{barrier}];\n")  # fmt: skip
        return text

    def products(self, stage: str, step: str, accumulators: str) -> str:
        """The products of the stage at address `stage`, by one thread; the first of a tile does
        not add. %r15 describes them."""
        # Rows of 128 swizzled bytes, 8 rows 1024 bytes apart; or cores of 8 rows of 16 bytes.
        word = (1 << 46 | 64 << 32 | 1 << 16 | 2 << 61) if self.box == 128 else 1 << 46 | 8 << 32
        text = f"setp.ne.u32 %p8, {step}, 0; setp.eq.u32 %p9, {stage}, {stage};\n"
        for part in range(self.k // 16):
            at, more = divmod(part * 32, self.box) if self.box == 128 else (2 * part, 0)
            for name, (first, rows) in zip(("%rd10", "%rd11"), self.operands, strict=True):
                lead = rows << 16 if self.box < 128 else 0
                text += (f"add.u32 %r32, {stage}, {first + at * rows * self.box + more}; "
                         "shr.u32 %r32, %r32, 4; cvt.u64.u32 "
                         f"{name}, %r32; or.b64 {name}, {name}, {word | lead};\n")  # fmt: skip
            text += (f"tcgen05.mma.cta_group::{self.ctas}.kind::f16 [{accumulators}], %rd10, "
                     f"%rd11, %r15, {'%p9' if part else '%p8'};\n")  # fmt: skip
        return text

    def following(self, stage: str, phase: str) -> str:
        """To the stage that comes next; the phase changes with each round."""
        return following(stage, phase, self.stages)


def following(stage: str, phase: str, count: int) -> str:
    """`stage` + 1, and after `count` of them the other phase."""
    return (f"add.u32 {stage}, {stage}, 1; setp.eq.u32 %p6, {stage}, {count}; "
            f"@%p6 mov.u32 {stage}, 0; @%p6 xor.b32 {phase}, {phase}, 1;\n")  # fmt: skip


def wait(label: str, where: str, phase: str) -> str:
    return (f"{label}: mbarrier.try_wait.parity.shared.b64 %p5, [{where}], {phase}; "
            f"@!%p5 bra {label};\n")  # fmt: skip


def described(n: int, rows: int) -> int:
    """The instruction descriptor: f16 by f16 into f32, `rows` by `n`."""
    return 1 << 4 | n // 8 << 17 | rows // 16 << 24


def stored(n: int, wide: int = 8) -> str:
    """A row of accumulators a thread, from %r42 on, to C at %rd12, `wide` columns at a time."""
    regs = ", ".join(f"%t{i}" for i in range(wide))
    text = ""
    for column in range(0, n, wide):
        text += f"""add.u32 %r43, %r42, {column};
tcgen05.ld.sync.aligned.32x32b.x{wide}.b32 {{{regs}}}, [%r43]; tcgen05.wait::ld.sync.aligned;
"""
        for pair in range(wide // 2):
            text += (f"mov.b32 %f0, %t{2 * pair}; mov.b32 %f1, %t{2 * pair + 1}; "
                     f"cvt.rn.f16x2.f32 %h{pair}, %f1, %f0;\n")  # fmt: skip
        halves = ", ".join(f"%h{pair}" for pair in range(wide // 2))
        text += f"st.global.v{wide // 2}.b32 [%rd12+{2 * column}], {{{halves}}};\n"
    return text
