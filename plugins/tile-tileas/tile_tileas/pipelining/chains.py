"""Products of a loop that read what others of the same iteration give, a step later than those.

    iteration i     S = Q K(i)    P = softmax(S)    O = scaled O + P V(i)

    O = S = ..                                      of nothing: step 0 begins no late product
    step i          S = Q K(i)                      begins
                    O = scaled + P V(i-1)           begins behind it
                    P, scale = softmax(S)           the tensor cores have O's product meanwhile
                    scaled = scale * O              what needs O comes last
    behind          O = scaled + P V(N-1)

What the loop computes, and in which order it adds, does not change. Nothing here knows which
instructions multiply: a tier says which products may be in flight (`may_fly`), and waits for them
where their results are used.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from tile_core.insertion import Inserter
from tile_core.mlir import ir
from tile_core.sched import Edge
from tile_tileas.analysis.buffers import ALLOC
from tile_tileas.analysis.pressure import used_values
from tile_tileas.modulo.body import LoopBody
from tile_tileas.modulo.counting import Counting
from tile_tileas.modulo.plan import Dependences, plan
from tile_tileas.modulo.rings import Rings, refused
from tile_tileas.sched.facts import is_cheap, memory_effect

_DOT = "nv_tileas.dot"
#: Steps that late products come behind.
LATER = 1


@dataclass(frozen=True)
class Chain:
    """Products of one iteration: `late` ones read what `early` ones give, all of them. `waits` are
    for stages that late ones alone read.
    """

    early: tuple[ir.OpView, ...]
    late: tuple[ir.OpView, ...]
    waits: tuple[ir.OpView, ...] = ()


def chain_of(loop: ir.OpView, may_fly: Callable[[ir.OpView], bool]) -> Chain | None:
    """The products of `loop` in two parts; None if none reads what another one gives.

    Late ones are `may_fly`, and so is the first of the early ones: the others have nobody to
    run beside.
    """
    body = LoopBody.of(loop)
    products = [at for at, op in enumerate(body.ops) if op.operation.name == _DOT]
    users = _users(body)
    late = [at for at in _closure(products, users) if at in products]
    early = [at for at in products if at not in late]
    if not late or not all(may_fly(body.ops[at]) for at in (early[0], *late)):
        return None
    if trips(loop) in (0, 1):
        return None
    return Chain(tuple(body.ops[at] for at in early), tuple(body.ops[at] for at in late))


def delayed(loop: ir.OpView, chain: Chain, filled: Collection[ir.Value] = ()) -> Rings | str:
    """`loop` with its late products a step later; or why that cannot be. Nothing is changed.

    Buffers of `filled` will have stages: then nothing of them goes from one step to the next.
    """
    body = LoopBody.of(loop)
    users = _users(body)
    names = {op.operation: at for at, op in enumerate(body.ops)}
    products = sorted(names[op.operation] for op in (*chain.late, *chain.waits))
    late = sorted({*products, *_closure(products, users)})
    behind = _behind(body, users, late)
    first = names[chain.early[0].operation]
    if any(body.ops[at].operation.name == _DOT for at in behind):
        return "the first product of an iteration reads what the last one of the one before gives"
    for at in (*late, *behind):
        if at not in products and not _may_move(body.ops[at]):
            return f"'{body.ops[at].operation.name}' keeps its place"
    last = max(products)
    begun, ended = [at for at in late if at <= last], [at for at in late if at > last]
    rest = [at for at in range(len(body.ops)) if at not in late and at not in behind]
    order = [at for at in rest if at <= first] + begun
    order += [at for at in rest if at > first] + ended + behind
    stages = [LATER if at in late else 0 for at in range(len(body.ops))]
    try:
        found = plan(_dependences(body), order, stages)
    except ValueError as error:
        return str(error)
    rings = Rings(body, found)
    return refused(rings, filled) or rings


def registers_between(chain: Chain, registers: Callable[[ir.Type], int]) -> int:
    """Registers of a thread that late products keep while early ones are made and worked on: what
    early ones give, and what late ones read from registers.
    """
    given = sum(registers(op.results[0].type) for op in chain.early)
    return given + sum(registers(value.type) for op in chain.late for value in op.operands[:2])


def _users(body: LoopBody) -> list[list[int]]:
    """By operation, those of the same iteration that use what it gives."""
    users: list[list[int]] = [[] for _ in body.ops]
    for at, op in enumerate(body.ops):
        for value in used_values(op):
            if value in body.owner:
                users[body.owner[value]].append(at)
    return users


def _closure(found: Iterable[int], users: list[list[int]]) -> list[int]:
    """All that depends on operations within an iteration, in program order."""
    seen: set[int] = set()
    pending = list(found)
    while pending:
        for user in users[pending.pop()]:
            if user not in seen:
                seen.add(user)
                pending.append(user)
    return sorted(seen)


def _behind(body: LoopBody, users: list[list[int]], late: list[int]) -> list[int]:
    """What works on results of late operations of the iteration before, and what depends on it."""
    carried = [
        argument
        for argument, value in zip(body.arguments, body.yielded, strict=True)
        if body.owner.get(value) in late
    ]
    direct = [
        at
        for at, op in enumerate(body.ops)
        if at not in late and any(value in carried for value in used_values(op))
    ]
    return [at for at in sorted({*direct, *_closure(direct, users)}) if at not in late]


def _may_move(op: ir.OpView) -> bool:
    """Whether nothing but the use of its results says where an operation stands."""
    return memory_effect(op) == "none" and op.operation.name != ALLOC


def _dependences(body: LoopBody) -> Dependences:
    uses = [(source, user) for source, found in enumerate(_users(body)) for user in found]
    edges = [Edge(source, user, 0) for source, user in uses]
    of = dict(zip(body.arguments, body.yielded, strict=True))
    for at, op in enumerate(body.ops):
        for value in used_values(op):
            source = body.owner.get(of[value]) if value in of else None
            edges += [] if source is None else [Edge(source, at, 0, 1)]
    kept = frozenset(body.owner[value] for value in body.yielded if value in body.owner)
    cheap = frozenset(at for at, op in enumerate(body.ops) if is_cheap(op))
    return Dependences(len(body.ops), tuple(uses), tuple(edges), kept, cheap)


def trips(loop: ir.OpView) -> int | None:
    """Iterations, if that is known."""
    return Counting(Inserter(), loop).trips
