"""tileas-pair-iterations: loops whose product is read in each iteration have two in turn.

Where every product has a scale of its own (those of blocks of 8-bit floats), threads read each sum
and add it to what they hold. A sum has one place in tensor memory: the next product begins when all
threads have read it, and then they wait for that. Of two iterations as one, one product is made
while threads work on the other.
"""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, option
from tile_tileas.analysis.users import counting_loops
from tile_tileas.kernel_spec import num_ctas


@dataclass(frozen=True)
class PairIterations(Pass):
    """Make two iterations one where each reads a product by tcgen05 that nothing else adds to, and
    tensor memory and shared memory have room for two.

    B200 (model), blocks of e4m3 with scales, 4096^3 in tiles of 128 x 128 x 128: 143 us with one
    iteration after the other, 103 so.
    """

    name = "tileas-pair-iterations"
    anchor = "func.func"
    statistics = {"loops": "loops of which two iterations are one"}

    strategy: str = option("unspecialize", "'none' leaves all loops as they are")

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        if self.strategy == "none" or num_ctas(op) > 1:
            return
        for loop in list(counting_loops(op)):
            from tile_tileas.prepare.pairs import in_pairs, pays  # loops alone need it

            if not pays(loop, op, cx.target):
                continue
            cx.passed(
                loop.operation,
                "two of its iterations are one: a product is made while the other one is read",
                category="pipeline",
                name="IterationsPaired",
            )
            cx.count("loops")
            in_pairs(loop)
