"""ipmsp: address spaces of pointers that functions take and return, across all calls of a module.

A parameter of a generic pointer type whose argument lies in one space at every call lies in it:
the function's accesses through it name that space. So do those of callers through a pointer that
all ends of a function give from one space. LLVM's own infer-address-spaces looks at one function at
a time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tile_core.mlir import ir
from tile_core.passes import Pass, PassContext, option
from tile_nvptx.passes.llvm.module import (
    GENERIC,
    GLOBAL,
    addressed,
    callee,
    calls,
    functions,
    is_kernel,
    name_of,
    space,
)

#: The lattice of page 130: nothing known yet, a space, or several.
UNDETERMINED, POISON = 1000, 2000

#: Operations that access memory -> number of the operand that is the address.
_ADDRESS = {"llvm.load": 0, "llvm.store": 1, "llvm.atomicrmw": 0, "llvm.cmpxchg": 0}
_MOVED = "llvm.getelementptr"
_THROUGH = (_MOVED, "llvm.bitcast", "llvm.freeze")


def meet(a: int, b: int) -> int:
    """What is known of a pointer of which two things are known."""
    if UNDETERMINED in (a, b):
        return b if a == UNDETERMINED else a
    return a if a == b else POISON


@dataclass
class Votes:
    """Spaces of the parameters of a module's functions, by their calls."""

    module: ir.Operation
    spaces: dict[tuple[str, int], int] = field(default_factory=dict)
    #: Of the pointer that a function returns, by what its ends give.
    results: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.functions, self.calls = functions(self.module), calls(self.module)
        taken = addressed(self.module)
        for name, func in self.functions.items():
            if any(space(value.type) == GENERIC for value in _returned(func)):
                self.results[name] = UNDETERMINED
            if is_kernel(func) or name in taken or name not in self.calls or _is_fixed(func):
                continue
            for at, argument in enumerate(func.regions[0].blocks[0].arguments):
                if space(argument.type) == GENERIC:
                    self.spaces[name, at] = UNDETERMINED

    def settle(self) -> None:
        """Let all calls and ends vote until nothing changes; at most twice per pointer it does."""
        changed = True
        while changed:
            changed = False
            for (name, at), known in self.spaces.items():
                found = known
                for call in self.calls[name]:
                    found = meet(found, self.of(call.operands[at]))
                if found != known:
                    self.spaces[name, at] = found
                    changed = True
            for name, known in self.results.items():
                found = known
                for value in _returned(self.functions[name]):
                    found = meet(found, self.of(value))
                if found != known:
                    self.results[name] = found
                    changed = True

    def of(self, value: ir.Value) -> int:
        """What is known of a pointer."""
        declared = space(value.type)
        if declared != GENERIC:
            return POISON if declared is None else declared
        if isinstance(value, ir.BlockArgument) or isinstance(value.owner, ir.Block):
            return self._of_argument(ir.BlockArgument(value))
        owner = value.owner.operation
        if owner.name == "llvm.addrspacecast" or owner.name in _THROUGH:
            return self.of(owner.operands[0])
        if owner.name == "llvm.call":
            return self.results.get(callee(owner), POISON)
        if owner.name == "llvm.select":
            return meet(self.of(owner.operands[1]), self.of(owner.operands[2]))
        return POISON

    def _of_argument(self, argument: ir.BlockArgument) -> int:
        func = argument.owner.owner.operation
        if func.name != "llvm.func" or argument.owner != func.regions[0].blocks[0]:
            return POISON
        if is_kernel(func):
            if _is_by_value(func, argument.arg_number):
                return POISON
            return GLOBAL  # launches pass addresses of global memory, and so LLVM reads it
        return self.spaces.get((name_of(func), argument.arg_number), POISON)

    def at(self, call: ir.Operation, name: str) -> tuple[int, ...]:
        """What one call says of the parameters that are asked about."""
        return tuple(self.of(call.operands[i]) for i in self.asked(name))

    def asked(self, name: str) -> list[int]:
        """Numbers of a function's parameters that are asked about."""
        return [i for n, i in self.spaces if n == name]


def _returned(func: ir.Operation) -> list[ir.Value]:
    """What the ends of a function give."""
    return [
        value
        for block in func.regions[0].blocks
        for view in block.operations
        if view.operation.name == "llvm.return"
        for value in view.operation.operands
    ]


def _is_by_value(func: ir.Operation, number: int) -> bool:
    """Whether a parameter's pointer is its own address, in parameter memory."""
    if "arg_attrs" not in func.attributes:
        return False
    return "llvm.byval" in ir.DictAttr(ir.ArrayAttr(func.attributes["arg_attrs"])[number])


def _is_fixed(func: ir.Operation) -> bool:
    return any(name in func.attributes for name in ("optimize_none", "naked"))


@dataclass(frozen=True)
class InterproceduralMemorySpaces(Pass):
    """Give generic pointers that functions take the address space that all calls agree on.

    Those that they return get the one that all their ends agree on.

    Functions whose calls disagree are cloned, one copy for each answer. Functions whose address is
    taken, and parameters about which a call knows nothing, stay generic. A `gpu.module` is taken
    for a whole program: nobody outside of it calls its functions.
    """

    name = "ipmsp"
    anchor = "gpu.module"
    statistics = {
        "resolved": "parameters that got an address space",
        "returned": "functions whose calls give pointers that got one",
        "cloned": "copies of functions for calls that disagree",
    }
    do_clone_for_ip_msp: int = option(-1, "copies at most; -1: as many as it takes, 0: none")

    def run(self, op: ir.Operation, cx: PassContext) -> None:
        made = 0
        votes = Votes(op)
        votes.settle()
        while self.do_clone_for_ip_msp < 0 or made < self.do_clone_for_ip_msp:
            copied = _clone_one(votes, cx)
            if copied is None:
                break
            made += 1
            votes = Votes(op)
            votes.settle()
        for (name, at), found in votes.spaces.items():
            if found in (UNDETERMINED, POISON):
                continue
            block = votes.functions[name].regions[0].blocks[0]
            _write(block.arguments[at], found, ir.InsertionPoint.at_block_begin(block))
            cx.count("resolved")
            cx.passed(
                votes.functions[name], f"@{name} : changed in argument memory space ({found})"
            )
        self._returned(votes, cx)

    def _returned(self, votes: Votes, cx: PassContext) -> None:
        for name, found in votes.results.items():
            if found in (UNDETERMINED, POISON) or name not in votes.calls:
                continue
            for call in votes.calls[name]:
                _write(call.results[0], found, ir.InsertionPoint.after(call))
            cx.count("returned")
            cx.passed(votes.functions[name], f"@{name} : returns memory space ({found})")


def _clone_one(votes: Votes, cx: PassContext) -> str | None:
    """Copy the first function whose calls disagree, all knowing their own, for one of the answers;
    the copy's name, None if there is no such function.
    """
    for name, func in votes.functions.items():
        asked = votes.asked(name)
        if not any(votes.spaces[name, i] == POISON for i in asked):
            continue
        answers = [(call, votes.at(call, name)) for call in votes.calls[name]]
        known = list(dict.fromkeys(a for _, a in answers if not {UNDETERMINED, POISON} & set(a)))
        if not known or len({a for _, a in answers}) < 2 or _recursive(func, name):
            continue
        chosen = known[-1]
        copy = f"{name}.{'.'.join(map(str, chosen))}"
        if copy in votes.functions:
            continue
        clone = func.clone(ir.InsertionPoint(func))
        clone.attributes["sym_name"] = ir.StringAttr.get(copy)
        clone.attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")
        for call, answer in answers:
            if answer == chosen:
                call.attributes["callee"] = ir.FlatSymbolRefAttr.get(copy)
        cx.count("cloned")
        cx.passed(func, f"@{name} is cloned: @{copy}")
        return copy
    return None


def _recursive(func: ir.Operation, name: str) -> bool:
    return any(
        view.operation.name == "llvm.call"
        and "callee" in view.operation.attributes
        and ir.FlatSymbolRefAttr(view.operation.attributes["callee"]).value == name
        for block in func.regions[0].blocks
        for view in block.operations
    )


def _write(pointer: ir.Value, found: int, place: ir.InsertionPoint) -> None:
    """Cast a pointer to its space; accesses, and addresses made of it, use what comes out.

    Other users keep the generic pointer. LLVM would fold a cast there and back before it looks at
    spaces, so the accesses themselves have to name theirs.
    """
    uses = list(pointer.uses)
    with place, ir.Location.unknown():
        concrete = ir.Operation.create(
            "llvm.addrspacecast",
            results=[ir.Type.parse(f"!llvm.ptr<{found}>")],
            operands=[pointer],
        )
    _follow(uses, concrete.result)
    if not list(concrete.result.uses):
        concrete.erase()


def _follow(uses: list[ir.OpOperand], concrete: ir.Value) -> None:
    """Let whoever of the users of a generic pointer accesses memory do so through `concrete`."""
    for use in uses:
        user, at = use.owner.operation, use.operand_number
        if _ADDRESS.get(user.name) == at:
            user.operands[at] = concrete
        elif user.name == _MOVED and at == 0 and space(user.results[0].type) == GENERIC:
            with ir.InsertionPoint(user), user.location:
                inner = ir.Operation.create(
                    user.name,
                    results=[concrete.type],
                    operands=[concrete, *list(user.operands)[1:]],
                    attributes={name: user.attributes[name] for name in user.attributes},
                )
            _follow(list(user.results[0].uses), inner.result)
            for dead in (inner, user):
                if not list(dead.results[0].uses):
                    dead.erase()
