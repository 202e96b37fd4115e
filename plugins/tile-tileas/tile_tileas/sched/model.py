"""From a block of nv_tileas to the graph that schedulers see, and the machine it runs on.

Latencies are rough, in cycles of one SM: they order operations, they do not predict time.
"""

from __future__ import annotations

from tile_core.mlir import ir
from tile_core.sched import Edge, LoopGraph, LoopOp, MachineModel
from tile_core.target import Target
from tile_tileas.analysis.pressure import used_values

# operation (or dialect) -> kind, unit, latency in cycles
_FACTS: dict[str, tuple[str, str, int]] = {
    "nv_tileas.tiled_load": ("load", "lsu", 400),
    "nv_tileas.load": ("load", "lsu", 400),
    "nv_tileas.tiled_store": ("store", "lsu", 4),
    "nv_tileas.store": ("store", "lsu", 4),
    "nv_tileas.atomic_cas": ("store", "lsu", 400),
    "nv_tileas.atomic_rmw": ("store", "lsu", 400),
    "nv_tileas.multimem": ("store", "lsu", 400),
    "nv_tileas.convert_layout": ("compute", "lsu", 60),
    "nv_tileas.dot": ("compute", "alu", 120),
    "nv_tileas.extract_slice": ("compute", "lsu", 60),
    "nv_tileas.insert_slice": ("compute", "lsu", 60),
    "nv_tileas.reduce": ("compute", "lsu", 120),
    "nv_tileas.reduce_mixed": ("compute", "lsu", 120),
    "nv_tileas.scan": ("compute", "lsu", 120),
    "nv_tileas.scan_mixed": ("compute", "lsu", 120),
    "math": ("compute", "sfu", 20),
    "nv_tileaa.atan2": ("compute", "sfu", 60),
    "nv_tileaa.divf": ("compute", "sfu", 30),
    "nv_tileaa.sqrt": ("compute", "sfu", 20),
    "nv_tileaa.rsqrt": ("compute", "sfu", 20),
    "scf": ("control", "branch", 50),
}
_DEFAULT = ("compute", "alu", 4)
_UNITS = (("alu", 4), ("branch", 1), ("lsu", 1), ("sfu", 1))
_WEAK_LOADS = ("nv_tileas.tiled_load", "nv_tileas.load")


def machine_model(target: Target, num_warps: int) -> MachineModel:
    """The units of one SM."""
    return MachineModel(target.name, _UNITS, num_warps)


def loop_graph(block: ir.Block, *, is_loop: bool) -> LoopGraph:
    """Data and memory dependences among the operations of `block`; the terminator is last.

    Memory is ordered as the program has it, except that weak loads pass each other. Values that
    come back in the next iteration depend on the terminator's operands at distance 1.
    """
    ops = list(block.operations)
    position: dict[ir.Value, int] = {
        result: at for at, op in enumerate(ops) for result in op.results
    }
    edges: list[Edge] = []
    loads: list[int] = []
    last_write: int | None = None
    for at, op in enumerate(ops):
        for source in sorted({position[v] for v in used_values(op) if v in position}):
            edges.append(Edge(source, at, _latency(ops[source])))
        effect = memory_effect(op)
        if effect == "none":
            continue
        if last_write is not None:
            edges.append(Edge(last_write, at, 0))
        if effect == "read":
            loads.append(at)
        else:
            edges += [Edge(load, at, 0) for load in loads]
            loads, last_write = [], at
    edges += [Edge(at, len(ops) - 1, 0) for at in range(len(ops) - 1)]
    if is_loop:
        edges += _carried(block, ops, position)
    return LoopGraph(tuple(_op(op) for op in ops), tuple(edges), is_loop)


def _carried(block: ir.Block, ops: list[ir.OpView], position: dict[ir.Value, int]) -> list[Edge]:
    edges = []
    for argument, value in zip(list(block.arguments)[1:], ops[-1].operands, strict=True):
        if value in position:
            for at, op in enumerate(ops):
                if argument in used_values(op):
                    source = position[value]
                    edges.append(Edge(source, at, _latency(ops[source]), distance=1))
    return edges


def memory_effect(op: ir.OpView | ir.Operation) -> str:
    """ "none", "read" (may pass other reads) or "write" (keeps its place)."""
    name = op.operation.name
    if name in _WEAK_LOADS:
        weak = ir.StringAttr(op.attributes["mem_semantic"]).value == "weak"
        return "read" if weak else "write"
    if name in ("nv_tileas.tiled_store", "nv_tileas.store"):
        return "write"
    if name in _IN_PLACE:
        return "write"
    if name.startswith(("arith.", "math.", "nv_tileaa.")) or name in _PURE:
        return "none"
    inner = [memory_effect(i) for r in op.regions for b in r.blocks for i in b.operations]
    if op.regions and name.startswith("scf."):
        return "write" if "write" in inner else "read" if "read" in inner else "none"
    return "write"


#: Operations of nv_tileaa that keep their place among accesses to memory.
_IN_PLACE = tuple(
    f"nv_tileaa.{name}"
    for name in (
        "alloca", "assert", "fence_alias", "free", "gdc_launch_dependents", "gdc_wait", "print",
    )
)  # fmt: skip
_PURE = (
    "nv_tileas.cat",
    "nv_tileas.convert_layout",
    "nv_tileas.dot",
    "nv_tileas.extract_slice",
    "nv_tileas.insert_slice",
    "nv_tileas.reduce",
    "nv_tileas.reduce_mixed",
    "nv_tileas.scan",
    "nv_tileas.scan_mixed",
    "nv_tileas.view",
    "nv_tileas.yield",
    "nv_tileas.yield_mixed",
    "scf.yield",
    "func.return",
)


def _facts(op: ir.OpView) -> tuple[str, str, int]:
    name = op.operation.name
    return _FACTS.get(name) or _FACTS.get(name.split(".", 1)[0]) or _DEFAULT


def _latency(op: ir.OpView) -> int:
    return _facts(op)[2]


def _op(op: ir.OpView) -> LoopOp:
    kind, unit, latency = _facts(op)
    return LoopOp(op.operation.name, kind, latency, unit=unit)
