"""Token order: which accesses an access to global memory waits for.

The language orders accesses by tokens and by nothing else (Tile IR, memory model): two accesses
without a path of tokens between them may happen in either order, whatever the program's order.
Tokens pass through accesses, joins, branches and loops.
"""

from __future__ import annotations

from collections.abc import Collection

from tile_core.mlir import ir

LOADS = ("nv_tileas.load", "nv_tileas.tiled_load")
#: Loads by cp.async, into shared memory.
ASYNC_LOADS = ("nv_tileas.async_load", "nv_tileas.async_tiled_load")
STORES = ("nv_tileas.store", "nv_tileas.tiled_store")
#: Stores that tensor maps make; they land some time later.
BULK_STORES = (
    "nv_tileas.async_scatter_tma_store", "nv_tileas.async_tiled_tma_reduce",
    "nv_tileas.async_tiled_tma_store",
)  # fmt: skip
ATOMICS = ("nv_tileas.atomic_cas", "nv_tileas.atomic_rmw", "nv_tileas.multimem")
ACCESSES = (*LOADS, *STORES, *BULK_STORES, *ATOMICS)
#: Operations that make tokens of tokens, or of nothing.
PASSING = ("nv_tileaa.create_mem_token", "nv_tileaa.join_mem_token", "ub.poison")
#: The first operand of `scf.for` that its body carries.
_FIRST_CARRIED = 3


def is_weak(op: ir.OpView | ir.Operation) -> bool:
    """Whether nobody outside the tile block may rely on when the access happens."""
    if op.operation.name in BULK_STORES:  # of the asynchronous proxy, whose accesses all are weak
        return True
    return ir.StringAttr(op.attributes["mem_semantic"]).value == "weak"


def only_reads(op: ir.OpView | ir.Operation) -> bool:
    """Whether the access leaves memory as it is."""
    return op.operation.name in (*LOADS, *ASYNC_LOADS)


def waiting_for(token: ir.Value, loop: ir.OpView | None = None) -> list[ir.OpView]:
    """Every operation that waits for `token`, directly or through others; with `loop`, which makes
    the token in its body, those of its iterations, not what comes behind it.
    """
    found: list[ir.OpView] = []
    seen: set[ir.Value] = set()
    stack = [token]
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen.add(value)
        for use in value.uses:
            user = use.owner
            op = user.opview if isinstance(user, ir.Operation) else user
            passed = _passed_on(op, use.operand_number, loop)
            if passed is None:
                found.append(op)
                passed = [result for result in op.results if result.type == token.type]
            stack += passed
    return found


def entering(token: ir.Value, loop: ir.OpView) -> list[ir.Value] | None:
    """The tokens from before `loop` that one of its body waits for; None if it waits for an access
    of the loop that does more than read.
    """
    body = loop.regions[0].blocks[0]
    found: list[ir.Value] = []
    seen: set[ir.Value] = set()
    stack = [token]
    while stack:
        value = stack.pop()
        if value in seen:
            continue
        seen.add(value)
        owner = value.owner
        if not _is_inside(owner if isinstance(owner, ir.Block) else owner.operation.block, body):
            found.append(value)
            continue
        if not isinstance(owner, ir.Block) and owner.name in ACCESSES:
            if not (only_reads(owner) and is_weak(owner)):
                return None
        elif not isinstance(owner, ir.Block) and owner.name not in (*PASSING, "scf.for", "scf.if"):
            return None
        stack += _sources(value)
    return found


def _is_inside(block: ir.Block, body: ir.Block) -> bool:
    """Whether `block` is `body`, or stands in an operation of it."""
    while block != body:
        holder = block.owner
        if holder.operation.name == "func.func" or holder.operation.parent is None:
            return False
        block = holder.operation.block
    return True


class TokenOrder:
    """What comes before what; answers are kept, so the tokens must not change meanwhile.

    Accesses stand under their first result, since operations hash by content. `accesses` are
    their names. Without `carried`, what loops carry and give is left out: the answer is what comes
    before within an iteration, of what no loop stands between.
    """

    def __init__(self, accesses: Collection[str] = ACCESSES, *, carried: bool = True) -> None:
        self._before: dict[ir.Value, frozenset[ir.Value]] = {}
        self._accesses = accesses
        self._carried = carried

    def before(self, token: ir.Value) -> frozenset[ir.Value]:
        """Every access that `token` waits for, directly or through other accesses."""
        if token not in self._before:
            self._before[token] = frozenset(self._reach(token))
        return self._before[token]

    def _reach(self, token: ir.Value) -> set[ir.Value]:
        found: set[ir.Value] = set()
        seen: set[ir.Value] = set()
        stack = [token]
        while stack:
            value = stack.pop()
            if value in seen:
                continue
            seen.add(value)
            if not isinstance(value.owner, ir.Block) and value.owner.name in self._accesses:
                found.add(value.owner.results[0])
            if self._carried or not _is_of_loop(value):
                stack += _sources(value)
        return found


def _is_of_loop(token: ir.Value) -> bool:
    """Whether a loop carries or gives a token."""
    return isinstance(token.owner, ir.Block) or token.owner.name in ("scf.for", "scf.while")


def _sources(token: ir.Value) -> list[ir.Value]:
    """The tokens that `token` is made of."""
    owner = token.owner
    if isinstance(owner, ir.Block):
        return _argument_sources(owner, ir.BlockArgument(token).arg_number)
    at = ir.OpResult(token).result_number
    if owner.name == "scf.for":
        return [owner.operands[3 + at], _yielded(owner.regions[0].blocks[0], at)]
    if owner.name == "scf.while":
        return [_yielded(owner.regions[0].blocks[0], 1 + at)]
    if owner.name == "scf.if":
        return [_yielded(region.blocks[0], at) for region in owner.regions]
    return [value for value in owner.operands if value.type == token.type]


def _passed_on(op: ir.OpView, number: int, loop: ir.OpView | None) -> list[ir.Value] | None:
    """The tokens that operand `number` of `op` goes on as; None if `op` waits for it itself. What
    `loop` gives is left out.
    """
    if op.name in PASSING:
        return list(op.results)
    if op.name == "scf.for" and number >= _FIRST_CARRIED:
        at = number - _FIRST_CARRIED
        return [op.regions[0].blocks[0].arguments[1 + at], op.results[at]]
    if op.name == "scf.while":
        return [op.regions[0].blocks[0].arguments[number]]
    if op.name not in ("scf.yield", "scf.condition"):
        return None
    holder = op.operation.block.owner
    name = holder.operation.name
    if op.name == "scf.condition":
        after = holder.regions[1].blocks[0]
        return [after.arguments[number - 1], holder.results[number - 1]]
    if name == "scf.while":
        return [holder.regions[0].blocks[0].arguments[number]]
    given = [holder.results[number]] if loop is None or holder.operation != loop.operation else []
    if name == "scf.for":
        given.append(holder.regions[0].blocks[0].arguments[1 + number])
    return given


def _argument_sources(block: ir.Block, at: int) -> list[ir.Value]:
    loop = block.owner
    if loop.name == "scf.for":
        return [loop.operands[2 + at], _yielded(block, at - 1)]
    if loop.name == "scf.while":
        before, after = (region.blocks[0] for region in loop.regions)
        if block == before:
            return [loop.operands[at], _yielded(after, at)]
        return [_yielded(before, 1 + at)]
    return []


def _yielded(block: ir.Block, at: int) -> ir.Value:
    return block.operations[len(block.operations) - 1].operands[at]
