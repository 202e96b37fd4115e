"""From the statements of functions to blocks of decoded instructions."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn

from tile_sim.errors import SimError
from tile_sim.machine.group import Group
from tile_sim.program.calls import build_call
from tile_sim.program.decode import Decode, Exec, Sync, decode
from tile_sim.program.flow import Block, Branch, Exit, FunctionCode, Jump, Return, Switch
from tile_sim.program.names import LabelRef, Names, Reg, Var
from tile_sim.program.program import Program
from tile_sim.program.reach import operand_names, statements
from tile_sim.program.types import TYPES
from tile_sim.ptx.lexer import Source
from tile_sim.ptx.syntax import (
    Float,
    Function,
    Guard,
    Instr,
    Int,
    Label,
    Module,
    Name,
    Prototype,
    Scope,
    Statement,
    Variable,
)


def build_program(
    module: Module, source: Source, entry: Function, global_vars: dict[str, Var]
) -> Program:
    """Decode an entry and all it can call.

    Raises SimError for whatever cannot be decoded, and for recursion.
    """
    program = Program(module, source, entry, global_vars)
    for function in program.order:
        if function.body is not None:
            code = FunctionCode(function.name)
            code.return_slot = program.file.slot(
                program.file.add(f"{function.name}.return", TYPES["u32"]), "<u4"
            )
            program.functions[function.name] = code
    builders = [FunctionBuilder(program, f) for f in program.order if f.body is not None]
    for builder in builders:
        builder.declare()
    program.formals = {b.function.name: b.formals for b in builders}
    for builder in builders:
        builder.build()
    _add_sources(program, [move for builder in builders for move in builder.moved.values()])
    for builder in builders:
        _watch_registers(program, builder)
    program.number_blocks()
    _reject_recursion(program, builders)
    return program


def _reject_recursion(program: Program, builders: list[FunctionBuilder]) -> None:
    """Registers and local variables are static, so a function cannot be entered twice."""
    calls = {b.function.name: b.callees for b in builders}
    done: set[str] = set()
    for root in calls:
        path: list[str] = []
        stack = [(root, iter(calls[root]))]
        while stack:
            name, rest = stack[-1]
            if name not in path:
                path.append(name)
            for callee in rest:
                if callee in path:
                    where = program.source.where(program.module.functions[callee].pos)
                    raise SimError("recursion", f"{callee!r} can call itself", where)
                if callee in calls and callee not in done:
                    stack.append((callee, iter(calls[callee])))
                    break
            else:
                stack.pop()
                path.pop()
                done.add(name)


#: What has registers that are watched: the beginnings of such instructions.
_WATCHED = (("tcgen05", "ld"), ("wgmma", "mma_async"))


def _add_sources(program: Program, moves: list[tuple[int, int | None]]) -> None:
    """Registers that come to products by way of `mov` count as theirs."""
    registers = program.product_registers
    grew = bool(registers)
    while grew:
        more = {of for to, of in moves if of is not None and to in registers} - registers
        registers |= more
        grew = bool(more)


def _watch_registers(program: Program, builder: FunctionBuilder) -> None:
    """Instructions that name a register which `tcgen05.ld` fills first settle pending loads, and
    check mode hears of those that name a register of `wgmma.mma_async`."""
    products = frozenset(program.product_registers)
    for block, index, registers in builder.named:
        loaded, multiplied = registers & program.tensor_loaded, registers & products
        if loaded:
            block.code[index] = _settling(block.code[index], loaded)
        if multiplied and block.instrs[index].op != "wgmma":
            move = builder.moved.get((id(block), index))
            noted = _renaming(*move) if move and move[0] in products else _touching(multiplied)
            block.code[index] = _telling(block.code[index], noted)


def _settling(run: Exec, registers: frozenset[int]) -> Exec:
    def execute(g: Group) -> None:
        if g.wave.tensor_loads.items:
            g.wave.tensor_loads.used(g, registers)
        run(g)

    return execute


_Note = Callable[[Group], None]


def _touching(registers: frozenset[int]) -> _Note:
    return lambda g: g.wave.monitor.registers.touch(g.rows, registers, g.wave.monitor.place())


def _renaming(to: int, of: int | None) -> _Note:
    return lambda g: g.wave.monitor.registers.rename(g.rows, to, of)


def _telling(run: Exec, note: _Note) -> Exec:
    def execute(g: Group) -> None:
        if g.wave.monitor is not None:
            note(g)
        run(g)

    return execute


class FunctionBuilder:
    """Builds the blocks of one function."""

    def __init__(self, program: Program, function: Function) -> None:
        self.program = program
        self.function = function
        self.code = program.functions[function.name]
        self.names = Names(program.file)
        self.formals: tuple[list[Var | Reg], list[Var | Reg]] = ([], [])
        self.callees: list[str] = []
        self.block = self._new_block()
        self._exit: Block | None = None
        #: With products or loads of tensor memory: (block, instruction in it, registers that it
        #: names), and which of them are moves: (to, of), of None for a constant.
        self.named: list[tuple[Block, int, frozenset[int]]] = []
        self.moved: dict[tuple[int, int], tuple[int, int | None]] = {}
        self._watched = any(
            isinstance(s, Instr) and (s.op, *s.mods[:1]) in _WATCHED
            for f in program.order if f.body is not None for s in statements(f.body)
        )  # fmt: skip

    # --- declarations -----------------------------------------------------------------------

    def declare(self) -> None:
        """Formal parameters, of a kernel in the launch's, of a function in local memory."""
        for i, param in enumerate(self.function.params):
            entity = self.program.kernel_param(i) if self.function.entry else self._formal(param)
            self.names.declare(param.name, entity)
            self.formals[1].append(entity)
        for param in self.function.returns:
            entity = self._formal(param)
            self.names.declare(param.name, entity)
            self.formals[0].append(entity)

    def _formal(self, param: Variable) -> Var | Reg:
        if param.space == "reg":
            return self.program.file.add(param.name, TYPES[param.type])
        return self.program.local_var(param)

    def _declare_variable(self, variable: Variable, names: Names) -> None:
        if variable.space == "reg":
            if variable.vector != 1:
                self._fail(variable.pos, f"vector register {variable.name!r} is not supported")
            fresh = names.declare_registers(variable)
        elif variable.space in ("local", "param"):
            fresh = names.declare(variable.name, self.program.local_var(variable))
        elif variable.space == "shared":
            place = self.program.shared_var(self.function.name, variable)
            fresh = names.declare(variable.name, place)
        else:
            message = f".{variable.space} variable {variable.name!r} inside a function"
            self._fail(variable.pos, f"{message} is not supported")
        if not fresh:
            self._fail(variable.pos, f"{variable.name!r} is declared twice")

    def _fail(self, pos: int, message: str) -> NoReturn:
        raise SimError("syntax", message, self.program.source.where(pos))

    # --- blocks -----------------------------------------------------------------------------

    def build(self) -> None:
        assert self.function.body is not None
        self._scope(self.function.body, self.names)
        if self.block.end is None:
            self.block.end = self._leave()

    def _new_block(self) -> Block:
        block = Block(function=self.function.name)
        self.code.blocks.append(block)
        return block

    def start_block(self) -> Block:
        """Begin a block that the current one falls into."""
        block = self._new_block()
        if self.block.end is None:
            self.block.end = Jump(block)
        self.block = block
        return block

    def _leave(self) -> Exit | Return:
        return Exit() if self.function.entry else Return(self.code)

    def _scope(self, scope: Scope, names: Names) -> None:
        for statement in scope.body:
            if isinstance(statement, Label):
                label = LabelRef(statement.name, None)
                if not names.declare(statement.name, label):
                    self._fail(statement.pos, f"{statement.name!r} is declared twice")
            elif isinstance(statement, Prototype):
                names.declare(statement.name, statement)
        for statement in scope.body:
            self._statement(statement, names)

    def _statement(self, statement: Statement, names: Names) -> None:
        if isinstance(statement, Instr):
            self._instruction(statement, names)
        elif isinstance(statement, Scope):
            self._scope(statement, Names(self.program.file, names))
        elif isinstance(statement, Variable):
            self._declare_variable(statement, names)
        elif isinstance(statement, Label):
            label = names.find(statement.name)
            assert isinstance(label, LabelRef)
            self._open(label)

    def _open(self, label: LabelRef) -> None:
        """Start the block of a label, which a jump may have asked for before."""
        block = self._target(label)
        if self.block.end is None:
            self.block.end = Jump(block)
        # Keep program order among the blocks.
        self.code.blocks.remove(block)
        self.code.blocks.append(block)
        self.block = block

    def _target(self, label: LabelRef) -> Block:
        if label.block is None:
            label.block = self._new_block()
        assert isinstance(label.block, Block)
        return label.block

    def label_block(self, cx: Decode, name: str) -> Block:
        label = cx.find(name)
        if not isinstance(label, LabelRef):
            cx.fail(f"{name!r} is not a label")
        return self._target(label)

    # --- instructions -----------------------------------------------------------------------

    def _instruction(self, ins: Instr, names: Names) -> None:
        if ins.op in _CONTROL:
            cx = Decode(self.program, names, ins)
            _CONTROL[ins.op](self, cx)
            return
        decoded = decode(self.program, names, ins)
        if isinstance(decoded, Sync):
            self._sync(ins, names, decoded)
            return
        if ins.guard is not None:
            decoded = self._guarded(ins.guard, names, ins, decoded)
        self._note_registers(self.block, ins, names)
        self.block.code.append(decoded)
        self.block.instrs.append(ins)

    def _note_registers(self, block: Block, ins: Instr, names: Names) -> None:
        """The registers of the instruction that is appended next; a load only fills its own."""
        if not self._watched:
            return
        operands = ins.operands[1:] if ins.spelling.startswith("tcgen05.ld.") else ins.operands
        found = [names.find(name) for operand in operands for name in operand_names(operand)]
        registers = frozenset(entity.index for entity in found if isinstance(entity, Reg))
        self.named.append((block, len(block.code), registers))
        if ins.op == "mov" and ins.guard is None and isinstance(ins.operands[0], Name):
            to, of = found[0], found[1:]
            constant = isinstance(ins.operands[1], Int | Float)
            if isinstance(to, Reg) and (constant or (len(of) == 1 and isinstance(of[0], Reg))):
                source = of[0].index if of and isinstance(of[0], Reg) else None
                self.moved[id(block), len(block.code)] = (to.index, source)

    def guard_slot(self, guard: Guard, names: Names, ins: Instr) -> int:
        cx = Decode(self.program, names, ins)
        return cx.slot(Name(guard.name), TYPES["pred"])

    def _guarded(self, guard: Guard, names: Names, ins: Instr, run: Exec) -> Exec:
        slot, negated = self.guard_slot(guard, names, ins), guard.negated

        def execute(g: Group) -> None:
            # A copy: the instruction may change its own guard.
            p = g.v[slot][g.sel]
            p = ~p if negated else p.copy()
            if g.mask is not None:
                p = p & g.mask
            if p.all():
                run(g)
            elif p.any():
                run(g.masked(p))

        return execute

    def _sync(self, ins: Instr, names: Names, sync: Sync) -> None:
        """An instruction that may wait stands at the head of its own block."""
        block = self.start_block() if ins.guard is None else self.guarded_block(ins, names)
        block.sync = sync
        if sync.execute is not None:
            self._note_registers(block, ins, names)
            block.code.append(sync.execute)
            block.instrs.append(ins)
        block.end_instr = ins
        self.start_after(block)

    def guarded_block(self, ins: Instr, names: Names) -> Block:
        """A block that only the threads enter for which the guard holds."""
        assert ins.guard is not None
        slot = self.guard_slot(ins.guard, names, ins)
        inner, after = self._new_block(), self._new_block()
        self.block.end = Branch(slot, ins.guard.negated, inner, after)
        self.block.end_instr = ins
        inner.end = Jump(after)
        self.block = inner
        return inner

    def start_after(self, block: Block) -> Block:
        """Continue after a block that may have been guarded."""
        if isinstance(block.end, Jump):
            self.block = block.end.to
        else:
            self.block = block
            self.start_block()
        return self.block


# --- control flow -------------------------------------------------------------------------------


def _bra(b: FunctionBuilder, cx: Decode) -> None:
    cx.flag("uni")
    cx.done(1)
    operand = cx.operand(0)
    if not isinstance(operand, Name):
        cx.fail("a label is needed here")
    target = b.label_block(cx, operand.name)
    _end_with_jump(b, cx, target)


def _end_with_jump(b: FunctionBuilder, cx: Decode, target: Block) -> None:
    ins = cx.ins
    if b.block.end is not None:
        b.start_block()
    b.block.end_instr = ins
    if ins.guard is None:
        b.block.end = Jump(target)
        b.block = b._new_block()
        return
    slot = b.guard_slot(ins.guard, cx.names, ins)
    after = b._new_block()
    b.block.end = Branch(slot, ins.guard.negated, target, after)
    b.block = after


def _exit(b: FunctionBuilder, cx: Decode) -> None:
    cx.done(0)
    _end_with(b, cx, Exit())


def _ret(b: FunctionBuilder, cx: Decode) -> None:
    cx.flag("uni")
    cx.done(0)
    _end_with(b, cx, b._leave())


def _end_with(b: FunctionBuilder, cx: Decode, end: Exit | Return) -> None:
    if cx.ins.guard is None:
        b.block.end, b.block.end_instr = end, cx.ins
        b.block = b._new_block()
        return
    target = b._new_block()
    target.end, target.end_instr = end, cx.ins
    _end_with_jump(b, cx, target)


def _brx(b: FunctionBuilder, cx: Decode) -> None:
    if not cx.flag("idx"):
        cx.fail("only brx.idx is an instruction")
    cx.flag("uni")
    cx.done(2)
    slot = cx.slot(0, TYPES["u32"])
    operand = cx.operand(1)
    table = cx.find(operand.name) if isinstance(operand, Name) else None
    if not isinstance(table, Prototype) or table.kind != "branchtargets":
        cx.fail("its second operand has to be a .branchtargets label")
    blocks = [b.label_block(cx, name) for name in table.targets]
    block = b.block
    if cx.ins.guard is not None:
        block = b.guarded_block(cx.ins, cx.names)
        after = block.end.to if isinstance(block.end, Jump) else None
    else:
        after = None
    block.end, block.end_instr = Switch(slot, blocks, cx.where), cx.ins
    b.block = after or b._new_block()


def _call(b: FunctionBuilder, cx: Decode) -> None:
    build_call(b, cx)


_CONTROL = {"bra": _bra, "exit": _exit, "ret": _ret, "brx": _brx, "call": _call}
