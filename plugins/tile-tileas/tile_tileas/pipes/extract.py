"""The pipes of a function, and what its agents do with them, as plain data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tile_core.mlir import ir
from tile_core.passes import error_at
from tile_tileas.dialect.agents import AGENT, SWITCH, agents_of
from tile_tileas.dialect.pipelines import is_consumer_token, is_iterator, is_producer_token
from tile_tileas.pipes.model import (
    ACQUIRE,
    COMMIT,
    RELEASE,
    WAIT,
    Advance,
    Agent,
    Branch,
    Carried,
    Create,
    Kernel,
    Loop,
    Node,
    Pipe,
    Program,
    Step,
)

_P = "nv_tileas.async_pipeline_"
CREATE = f"{_P}create_pipeline"
#: Operations that are one step.
STEPS = {
    f"{_P}producer_acquire": ACQUIRE,
    f"{_P}producer_commit": COMMIT,
    f"{_P}consumer_wait": WAIT,
    f"{_P}consumer_release": RELEASE,
}
#: Operations whose region stands between two steps, or, with none, inside what others delimit.
REGIONS: dict[str, tuple[str, ...]] = {
    f"{_P}produce_one": (ACQUIRE, COMMIT),
    f"{_P}produce_one_async": (ACQUIRE, COMMIT),
    f"{_P}consume_one": (WAIT, RELEASE),
    f"{_P}consume_one_async": (WAIT, RELEASE),
    f"{_P}producer_write": (),
    f"{_P}consumer_read": (),
}
#: Scalars that are the same wherever they are computed from the same operands.
_SCALAR = ("arith.", "nv_tileaa.get_", "nv_tileas.async_pipeline_create_iterator")


@dataclass
class Extracted:
    """A kernel's pipes, with the operations that they come from.

    Attributes:
        kernel: the plain data.
        steps: operation of each step, at the step's `source`.
        pipe_of: the pipe of each token.
        created: the operation that creates each pipe.
    """

    kernel: Kernel
    steps: list[ir.OpView]
    pipe_of: dict[ir.Value, str]
    created: dict[str, ir.OpView]


def extract(func: ir.OpView) -> Extracted:
    """What the agents of `func` do; a function without agents is one.

    Raises:
        CompileError: a token whose pipe depends on control flow, uses of pipes outside of agents,
            agents inside of control flow.
    """
    return _Extraction().run(func)


def _concerns_pipes(node: Node) -> bool:
    """Whether anything is done with a pipe or its iterators in a part of a program."""
    if isinstance(node, Loop):
        return bool(node.carried) or any(map(_concerns_pipes, node.body))
    if isinstance(node, Branch):
        return bool(node.results) or any(_concerns_pipes(one) for arm in node.arms for one in arm)
    return True


@dataclass
class _Extraction:
    """A kernel's pipes and agents, as found so far."""

    steps: list[ir.OpView] = field(default_factory=list)
    pipe_of: dict[ir.Value, str] = field(default_factory=dict)
    created: dict[str, ir.OpView] = field(default_factory=dict)
    names: dict[ir.Value, str] = field(default_factory=dict)
    keys: dict[ir.Value, str] = field(default_factory=dict)
    consumers: dict[str, set[int]] = field(default_factory=dict)
    agents: list[Agent] = field(default_factory=list)

    def run(self, func: ir.OpView) -> Extracted:
        program = self._block(func.regions[0].blocks[0])
        if not self.agents:
            self.agents.append(Agent("the kernel", program))
        elif any(not isinstance(node, Create | Advance) for node in program):
            raise error_at(func, "uses pipes both in agents and outside of them")
        stages = {name: op.attributes["numStages"] for name, op in self.created.items()}
        pipes = tuple(
            Pipe(
                name, ir.IntegerAttr(stages[name]).value, tuple(sorted(self.consumers[name] or {0}))
            )
            for name in self.created
        )
        kernel = Kernel(pipes, tuple(self.agents))
        return Extracted(kernel, self.steps, self.pipe_of, self.created)

    # --- blocks ------------------------------------------------------------------------------

    def _block(self, block: ir.Block) -> Program:
        nodes: list[Node] = []
        for op in block.operations:
            nodes += self._operation(op)
        return tuple(nodes)

    def _operation(self, op: ir.OpView) -> Program:
        name = op.operation.name
        if name in STEPS:
            return (self._step(op, STEPS[name]),)
        if name in REGIONS:
            return self._region(op, REGIONS[name])
        handler = self._handlers().get(name)
        if handler is not None:
            return handler(op)
        return tuple(
            node for region in op.regions for block in region.blocks for node in self._block(block)
        )

    def _handlers(self) -> dict[str, Callable[[ir.OpView], Program]]:
        return {
            CREATE: self._create,
            f"{_P}create_iterator": self._iterator,
            f"{_P}inc_iter": self._advance,
            "scf.for": self._for,
            "scf.while": self._while,
            "scf.if": self._if,
            SWITCH: self._switch,
        }

    def _create(self, op: ir.OpView) -> Program:
        name = f"pipe {len(self.created)}"
        self.created[name], self.consumers[name] = op, set()
        for end in op.results:
            self.pipe_of[end] = name
        return ()

    def _iterator(self, op: ir.OpView) -> Program:
        return (Create(self._name(op.results[0])),)

    def _advance(self, op: ir.OpView) -> Program:
        return (Advance(self._name(op.results[0]), self._name(op.operands[0])),)

    def _switch(self, op: ir.OpView) -> Program:
        parent = op.operation.parent
        if self.agents or parent is None or parent.name != "func.func":
            raise error_at(op, "expects to be the kernel's only switch, outside of control flow")
        for at, agent in enumerate(agents_of(op)):
            assert agent.operation.name == AGENT
            self.agents.append(Agent(f"agent {at}", self._block(agent.regions[0].blocks[0])))
        return ()

    # --- steps -------------------------------------------------------------------------------

    def _step(self, op: ir.OpView, kind: str) -> Step:
        pipe = self._pipe(op, op.operands[0])
        self.pipe_of[op.results[0]] = pipe
        index = list(op.operands)[1:]
        place = self._name(index[0]) if len(index) == 1 and is_iterator(index[0].type) else ""
        consumer = 0
        if is_consumer_token(op.operands[0].type):
            consumer = self._consumer(op)
            self.consumers[pipe].add(consumer)
        self.steps.append(op)
        return Step(kind, pipe, place, consumer, source=len(self.steps) - 1)

    def _consumer(self, op: ir.OpView) -> int:
        """The consumer's number; that of a release is its token's."""
        if "consumer_idx" in op.attributes:
            return ir.IntegerAttr(op.attributes["consumer_idx"]).value
        origin = op.operands[0].owner
        while not isinstance(origin, ir.Block) and "consumer_idx" not in origin.attributes:
            if not len(origin.operands):
                return 0
            origin = origin.operands[0].owner
        if isinstance(origin, ir.Block):
            return 0
        return ir.IntegerAttr(origin.attributes["consumer_idx"]).value

    def _region(self, op: ir.OpView, kinds: tuple[str, ...]) -> Program:
        pipe = self._pipe(op, op.operands[0])
        self.pipe_of[op.results[0]] = pipe
        body = self._block(op.regions[0].blocks[0])
        if not kinds:
            return body
        return (self._step(op, kinds[0]), *body, self._step(op, kinds[1]))

    def _pipe(self, op: ir.OpView, token: ir.Value) -> str:
        if token not in self.pipe_of:
            raise error_at(op, "uses a token of a pipe that is not known here")
        return self.pipe_of[token]

    # --- control flow ------------------------------------------------------------------------

    def _pass_on(
        self, op: ir.OpView, sources: Sequence[ir.Value], targets: Sequence[ir.Value]
    ) -> None:
        """Tokens keep their pipe over an edge of control flow."""
        for source, target in zip(sources, targets, strict=True):
            if is_producer_token(source.type) or is_consumer_token(source.type):
                pipe = self._pipe(op, source)
                if self.pipe_of.setdefault(target, pipe) != pipe:
                    raise error_at(op, "expects a token to be of one pipe, whatever way is taken")

    def _for(self, op: ir.OpView) -> Program:
        block, initial = op.regions[0].blocks[0], list(op.operands)[3:]
        arguments = list(block.arguments)[1:]
        self._pass_on(op, initial, arguments)
        body = self._block(block)
        yielded = list(list(block.operations)[-1].operands)
        self._pass_on(op, yielded, arguments)
        self._pass_on(op, initial, op.results)
        key = " ".join(self.key(bound) for bound in list(op.operands)[:3])
        return (Loop(key, body, self._carried(arguments, initial, yielded, op.results)),)

    def _carried(
        self,
        arguments: Sequence[ir.Value],
        initial: Sequence[ir.Value],
        yielded: Sequence[ir.Value],
        results: Sequence[ir.Value],
    ) -> tuple[Carried, ...]:
        columns = zip(arguments, initial, yielded, results, strict=True)
        return tuple(Carried(*map(self._name, row)) for row in columns if is_iterator(row[0].type))

    def _while(self, op: ir.OpView) -> Program:
        """The part before the condition runs as often as the body, and once more."""
        before, after = (region.blocks[0] for region in op.regions)
        self._pass_on(op, op.operands, before.arguments)
        head = tuple(node for node in self._block(before) if _concerns_pipes(node))
        if any(not isinstance(node, Create | Advance) for node in head):
            raise error_at(op, "uses pipes before its condition")
        forwarded = list(list(before.operations)[-1].operands)[1:]
        self._pass_on(op, forwarded, after.arguments)
        self._pass_on(op, forwarded, op.results)
        for value, argument in zip(forwarded, after.arguments, strict=True):
            self.names[argument] = self._name(value)
        body = self._block(after)
        yielded = list(list(after.operations)[-1].operands)
        self._pass_on(op, yielded, before.arguments)
        carried = self._carried(before.arguments, op.operands, yielded, before.arguments)
        for value, result in zip(forwarded, op.results, strict=True):
            self.names[result] = self._name(value)
        return (Loop(f"while {len(self.names)}", (*head, *body), carried),)

    def _if(self, op: ir.OpView) -> Program:
        arms: list[Program] = []
        yields: list[list[ir.Value]] = []
        for region in op.regions:
            blocks = list(region.blocks)
            arms.append(self._block(blocks[0]) if blocks else ())
            yields.append(list(list(blocks[0].operations)[-1].operands) if blocks else [])
        for values in yields:
            self._pass_on(op, values[: len(op.results)], list(op.results)[: len(values)])
        results = tuple(
            (self._name(result), self._name(yields[0][at]), self._name(yields[1][at]))
            for at, result in enumerate(op.results)
            if is_iterator(result.type)
        )
        return (Branch(self.key(op.operands[0]), (arms[0], arms[1]), results),)

    # --- names -------------------------------------------------------------------------------

    def _name(self, value: ir.Value) -> str:
        return self.names.setdefault(value, f"%{len(self.names)}")

    def key(self, value: ir.Value) -> str:
        """A text that two scalars share if they are computed in the same way from the same."""
        if value not in self.keys:
            self.keys[value] = self._key(value)
        return self.keys[value]

    def _key(self, value: ir.Value) -> str:
        owner = value.owner
        if isinstance(owner, ir.Block) or not owner.name.startswith(_SCALAR):
            return self._name(value)
        attributes = ", ".join(f"{a} = {owner.attributes[a]}" for a in sorted(owner.attributes))
        operands = ", ".join(self.key(operand) for operand in owner.operands)
        at = [result == value for result in owner.results].index(True)
        return f"{owner.name}({operands}){{{attributes}}}#{at}"
