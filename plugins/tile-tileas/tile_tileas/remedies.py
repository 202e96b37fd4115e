"""What would change a refusal: the hints of remarks, by the words of their reasons.

Passes say why a better form was refused; what somebody who writes kernels can do about it stands
here once, whichever pass asks. A reason without a row cannot be changed in the kernel.
"""

from __future__ import annotations

from collections.abc import Iterable

#: Words of a reason -> what changes it. The first row that fits counts.
REMEDIES: tuple[tuple[str, str], ...] = (
    ("allow_tma is false", "leave `allow_tma` out"),
    ("the access is ordered", "weak accesses, without a memory order or scope, may be copied"),
    ("and tensor maps give zeros", "padding mode `zero`, or tiles that never reach past the end"),
    ("and those of tensor maps i32", "coordinates of 32 bits"),
    ("and tensor maps have up to", "an array of at most five axes; join some of them"),
    ("the function is no kernel", "tensor maps belong to kernels"),
    ("tiles of the view overlap", "a view whose steps are at least its tile"),
    ("after the kernel has written memory", "read before the first store, or in another kernel"),
    ("less than a byte", "elements of a byte or more"),
    ("known to lie contiguously", "an array whose innermost stride is 1, as a constant"),
    ("is no multiple of 16", "a tile whose innermost axis has a multiple of 16 bytes"),
    ("the address is not known to be", "an array whose address is assumed divisible by 16"),
    ("the stride of axis", "strides that are assumed divisible, so that rows begin at 16 bytes"),
    ("the extent of axis", "an extent that is assumed to be positive"),
    ("the view changes in a loop", "make the view before the loop"),
    ("depends on more than arguments", "make the view from arguments of the kernel only"),
    ("has no tensor maps", "sm_90 or later"),
    ("it does not pay: no loop", "nothing: waiting for the copy costs what the copy saves"),
    ("it does not pay: the tile goes to registers", "nothing: threads load what they use at once"),
    ("it does not pay: the tile has", "larger tiles"),
    ("it does not pay: no product", "nothing: threads store what they hold"),
    ("it does not pay", "nothing: another form is faster"),
    ("other accesses wait for the load", "loads whose tokens no store waits for"),
    ("that may conflict wait for the load", "loads whose tokens no store of the loop waits for"),
    ("the tile is used more than once", "load it once for each use, or use one product"),
    ("the tile is used under a branch", "use the tile outside of the branch"),
    ("the tile goes through", "load the tile in the shape and type in which it is used"),
    ("too short for cp.async", "a tile whose rows have 4 bytes or more that lie contiguously"),
    ("lie differently in global and shared", "an array whose layout is that of the operand"),
    ("it loads a single element", "nothing: threads load it an iteration ahead"),
    ("few of its elements", "nothing: threads load them an iteration ahead"),
    ("stand in branches or inner loops", "loads in the body of the loop itself"),
    ("fit into shared memory beside what follows it", "smaller tiles, of the result above all"),
    ("stages do not fit beside what follows", "smaller tiles, of the result above all"),
    ("other blocks may wait for its", "weak accesses alone, where no block waits for another one"),
    ("hide each other's beginnings", "nothing: another block multiplies meanwhile"),
    ("its step is not one", "a loop that counts tiles of K one by one"),
    ("the loop around it runs again itself", "one loop over all tiles"),
    ("what the run before has stored", "tokens of loads that come from before the loop over tiles"),
    ("is chosen by the loop around it", "views that are made before the loop over tiles"),
    ("depend on the run before", "places that follow from the counter of the loop over tiles"),
    ("two stages do not fit into shared memory", "smaller tiles, or `num_stages = 1`"),
    ("three stages do not fit into shared memory", "smaller tiles"),
    ("enough of them in flight", "nothing: other blocks hide the latency"),
    ("enough loads in flight", "nothing: other blocks hide the latency"),
    ("registers of a thread", "smaller tiles, or more warps"),
    ("there is a loop in its body", "only innermost loops overlap"),
    ("known only at the end of this one", "a `for` with a trip count that is known at its start"),
    ("no instruction multiplies", "f16, bf16, tf32, fp8 or i8 operands in multiples of 16"),
    ("no instruction for", "f16, bf16, tf32, fp8 or i8 operands in multiples of 16"),
)


def remedy(reasons: Iterable[str]) -> str:
    """What would change the first of `reasons` that somebody can change; empty if none."""
    for reason in reasons:
        for words, cure in REMEDIES:
            if words in reason:
                return cure
    return ""
