"""Bytes of A that lie along M in shared memory, put together to words along K for wgmma."""

from __future__ import annotations

from tile_cute.linear import LinearLayout
from tile_tileas.mma.interleaved import TURNED_LANES, byte_words

from tile_core.mlir import ir
from tile_nvptx.passes.tileas.thread.build import Builder
from tile_nvptx.passes.tileas.thread.state import Kernel

#: Selectors of `prmt` (PTX ISA, "prmt"). Of two words of rows, by place along K: bytes 0 of both
#: and bytes 1 of both, then bytes 2 and bytes 3.
_PAIRS = (0x5140, 0x7362)
#: What changes in them where the first word is one further along K.
_TURNED = 0x4444
#: Of two such pairs: the lower halves, the upper halves.
_HALVES = (0x5410, 0x7632)


def along_k(cx: Kernel, value: ir.Value, fragments: LinearLayout) -> ir.Value:
    """`value`, A as `as_read` has it, as the fragments that the instruction takes."""
    build = Builder(cx)
    lanes = fragments.bases["lane"]
    turned = cx.state.linear(cx, [_TURNED if basis == TURNED_LANES else 0 for basis in lanes])
    assert turned is not None, "fragments of bytes have such a lane"
    pairs = [build.binary("xori", turned, build.constant(selector)) for selector in _PAIRS]
    halves = [build.constant(selector) for selector in _HALVES]

    def permuted(first: ir.Value, second: ir.Value, selector: ir.Value) -> ir.Value:
        return build.intrinsic("llvm.nvvm.prmt", [first, second, selector], build.i32)

    words: dict[int, ir.Value] = {}
    for group in byte_words(fragments):
        rows = [_word(build, value, elements) for elements in group]
        for at, selector in zip(range(0, len(group[0]), 2), pairs, strict=False):
            low, high = (permuted(rows[k], rows[k + 1], selector) for k in (0, 2))
            for row, half in enumerate(halves):
                words[group[0][at + row] // 4] = permuted(low, high, half)
    joined = build.vector([words[number] for number in sorted(words)])
    return build.bitcast(joined, value.type)


def _word(build: Builder, value: ir.Value, elements: tuple[int, ...]) -> ir.Value:
    """Bytes of a vector as an i32, zeros behind the last of them."""
    picked = build.shuffle(value, elements)
    number = ir.IntegerType.get_signless(8 * len(elements))
    return build.widen(build.bitcast(picked, number), build.i32)
