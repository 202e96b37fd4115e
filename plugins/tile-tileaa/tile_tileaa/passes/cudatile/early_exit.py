"""Branches that leave their loop or kernel early, in structured form.

A branch may end in `continue`, `break` or `return`. Such an `if` yields, besides its own results,
a code that says how it ended and the values it leaves with; what follows it in the block runs
only if the code says so:

    if %c { continue %v }          %code, %out = scf.if %c { yield LEFT, %v } else { yield ON, ? }
    rest; continue %w       =>     %left = scf.if %code == ON { rest; yield %w } else { yield %out }
                                   scf.yield %left

A loop that holds a `return` gets one more result, whether it ended so:

    loop { .. return .. }          %out, %returned = loop { .. }
    rest                    =>     scf.if %returned { yield RETURN } else { rest; .. }
"""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.convert import Conversion
from tile_core.mlir import ir

#: How control goes on after a block.
ON, CONTINUE, BREAK, RETURN = range(4)
#: Marks a loop whose last result, an i1, says whether the kernel returned from inside of it.
RETURNS = "nv_tileaa.returns"
CODES = {"cuda_tile.continue": CONTINUE, "cuda_tile.break": BREAK, "cuda_tile.return": RETURN}


@dataclass(frozen=True)
class Leave:
    """What a block may leave with: types of the values of `continue` and of `break`."""

    continued: tuple[ir.Type, ...] = ()
    broken: tuple[ir.Type, ...] = ()

    @property
    def types(self) -> list[ir.Type]:
        """Types of the code and of all values that travel with it."""
        return [ir.IntegerType.get_signless(32), *self.continued, *self.broken]


def has_early_exit(block: ir.Block) -> bool:
    """Whether some operation of a block may end the block before its terminator."""
    return any(map(leaves_early, block.operations))


def leaves_early(op: ir.OpView) -> bool:
    """Whether an `if` has a branch that ends in something else than `yield`, a loop a `return`."""
    name = op.operation.name
    if name == "cuda_tile.loop":
        return _returns(op)
    if name != "cuda_tile.if":
        return False
    blocks = [block for region in op.regions for block in region.blocks]
    return any(terminator(b).operation.name in CODES or has_early_exit(b) for b in blocks)


def _returns(op: ir.OpView) -> bool:
    """Whether a `return` stands somewhere in the regions of an operation."""
    inner = (i for region in op.regions for block in region.blocks for i in block.operations)
    return any(i.operation.name == "cuda_tile.return" or _returns(i) for i in inner)


def terminator(block: ir.Block) -> ir.OpView:
    """The last operation of a block."""
    return block.operations[len(block.operations) - 1]


class EarlyExits:
    """Structures one block whose branches may leave; `leave` says with what."""

    def __init__(self, cx: Conversion, leave: Leave) -> None:
        self.cx = cx
        self.leave = leave

    def block(self, block: ir.Block, results: list[ir.Type]) -> list[ir.Value]:
        """Rewrite `block`, still in cuda_tile, without its terminator.

        Returns what it ends with: `results` of a `yield`, the code, and the values to leave with.
        """
        for op in list(block.operations):
            if leaves_early(op):
                split = self._split if op.operation.name == "cuda_tile.if" else self._split_loop
                return split(block, op, results)
        return self._end(block, results)

    def _end(self, block: ir.Block, results: list[ir.Type]) -> list[ir.Value]:
        """The values that the terminator of a block stands for."""
        last = terminator(block)
        name, operands = last.operation.name, list(last.operands)
        with self.cx.at(ir.InsertionPoint(last)):
            code = CODES.get(name, ON)
            values = operands if code == ON else [self._poison(type_) for type_ in results]
            left = [self._constant(code)]
            for kind, types in ((CONTINUE, self.leave.continued), (BREAK, self.leave.broken)):
                left += operands if code == kind else [self._poison(type_) for type_ in types]
        last.operation.erase()
        return [*values, *left]

    def _split(self, block: ir.Block, op: ir.OpView, results: list[ir.Type]) -> list[ir.Value]:
        """The first early `if` of a block, and the rest of the block under its code."""
        cx, own = self.cx, [result.type for result in op.results]
        rest = _operations_after(block, op)
        with cx.at(ir.InsertionPoint(op)):
            branch = cx.create("scf.if", [op.operands[0]], [*own, *self.leave.types], regions=2)
            for at, target in enumerate(branch.regions):
                self._branch(op, at, target, own)
        for old, new in zip(op.results, branch.results, strict=False):
            old.replace_all_uses_with(new)
        left: list[ir.Value] = [branch.results[at] for at in range(len(own), len(branch.results))]
        op.operation.erase()
        return self._under_code(left, rest, results)

    def _split_loop(self, block: ir.Block, op: ir.OpView, results: list[ir.Type]) -> list[ir.Value]:
        """The first loop of a block that may return, and the rest of the block if it did not."""
        cx, i1 = self.cx, ir.IntegerType.get_signless(1)
        rest = _operations_after(block, op)
        with cx.at(ir.InsertionPoint(op)):
            types = [*(result.type for result in op.results), i1]
            marked = {RETURNS: ir.UnitAttr.get()}
            loop = cx.create("cuda_tile.loop", list(op.operands), types, marked, regions=1)
            op.regions[0].blocks[0].append_to(loop.regions[0])
            *found, returned = loop.results
            codes = [self._constant(code) for code in (RETURN, ON)]
            code = cx.create("arith.select", [returned, *codes], [codes[0].type]).result
            left = [code, *(self._poison(type_) for type_ in self.leave.types[1:])]
        for old, new in zip(op.results, found, strict=True):
            old.replace_all_uses_with(new)
        op.operation.erase()
        return self._under_code(left, rest, results)

    def _branch(self, op: ir.OpView, at: int, target: ir.Region, own: list[ir.Type]) -> None:
        """Region `at` of an early `if`, moved into `target`; a missing `else` goes on."""
        blocks = list(op.regions[at].blocks) if at < len(op.regions) else []
        if blocks:
            blocks[0].append_to(target)
            values = self.block(target.blocks[0], own)
        else:
            with self.cx.at(ir.InsertionPoint(target.blocks.append())):
                values = [self._constant(ON)]
                values += [self._poison(type_) for type_ in self.leave.types[1:]]
        with self.cx.at(ir.InsertionPoint(target.blocks[0])):
            self.cx.create("scf.yield", values)

    def _under_code(
        self,
        left: list[ir.Value],
        rest: list[ir.OpView],
        results: list[ir.Type],
    ) -> list[ir.Value]:
        """scf.if (code == ON) { rest } else { what has left stays left }"""
        cx = self.cx
        with cx.at(ir.InsertionPoint(rest[0])):
            equal = {"predicate": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)}
            i1 = ir.IntegerType.get_signless(1)
            goes_on = cx.create("arith.cmpi", [left[0], self._constant(ON)], [i1], equal).result
            both = [*results, *self.leave.types]
            branch = cx.create("scf.if", [goes_on], both, regions=2)
        then, other = (region.blocks.append() for region in branch.regions)
        for op in rest:
            then.append(op)
        values = self.block(then, results)
        with cx.at(ir.InsertionPoint(then)):
            cx.create("scf.yield", values)
        with cx.at(ir.InsertionPoint(other)):
            cx.create("scf.yield", [*(self._poison(type_) for type_ in results), *left])
        return list(branch.results)

    def _constant(self, code: int) -> ir.Value:
        i32 = ir.IntegerType.get_signless(32)
        value = {"value": ir.IntegerAttr.get(i32, code)}
        return self.cx.create("arith.constant", [], [i32], value).result

    def _poison(self, type_: ir.Type) -> ir.Value:
        """A value that nobody looks at, because the code says so."""
        return self.cx.create("ub.poison", [], [type_]).result


def _operations_after(block: ir.Block, op: ir.OpView) -> list[ir.OpView]:
    ops = list(block.operations)
    return ops[ops.index(op) + 1 :]
