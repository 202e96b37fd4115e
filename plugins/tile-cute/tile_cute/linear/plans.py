"""The three ways to move a distributed tile from one layout to another, as exact recipes.

Every plan turns the registers of a thread under the source layout into its registers under the
destination layout. "Slots" number the destination registers without duplicates; destination
register i is slot `gather[i]`. Costs are integers, quarter cycles of one warp on one SM.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tile_cute import gf2
from tile_cute.linear.layout import LinearLayout

# Quarter cycles. Shuffles and shared-memory wavefronts issue once per cycle and SM, selects on
# four schedulers; latencies are those measured on recent parts, rounded.
SHUFFLE_COST = 4
SELECT_COST = 1
WAVEFRONT_COST = 4
ACCESS_COST = 1
SHUFFLE_LATENCY = 96
SHARED_LATENCY = 240
CTA_BARRIER_COST = 160
WARP_BARRIER_COST = 16


@dataclass(frozen=True)
class RegisterPermute:
    """No data leaves its thread: destination register i is source register `perm[i]`."""

    perm: tuple[int, ...]

    @property
    def cost(self) -> int:
        return 0

    @property
    def is_identity(self) -> bool:
        return self.perm == tuple(range(len(self.perm)))

    def describe(self) -> str:
        if self.is_identity:
            return f"register permutation: identity on {len(self.perm)} registers"
        return f"register permutation of {len(self.perm)} registers"


@dataclass(frozen=True)
class ConditionalXor:
    """Threads whose `space` index has bit `bit` set see register r ^ xor in place of r."""

    space: str
    bit: int
    xor: int


@dataclass(frozen=True)
class ShuffleRound:
    """Values that travel along the same lane map: `sources[k]` of the sender fills `slots[k]`.

    The sender of (lane, warp) is `lane_map(lane) ^ warp_map(warp) ^ lane_xor`. `words` 32-bit
    shuffles carry it; 0 if every lane sends to itself.
    """

    lane_xor: int
    sources: tuple[int, ...]
    slots: tuple[int, ...]
    words: int


@dataclass(frozen=True)
class WarpShuffle:
    """Data moves between the lanes of each warp, in five steps.

    1. A[r] = source register r ^ (XOR of `before[k].xor` whose bit is set), at the sender.
    2. For each round: B[slots[k]] = A[sources[k]] of the sending lane (`source_lane`).
    3. C[s] = B[s ^ (XOR of `after[k].xor` whose bit is set)].
    4. Destination register i = C[gather[i]].
    """

    before: tuple[ConditionalXor, ...]
    rounds: tuple[ShuffleRound, ...]
    after: tuple[ConditionalXor, ...]
    gather: tuple[int, ...]
    lane_map: tuple[int, ...]
    warp_map: tuple[int, ...]
    source_registers: int

    def source_lane(self, lane: int, warp: int, step: ShuffleRound) -> int:
        """The lane from which `lane` of `warp` receives in this round."""
        return gf2.combine(self.lane_map, lane) ^ gf2.combine(self.warp_map, warp) ^ step.lane_xor

    @property
    def is_butterfly(self) -> bool:
        """Whether lane and sender differ by `lane_xor` alone (shfl.bfly suffices)."""
        straight = all(image == 1 << bit for bit, image in enumerate(self.lane_map))
        return straight and not any(self.warp_map)

    @cached_property
    def shuffles(self) -> int:
        """Number of 32-bit shuffle instructions per warp."""
        return sum(step.words for step in self.rounds)

    @property
    def slots(self) -> int:
        return sum(len(step.slots) for step in self.rounds)

    @property
    def selects(self) -> int:
        return len(self.before) * self.source_registers + len(self.after) * self.slots

    @property
    def cost(self) -> int:
        moved = SHUFFLE_LATENCY + SHUFFLE_COST * self.shuffles if self.shuffles else 0
        return moved + SELECT_COST * self.selects

    def describe(self) -> str:
        kind = "butterfly" if self.is_butterfly else "indexed"
        return (
            f"{self.shuffles} {kind} warp shuffles in {len(self.rounds)} rounds, "
            f"{self.selects} register selects"
        )


@dataclass(frozen=True)
class SharedAccess:
    """One vector access of a thread: `registers` in memory order, at element `offset` (XORed with
    the offsets of lane and warp).
    """

    registers: tuple[int, ...]
    offset: int


@dataclass(frozen=True)
class SharedSide:
    """The stores, or the loads, of one thread.

    The element offset of an access is `lane_map(lane) ^ warp_map(warp) ^ access.offset`; it is a
    multiple of the vector width. In pass p a warp performs `accesses[p ^ warp_pass(warp)]`, which
    may be none; unless guarded plans were asked for, that is `accesses[p]` for all warps.
    `wavefronts` counts those of one warp over all passes, `ideal` what they would be without
    bank conflicts.
    """

    accesses: tuple[tuple[SharedAccess, ...], ...]
    lane_map: tuple[int, ...]
    warp_map: tuple[int, ...]
    warp_pass: tuple[int, ...]
    vector: int
    wavefronts: int
    ideal: int

    @property
    def is_guarded(self) -> bool:
        """Whether the accesses of a pass depend on the warp."""
        return any(self.warp_pass)

    @property
    def instructions(self) -> int:
        """How many accesses a thread makes over all passes, if it takes part in all."""
        return sum(map(len, self.accesses))

    def group(self, number: int, warp: int) -> tuple[SharedAccess, ...]:
        """What `warp` does in pass `number`."""
        return self.accesses[number ^ gf2.combine(self.warp_pass, warp)]

    def thread_offset(self, lane: int, warp: int) -> int:
        return gf2.combine(self.lane_map, lane) ^ gf2.combine(self.warp_map, warp)


@dataclass(frozen=True)
class SharedRoundTrip:
    """Through shared memory: per pass barrier, stores, barrier, loads.

    Element offsets are in units of `elem_bytes`. The stores are in source registers, the loads
    fill slots. The stores of lanes and warps with a bit of `redundant_lanes`/`redundant_warps`
    set repeat those of others and may be left out. `scope` says how far data travels: barriers
    of a `warp` suffice if the buffer is not reused by other warps. `buffer` is the layout of the
    whole tile in memory (offset -> tile), None if it goes through in several passes. `matrices`:
    (wavefronts, instructions) of a warp's matrix loads that do as `load` says, if there are any.
    """

    store: SharedSide
    load: SharedSide
    gather: tuple[int, ...]
    elem_bytes: int
    bytes: int
    passes: int
    redundant_lanes: int
    redundant_warps: int
    scope: str
    buffer: LinearLayout | None = None
    matrices: tuple[int, int] | None = None

    @property
    def wavefronts(self) -> int:
        loads = self.load.wavefronts if self.matrices is None else self.matrices[0]
        return self.store.wavefronts + loads

    @property
    def cost(self) -> int:
        barrier = CTA_BARRIER_COST if self.scope == "cta" else WARP_BARRIER_COST
        fixed = self.passes * (SHARED_LATENCY + 2 * barrier)
        loads = self.load.instructions if self.matrices is None else self.matrices[1]
        accesses = self.store.instructions + loads
        return fixed + WAVEFRONT_COST * self.wavefronts + ACCESS_COST * accesses

    def describe(self) -> str:
        return (
            f"shared-memory round trip: {self.bytes} bytes, {self.passes} "
            f"pass{'es' if self.passes > 1 else ''}, "
            f"stores of {self.store.vector * self.elem_bytes} bytes in {self.store.wavefronts} "
            f"wavefronts (ideal {self.store.ideal}), "
            f"{self._loads}"
        )

    @property
    def _loads(self) -> str:
        if self.matrices is not None:
            wavefronts, instructions = self.matrices
            return f"{instructions} loads of matrices in {wavefronts} wavefronts"
        return (
            f"loads of {self.load.vector * self.elem_bytes} bytes in {self.load.wavefronts} "
            f"wavefronts (ideal {self.load.ideal})"
        )


Plan = RegisterPermute | WarpShuffle | SharedRoundTrip

# fragments[warp][lane] is the register file of a thread
Fragments = Sequence[Sequence[Sequence[object]]]


def execute(plan: Plan, fragments: Fragments) -> list[list[list[object]]]:
    """What a plan means: the destination registers of every thread, `[warp][lane][register]`.

    The reference for code generators; raises IndexError or KeyError for a plan that reads what
    was never written.
    """
    match plan:
        case RegisterPermute(perm=perm):
            return [[[regs[i] for i in perm] for regs in lanes] for lanes in fragments]
        case WarpShuffle():
            return [_shuffle(plan, warp, lanes) for warp, lanes in enumerate(fragments)]
        case SharedRoundTrip():
            return _round_trip(plan, fragments)


def _conditional(steps: tuple[ConditionalXor, ...], lane: int, warp: int) -> int:
    index = {"lane": lane, "warp": warp}
    total = 0
    for step in steps:
        if index[step.space] >> step.bit & 1:
            total ^= step.xor
    return total


def _shuffle(plan: WarpShuffle, warp: int, lanes: Sequence[Sequence[object]]) -> list[list[object]]:
    ready = []
    for lane, regs in enumerate(lanes):
        flip = _conditional(plan.before, lane, warp)
        ready.append([regs[r ^ flip] for r in range(len(regs))])
    result = []
    for lane in range(len(lanes)):
        received: dict[int, object] = {}
        for step in plan.rounds:
            sender = ready[plan.source_lane(lane, warp, step)]
            for source, slot in zip(step.sources, step.slots, strict=True):
                received[slot] = sender[source]
        flip = _conditional(plan.after, lane, warp)
        result.append([received[slot ^ flip] for slot in plan.gather])
    return result


def _round_trip(plan: SharedRoundTrip, fragments: Fragments) -> list[list[list[object]]]:
    slots: list[list[dict[int, object]]] = [[{} for _ in lanes] for lanes in fragments]
    for number in range(plan.passes):
        memory: dict[int, object] = {}
        for warp, lanes in enumerate(fragments):
            for lane, regs in enumerate(lanes):
                base = plan.store.thread_offset(lane, warp)
                for access in plan.store.group(number, warp):
                    for k, register in enumerate(access.registers):
                        memory[(base ^ access.offset) + k] = regs[register]
        for warp, lanes in enumerate(slots):
            for lane, got in enumerate(lanes):
                base = plan.load.thread_offset(lane, warp)
                for access in plan.load.group(number, warp):
                    for k, register in enumerate(access.registers):
                        got[register] = memory[(base ^ access.offset) + k]
    return [[[got[slot] for slot in plan.gather] for got in lanes] for lanes in slots]
