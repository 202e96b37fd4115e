"""From a block of nv_tileas to the graph that schedulers see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from tile_sched.machine import MachineTable, load_machine, parse_machine

from tile_core.locations import source_location
from tile_core.machines import Machine, machine_for
from tile_core.mlir import ir
from tile_core.sched import Constraints, Edge, LoopGraph, LoopOp, MachineModel, Use
from tile_core.target import Target
from tile_tileas.analysis.alias import AliasAnalysis, Roots, may_alias
from tile_tileas.analysis.buffers import allocation_of
from tile_tileas.analysis.pressure import tile_bits, used_values
from tile_tileas.dialect.buffers import Buffer
from tile_tileas.dialect.effects import buffer_effects
from tile_tileas.sched.constraints import constraints_of
from tile_tileas.sched.facts import Facts, facts_of, memory_effect

_LANES, _REGISTER_BITS = 32, 32
#: Iterations that a loop inside of a body is taken to have where its bounds are not constant.
_INNER_TRIPS = 8
_TRACKED = ("nv_tileas.tiled_load", "nv_tileas.load", "nv_tileas.tiled_store", "nv_tileas.store")


@dataclass(frozen=True)
class Machinery:
    """What times are computed with: a machine model's classes, a GPU's numbers, a block's warps."""

    table: MachineTable
    machine: Machine
    target: str
    num_warps: int
    registers: int  # registers per thread that bodies should keep to

    @classmethod
    def of(cls, target: Target, num_warps: int, model: tuple[str, str] | None = None) -> Machinery:
        """For a block of `num_warps` warps; `model` is (where it is from, TOML), else ours."""
        table = load_machine("sm") if model is None else parse_machine(model[1], model[0])
        most = target.registers // (_LANES * num_warps)
        return cls(
            table,
            machine_for(target.name),
            target.name,
            num_warps,
            min(most, target.max_registers),
        )

    def model(self, shared: int = 0) -> MachineModel:
        """The resources of one SM."""
        return self.table.model(
            self.target, self.num_warps, registers=self.registers, shared=shared
        )


def loop_graph(
    block: ir.Block,
    machinery: Machinery,
    *,
    is_loop: bool,
    aliases: AliasAnalysis | None = None,
) -> LoopGraph:
    """Data and memory dependences among the operations of `block`; the terminator is last.

    Memory is ordered as the program has it, except that weak loads pass each other, and that
    accesses which cannot meet (`aliases`) pass. Values and memory that come back in the next
    iteration are edges at distance 1.
    """
    ops = list(block.operations)
    nodes = tuple(_node(op, machinery) for op in ops)
    position: dict[ir.Value, int] = {
        result: at for at, op in enumerate(ops) for result in op.results
    }
    edges: list[Edge] = []
    for at, op in enumerate(ops):
        for source in sorted({position[v] for v in used_values(op) if v in position}):
            edges.append(Edge(source, at, nodes[source].latency))
    edges += _memory(ops, aliases, is_loop)
    edges += [Edge(at, len(ops) - 1, 0, kind="order") for at in range(len(ops) - 1)]
    if is_loop:
        edges += _carried(block, ops, position, nodes)
    return LoopGraph(nodes, tuple(edges), is_loop, _trips(block.owner) if is_loop else None)


# --- edges ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Access:
    """One thing that op `at` does: to global memory, or to a buffer (None: to any)."""

    at: int
    effect: str  # "read" or "write"
    in_buffer: bool
    roots: Roots = None
    buffer: ir.Value | None = None

    def meets(self, other: _Access) -> bool:
        if self.in_buffer != other.in_buffer:
            return False
        if self.in_buffer:
            return self.buffer is None or other.buffer is None or self.buffer == other.buffer
        return may_alias(self.roots, other.roots)

    def covers(self, other: _Access) -> bool:
        """Whether whatever `other` must not pass lies before this one, too."""
        if self.effect != "write" or self.in_buffer != other.in_buffer:
            return False
        if self.in_buffer:
            return self.buffer is None or (other.buffer is not None and self.buffer == other.buffer)
        return self.roots is None or self.roots == other.roots


def _memory(ops: list[ir.OpView], aliases: AliasAnalysis | None, is_loop: bool) -> list[Edge]:
    """Order of accesses: each behind those that it must not pass, in its own and in the iteration
    before. What lies before a write that covers it is ordered through that write.
    """
    accesses = [access for at, op in enumerate(ops) for access in _accesses(at, op, aliases)]
    edges = {}
    for index, access in enumerate(accesses):
        # Nearest first: this iteration back to its begin, then the one before from its end.
        behind = [(before, 0) for before in reversed(accesses[:index])]
        behind += [(before, 1) for before in reversed(accesses)] if is_loop else []
        for before, distance in behind:
            if access.effect == before.effect == "read" or not before.meets(access):
                continue
            if before.at != access.at or distance:
                edges[Edge(before.at, access.at, 0, distance, "memory")] = None
            if before.covers(access):
                break
    return list(edges)


def _accesses(at: int, op: ir.OpView, aliases: AliasAnalysis | None) -> list[_Access]:
    effect = memory_effect(op)
    found = [
        _Access(at, "read" if kind == "read" else "write", True, buffer=_allocation(value))
        for kind, value in buffer_effects(op)
        if kind != "allocate" and Buffer.of(value.type) is not None
    ]
    if op.regions and _touches_buffers(op):
        found.append(_Access(at, "write", True))
    if effect == "none":
        return found
    if op.operation.name in _TRACKED:
        roots = aliases.of_access(op) if aliases is not None else None
        return [*found, _Access(at, effect, False, roots)]
    # Whatever else it is: a barrier, a print, a branch with stores in it.
    return [*found, _Access(at, effect, False), _Access(at, effect, True)]


def _touches_buffers(op: ir.OpView) -> bool:
    """Whether an operation inside of the regions of `op` has an effect on a buffer."""
    return any(
        any(Buffer.of(value.type) is not None for _, value in buffer_effects(inner))
        or _touches_buffers(inner)
        for region in op.regions
        for block in region.blocks
        for inner in block.operations
    )


def _allocation(buffer: ir.Value) -> ir.Value | None:
    found = allocation_of(buffer)
    return None if found is None else found.result


def _carried(
    block: ir.Block,
    ops: list[ir.OpView],
    position: Mapping[ir.Value, int],
    nodes: tuple[LoopOp, ...],
) -> list[Edge]:
    """Values that the next iteration takes: argument of the block <- op of this iteration."""
    edges = []
    for argument, value in carried_values(block):
        if value in position:
            source = position[value]
            for at, op in enumerate(ops):
                if argument in used_values(op):
                    edges.append(Edge(source, at, nodes[source].latency, distance=1))
    return edges


def carried_values(block: ir.Block) -> list[tuple[ir.Value, ir.Value]]:
    """(argument of a loop body, value it has in the next iteration).

    For `scf.while` the body is the region before the condition; the one behind it must only hand
    values back.
    """
    terminator = list(block.operations)[-1]
    if block.owner.name == "scf.for":
        return list(zip(list(block.arguments)[1:], terminator.operands, strict=True))
    passed = list(terminator.operands)[1:]  # operands of scf.condition behind the condition
    after = block.owner.regions[1].blocks[0]
    handed = dict(zip(after.arguments, passed, strict=True))
    back = list(after.operations)[-1].operands
    return [
        (argument, handed[value])
        for argument, value in zip(block.arguments, back, strict=True)
        if value in handed
    ]


def _trips(loop: ir.Operation | ir.OpView) -> int | None:
    """The number of iterations of an `scf.for` with constant bounds."""
    if loop.operation.name != "scf.for":
        return None
    bounds = [_constant(value) for value in list(loop.operands)[:3]]
    if None in bounds:
        return None
    first, last, step = (bound or 0 for bound in bounds)
    return max(0, -(-(last - first) // step)) if step > 0 else None


def _constant(value: ir.Value) -> int | None:
    owner = value.owner
    if isinstance(owner, ir.Block) or owner.name != "arith.constant":
        return None
    attribute = owner.attributes["value"]
    return attribute.value if isinstance(attribute, ir.IntegerAttr) else None


# --- nodes ---------------------------------------------------------------------------------------


def _node(op: ir.OpView, machinery: Machinery) -> LoopOp:
    name = op.operation.name
    facts = facts_of(name)
    uses, latency = _cost(op, facts, machinery)
    bits = sum(tile_bits(result) for result in op.results)
    threads = _LANES * machinery.num_warps
    return LoopOp(
        name,
        facts.kind,
        latency,
        uses=uses,
        constraints=_constraints(op),
        registers=-(-bits // (threads * _REGISTER_BITS)),
        where=str(source_location(op.operation.location) or ""),
    )


def _constraints(op: ir.OpView) -> Constraints:
    return constraints_of(op.operation).constraints


def _cost(op: ir.OpView, facts: Facts, machinery: Machinery) -> tuple[tuple[Use, ...], int]:
    work = _work(op, facts, machinery)
    if facts.class_ not in ("free", "barrier", "control") and not _has_tile(op):
        return (), machinery.table.cost("scalar", work, machinery.machine).latency
    if op.regions and facts.class_ == "control":
        work["scale"] = _inside(op, machinery)
    name = facts.class_
    if name == "mma" and not _on_tensor_cores(op):
        name = "mma_fma"
    cost = machinery.table.cost(name, work, machinery.machine)
    return cost.uses, cost.latency


def _on_tensor_cores(op: ir.OpView) -> bool:
    return "atom" not in op.attributes or "mma" in str(op.attributes["atom"])


def _inside(op: ir.OpView, machinery: Machinery) -> int:
    """Cycles of the operations inside, one after the other, as often as they are repeated."""
    total = sum(
        max(1, _cost(inner, facts_of(inner.operation.name), machinery)[1])
        for region in op.regions
        for block in region.blocks
        for inner in block.operations
    )
    trips = _trips(op)
    repeated = op.operation.name in ("scf.for", "scf.while")
    return total * ((_INNER_TRIPS if trips is None else trips) if repeated else 1)


def _work(op: ir.OpView, facts: Facts, machinery: Machinery) -> dict[str, float]:
    """The measures of an operation, by the largest tile it makes, takes or stores."""
    results = [value.type for value in op.results]
    taken = [value.type for value in op.operands]
    tiles = [_size(type_) for type_ in results] or [(0, 0)]
    if max(tiles) == (0, 0):
        tiles = [_size(type_) for type_ in taken] or [(0, 0)]
    elements, bits = max(tiles)
    if facts.class_ == "reduce":
        elements, bits = max([_size(type_) for type_ in taken] or [(0, 0)])
    work: dict[str, float] = {
        "elements": elements,
        "bytes": elements * bits / 8,
        "scale": facts.scale,
        "warps": machinery.num_warps,
    }
    if facts.kind == "mma":
        work |= _products([_shape(type_) for type_ in taken], taken)
    return work


def _products(shapes: list[list[int]], types: list[ir.Type]) -> dict[str, float]:
    """Multiply-adds and operand bytes of a product [B,] M, K x [B,] K, N; 16-bit ones count 1."""
    a, b = shapes[0], shapes[1]
    bits = max(_size(types[0])[1], 1)
    products = prod(a) * b[-1]
    operand_bytes = sum(
        prod(shape) * _size(type_)[1] / 8
        for shape, type_ in zip(shapes[:2], types[:2], strict=True)
    )
    return {"products": products * bits / 16, "bytes": operand_bytes}


def _shape(type_: ir.Type) -> list[int]:
    return list(type_.shape) if isinstance(type_, ir.RankedTensorType) else [1]


def _has_tile(op: ir.OpView) -> bool:
    values = [*op.results, *op.operands]
    return any(isinstance(value.type, ir.RankedTensorType) for value in values)


def _size(type_: ir.Type) -> tuple[int, int]:
    """(elements, bits of each) of a tile; nothing for anything else."""
    if not isinstance(type_, ir.RankedTensorType):
        return 0, 0
    element = type_.element_type
    if isinstance(element, (ir.IntegerType, ir.FloatType)):
        return prod(type_.shape), max(8, element.width)
    return prod(type_.shape), 64  # pointers
