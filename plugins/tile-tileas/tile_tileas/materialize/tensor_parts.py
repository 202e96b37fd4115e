"""Sums of tcgen05 in tensor memory that loops write over, change, or read in parts."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.mlir import ir
from tile_tileas.analysis.users import within
from tile_tileas.dialect.barriers import LEADER
from tile_tileas.dialect.staging import FEW
from tile_tileas.dialect.tensor import ORDERED, UMMA
from tile_tileas.dot_plan import IN_PLACE, OVER
from tile_tileas.pipelining.slices import is_pure
from tile_tileas.pipelining.writer import Writer
from tile_tileas.tile_graph import kind_of, only_computes

_IF, _DOT, _VIEW = "scf.if", "nv_tileas.dot", "nv_tileas.tmem_view"
_WAIT, _ARRIVE = "nv_tileas.barrier_wait", "nv_tileas.barrier_arrive"
_SYNC = "nv_tileas.sync"
#: What a step of a loop does before its body: stages are filled anew, under a branch.
_BETWEEN = (_IF, "nv_tileas.async_commit_group", "nv_tileas.alloc_tensor")


def lay_over(at: Writer, sums: ir.Value, loop: ir.Operation) -> None:
    """Give a buffer that says so (`OVER`) the columns of `sums`. What the loop does to both is in
    order by what it waits for.
    """
    block = loop.regions[0].blocks[0]
    read = [op.operation.operands[0] for op in block.operations if op.operation.name in UMMA]
    read += [op.operation.operands[0] for op in block.operations if op.operation.name == _DOT]
    for value in read:
        made = value.owner
        if not isinstance(made, ir.Block) and OVER in made.attributes:
            assert not isinstance(sums.owner, ir.Block), "allocated just now"
            sums.owner.attributes[ORDERED] = ir.UnitAttr.get()
            same = at.create("nv_tileas.tmem_columns", [sums], [value.type]).result
            value.replace_all_uses_with(same)
            made.erase()
            return


def follows_product(op: ir.OpView) -> bool:
    """Whether one thread begins another product in front of it, and no thread does anything else
    between: whoever that one has waited for is where this one may begin, too.
    """
    ops = [before.operation for before in op.operation.block.operations]
    for before in reversed(ops[: ops.index(op.operation)]):
        if before.name in UMMA:
            return True
        waits = before.name == _WAIT and LEADER in before.attributes
        commits = before.name == _ARRIVE and _is_by_products(before)
        if not (waits or commits or is_pure(before.opview)):
            return False
    return False


def follows_meeting(op: ir.OpView) -> bool:
    """Whether all threads have met in front of a product, and have begun copies since, at most."""
    ops = [before.operation for before in op.operation.block.operations]
    for before in reversed(ops[: ops.index(op.operation)]):
        if before.name == _SYNC:
            return True
        if before.name not in _BETWEEN and not is_pure(before.opview):
            return False
    return False


def led_from(op: ir.OpView) -> ir.OpView:
    """The first of the operations in front of a product that one thread alone waits in, or which do
    nothing; the product itself if there are none.
    """
    first = op
    ops = list(op.operation.block.operations)
    at = next(at for at, other in enumerate(ops) if other.operation == op.operation)
    for before in reversed(ops[:at]):
        waits = before.operation.name == _WAIT and LEADER in before.attributes
        if not (waits or is_pure(before)):
            break
        first = before if waits else first
    return first


def _is_by_products(op: ir.Operation) -> bool:
    """Whether products arrive, and no thread."""
    return ir.StringAttr(op.attributes["kind"]).value == "tcgen05"


def few_of(wait: ir.Operation) -> int:
    """Registers that are read at a time of what is waited for; 0 if all at once."""
    return ir.IntegerAttr(wait.attributes[FEW]).value if FEW in wait.attributes else 0


@dataclass(frozen=True)
class Change:
    """A branch that changes a tile, or leaves it.

    Attributes:
        branch: an `scf.if` with a tile of the same type as its one result.
        arm: the number of its region that makes something of the tile; the other one gives it.
    """

    branch: ir.Operation
    arm: int

    @property
    def result(self) -> ir.Value:
        """The tile behind the branch."""
        return self.branch.results[0]

    @property
    def ops(self) -> list[ir.OpView]:
        """What makes something of the tile, and gives that."""
        return list(self.branch.regions[self.arm].blocks[0].operations)

    def problem(self, tile: ir.Value) -> str | None:
        """Why threads cannot change the tile in tensor memory, where each reads and writes its own
        elements in an order that it alone keeps; None if they can.
        """
        *ops, _ = self.ops
        made = {tile}
        for op in ops:
            if len(op.regions) or not is_pure(op) or not only_computes(op):
                return f"the branch that changes the first one has '{op.operation.name}'"
            if not made.isdisjoint(op.operands):
                if kind_of(op) != "same":
                    return (
                        "the branch that changes the first one does not change each element by "
                        f"itself ('{op.operation.name}')"
                    )
                made.update(op.results)
        return None


def change_of(tile: ir.Value) -> Change | None:
    """The branch that alone uses a tile, and gives it or what its other arm makes of it."""
    owner = tile.owner
    block = owner if isinstance(owner, ir.Block) else owner.operation.block
    users = {within(use.owner.operation, block) for use in tile.uses}
    branch = users.pop() if len(users) == 1 else None
    if branch is None or branch.name != _IF or len(branch.results) != 1:
        return None
    arms = [list(region.blocks[0].operations) for region in branch.regions]
    given = [arm for arm, ops in enumerate(arms) if len(ops) == 1 and ops[0].operands[0] == tile]
    if len(given) != 1 or branch.results[0].type != tile.type:
        return None
    return Change(branch, 1 - given[0])


def change_to_place(wait: ir.Operation) -> Change | None:
    """The branch that changes what is awaited, if it is to do so in tensor memory (`IN_PLACE`), and
    no pass has made something else of it since that was decided.
    """
    if IN_PLACE not in wait.attributes:
        return None
    change = change_of(wait.results[0])
    may = change is not None and change.problem(wait.results[0]) is None
    return change if may else None


def change_in_place(
    at: Writer, sums: ir.Value, tile: ir.Value, change: Change, few: int = 0
) -> None:
    """Let a branch change a tile in tensor memory, where it lies in `sums`; behind it, the tile is
    read, `few` registers at a time. Each thread reads back what it wrote itself, as the tile has
    one type before, in and behind the branch, by which elements lie in threads, and each of what is
    written is made of the same one of what was read (`Change.problem`).
    """
    *ops, end = change.ops
    at.move(ir.InsertionPoint(change.branch))

    def changed() -> list[ir.Value]:
        found = at.read(sums, tile.type)
        tile.replace_all_uses_with(found)
        last = found.owner
        assert not isinstance(last, ir.Block), "read just now"
        for op in ops:
            op.operation.move_after(last)
            last = op.operation
        at.store(end.operands[0], sums)
        return []

    condition = change.branch.operands[0]
    at.choice(at.negated(condition) if change.arm else condition, changed)
    change.result.replace_all_uses_with(at.read(sums, change.result.type, few))
    change.branch.erase()
