"""One kernel, decoded: its blocks in rank order, its registers, its memory layout."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from functools import cached_property

from tile_sim.errors import SimError, Where
from tile_sim.program.decode import Exec, Group
from tile_sim.program.flow import Block, FunctionCode
from tile_sim.program.layout import (
    FUNCTION_WINDOW,
    PARAM_WINDOW,
    SHARED_START,
    align_up,
    alignment_of,
    parameter_offsets,
    size_of,
)
from tile_sim.program.names import Names, Reg, RegisterFile, Var
from tile_sim.program.needed import (
    controlling_instructions,
    followed,
    guided,
    needed_instructions,
)
from tile_sim.program.order import weak_topological_order
from tile_sim.program.reach import reachable, statements
from tile_sim.program.types import TYPES
from tile_sim.ptx.lexer import Source
from tile_sim.ptx.syntax import Function, Instr, Module, Variable

_ASKS = "clusterlaunchcontrol"


@dataclass(frozen=True)
class Left:
    """The code of each block that is left; `loads` are ids of those whose results count, where
    marks of memory follow what is left out, None where none do."""

    code: list[list[Exec]]
    loads: frozenset[int] | None = None


@dataclass
class Program:
    """The executable form of one entry.

    `shared_static` ends the static shared variables (an address), where dynamic ones begin;
    `local_size` is the bytes of local memory of each thread, parameters of calls included.
    """

    module: Module
    source: Source
    entry: Function
    globals: dict[str, Var]
    blocks: list[Block] = field(default_factory=list)
    file: RegisterFile = field(default_factory=RegisterFile)
    functions: dict[str, FunctionCode] = field(default_factory=dict)
    shared_static: int = SHARED_START
    local_size: int = 0
    carry: Reg | None = None
    accumulators: set[int] = field(default_factory=set)
    moves: list[tuple[int, int]] = field(default_factory=list)
    #: Accumulators and fragments of A of `wgmma.mma_async`.
    product_registers: set[int] = field(default_factory=set)
    #: Registers that a `tcgen05.ld` fills.
    tensor_loaded: frozenset[int] = frozenset()
    #: Scopes of fences and of strong accesses that may be of global memory (`machine.orders`).
    scopes: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.formals: dict[str, tuple[list[Var | Reg], list[Var | Reg]]] = {}
        self._copies: dict[tuple[int, ...], list[int]] = {}
        #: Ids of stores and copies whose data were found to count, by launches that left them out.
        self.made: set[int] = set()
        self._left: dict[tuple[bool, frozenset[int]], Left] = {}
        self.order, self.variables = reachable(self.module, self.entry)
        self.shared: dict[str, Var] = {}
        self._shared_owner: dict[tuple[str, str], Var] = {}
        self.outer = Names(self.file)
        self.param_offsets, self.param_size = parameter_offsets(self.entry.params)
        self._lay_out_shared()

    def anew(self) -> Program:
        """The same code for another module, whose launches have found out nothing yet."""
        other = copy(self)
        other.made, other._left = set(), {}
        return other

    @cached_property
    def takes_over(self) -> bool:
        """Whether a CTA may ask for clusters that have not been launched."""
        return any(ins.op == _ASKS for block in self.blocks for ins in block.instrs)

    @property
    def visible(self) -> tuple[Variable, ...]:
        """The parameters that a caller passes."""
        return tuple(p for p in self.entry.params if p.linkage != "hidden")

    @property
    def hidden(self) -> tuple[Variable, ...]:
        """Those that follow them and are filled in at launch, such as tensor maps."""
        return tuple(p for p in self.entry.params if p.linkage == "hidden")

    @cached_property
    def way(self) -> list[list[Exec]]:
        """The code of each block without what decides neither branches nor addresses."""
        return self._without(needed_instructions(self.order))

    @cached_property
    def control(self) -> list[list[Exec]]:
        """The code of each block without what decides no branch, accesses included."""
        return self._without(controlling_instructions(self.order))

    @cached_property
    def _followed(self) -> bool:
        return followed(self.order)

    def left(self, skipped: frozenset[str]) -> Left | None:
        """What is left of the code where a launch skips something; None where all of it is."""
        control = "addresses" in skipped
        if "memory" in skipped and self._followed:
            key = control, frozenset(self.made)
            found = self._left.get(key)
            if found is None:
                needed = guided(self.order, key[1], accesses=not control)
                found = self._left[key] = Left(self._without(needed.kept), needed.loads)
            return found
        if control:
            return Left(self.control)
        return Left(self.way) if "values" in skipped else None

    def _without(self, kept: frozenset[int]) -> list[list[Exec]]:
        return [
            [run if id(ins) in kept else _nothing
             for run, ins in zip(block.code, block.instrs, strict=True)]
            for block in self.blocks
        ]  # fmt: skip

    # --- memory layout ----------------------------------------------------------------------

    def _lay_out_shared(self) -> None:
        """Static shared variables in order of declaration, then one base for dynamic ones."""
        found: list[tuple[str, Variable]] = [("", v) for v in self.variables if v.space == "shared"]
        for function in self.order:
            if function.body is not None:
                found += [
                    (function.name, v)
                    for v in statements(function.body)
                    if isinstance(v, Variable) and v.space == "shared"
                ]
        end, dynamic = SHARED_START, []
        for owner, variable in found:
            if size_of(variable) == 0:
                dynamic.append((owner, variable))
                continue
            end = align_up(end, alignment_of(variable))
            self._place(owner, variable, end)
            end += size_of(variable)
        alignment = max([16, *(alignment_of(v) for _, v in dynamic)])
        self.shared_static = align_up(end, alignment) if dynamic else end
        for owner, variable in dynamic:
            self._place(owner, variable, self.shared_static)
        self.has_dynamic_shared = bool(dynamic)

    def _place(self, owner: str, variable: Variable, offset: int) -> None:
        if variable.init is not None:
            message = f"shared variable {variable.name!r} cannot have an initialiser"
            raise SimError("syntax", message, self.source.where(variable.pos))
        var = Var(variable.name, "shared", offset, size_of(variable), TYPES[variable.type])
        self._shared_owner[owner, f"{variable.name}@{variable.pos}"] = var

    def shared_var(self, owner: str, variable: Variable) -> Var:
        return self._shared_owner[owner, f"{variable.name}@{variable.pos}"]

    def local_var(self, variable: Variable) -> Var:
        """A new place in the local memory of each thread."""
        self.local_size = align_up(self.local_size, alignment_of(variable))
        var = Var(variable.name, "local", self.local_size, size_of(variable), TYPES[variable.type])
        self.local_size += var.size
        return var

    def kernel_param(self, index: int) -> Var:
        param = self.entry.params[index]
        offset = PARAM_WINDOW + self.param_offsets[index]
        return Var(param.name, "param", offset, size_of(param), TYPES[param.type])

    # --- names ------------------------------------------------------------------------------

    def global_entity(self, name: str) -> Function | Var | None:
        """A function or module variable."""
        name = self.module.aliases.get(name, name)
        if name in self.globals:
            return self.globals[name]
        for variable in self.variables:
            if variable.name == name and variable.space == "shared":
                return self.shared_var("", variable)
        return self.module.functions.get(name)

    def function_address(self, name: str) -> int:
        name = self.module.aliases.get(name, name)
        return FUNCTION_WINDOW + 16 * list(self.module.functions).index(name)

    # --- registers --------------------------------------------------------------------------

    def copies_of(self, slots: list[int]) -> list[int]:
        """Slots that `mov` may copy these accumulators to, themselves not among them."""
        key = tuple(slots)
        if key not in self._copies:
            file = self.file
            found = {file.slots[slot][0] for slot in slots}
            mine = set(found)
            grew = True
            while grew:
                more = {d for d, s in self.moves if s in found} - found
                grew = bool(more)
                found |= more
            words = [i for i in sorted(found - mine) if file.bits[i] == 32]
            self._copies[key] = [file.slot_of[i, "<u4"] for i in words]
        return self._copies[key]

    # --- places in the text -----------------------------------------------------------------

    def where(self, ins: Instr) -> Where:
        source = None
        if ins.loc is not None:
            file, line, column = ins.loc
            name = self.module.files.get(file, f"file {file}")
            source = f"{name}:{line}:{column}" if column else f"{name}:{line}"
        return self.source.where(ins.pos, source)

    # --- order ------------------------------------------------------------------------------

    def number_blocks(self) -> None:
        """Rank all blocks: callees before callers, each function in its own order."""
        for function in self.order:
            code = self.functions.get(function.name)
            if code is None:
                continue
            index = {id(block): i for i, block in enumerate(code.blocks)}
            successors = [
                [index[id(t)] for t in block.end.targets()] if block.end else []
                for block in code.blocks
            ]
            for i in weak_topological_order(successors):
                code.blocks[i].number = len(self.blocks)
                self.blocks.append(code.blocks[i])


def _nothing(g: Group) -> None:
    """Stands for an instruction that is left out."""
