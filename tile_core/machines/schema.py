"""What a machine file holds: one record per section, one number per mechanism of the SM.

Every field names its unit; a file repeats it, so that a number in the wrong unit is refused. `clk`
are cycles of the SM's clock. Rates are of the whole SM unless they say otherwise.
"""

# Annotations are values here: loading reads them, and would have to compile texts at each start.

from dataclasses import Field, dataclass, field
from typing import Any


def number(unit: str, default: float | None = None) -> Any:
    """A field in `unit`; optional with a default (mechanisms that not every GPU has)."""
    if default is None:
        return field(metadata={"unit": unit})
    return field(default=default, metadata={"unit": unit})


def unit_of(entry: Field[Any]) -> str:
    return entry.metadata["unit"]


@dataclass(frozen=True, kw_only=True)
class Chip:
    """How many of everything there are."""

    sms: float = number("SM")
    sub_cores: float = number("1/SM", 4)  # schedulers; warp w runs on sub-core w mod 4
    warps: float = number("warp/SM")
    ctas: float = number("CTA/SM", 32)
    registers: float = number("register/SM", 65536)
    register_unit: float = number("register/warp", 256)  # granule of allocation
    shared: float = number("B/SM")  # all CTAs together, 1 KiB of the system for each included
    shared_cta: float = number("B/CTA")
    shared_reserved: float = number("B/CTA", 1024)
    data_cache: float = number("B/SM")  # of which L1 has what is not shared memory
    l2: float = number("B")
    l2_parts: float = number("1", 1)  # partitions or dies; a line has one home
    tensor_memory_columns: float = number("column/SM", 0)


@dataclass(frozen=True, kw_only=True)
class Clock:
    """SM clock: `boost` when idle, falling linearly to `full_tensor` as tensor use goes to 1."""

    boost: float = number("MHz")
    full_tensor: float = number("MHz")

    def at(self, tensor_use: float) -> float:
        """MHz under a share of tensor-core cycles in [0, 1]: the power limit at work."""
        return self.boost + (self.full_tensor - self.boost) * min(max(tensor_use, 0.0), 1.0)


@dataclass(frozen=True, kw_only=True)
class Memory:
    """Latencies from issue to use, bandwidths reached by reads."""

    shared_latency: float = number("clk")
    shared_bandwidth: float = number("B/clk/SM", 128)
    l1_latency: float = number("clk")
    l1_bandwidth: float = number("B/clk/SM", 128)
    l2_latency: float = number("clk")
    l2_far_latency: float = number("clk")  # a line whose home is another partition or die
    l2_bandwidth: float = number("B/clk")  # the chip's
    l2_port: float = number("B/clk/SM", 64)  # of one SM, others idle
    dram_latency: float = number("clk")
    dram_wait: float = number("clk")  # in queues where half of the bandwidth is used
    dram_bandwidth: float = number("GB/s")  # reached
    dram_peak: float = number("GB/s")
    request_interval: float = number("clk/request", 2)  # front end of an SM's memory pipe
    atomic_latency: float = number("clk")
    local_latency: float = number("clk")  # spills: hits in L1


@dataclass(frozen=True, kw_only=True)
class Pipe:
    """A pipe of the cores: warp instructions per clk of an SM, and clk from issue to use."""

    rate: float = number("warp-inst/clk/SM")
    latency: float = number("clk")


@dataclass(frozen=True, kw_only=True)
class Pipes:
    """The pipes by the kind of instruction."""

    fma: Pipe  # FFMA, FADD, FMUL
    half: Pipe  # HFMA2, HADD2, HMUL2
    packed: Pipe  # FFMA2 and others on f32x2; the rate of fma/2 where there is no such unit
    alu: Pipe  # IADD3, LOP3, SHF, PRMT, SETP, SEL, MNMX
    imad: Pipe
    mufu: Pipe  # ex2, rcp, rsq, lg2, sin, cos, tanh
    popc: Pipe
    convert: Pipe  # packing conversions to 16 and 8 bits
    convert_slow: Pipe  # those on the transcendental unit's path
    shuffle: Pipe
    redux: Pipe
    fp64: Pipe
    uniform: Pipe  # the scalar datapath
    branch: Pipe


@dataclass(frozen=True, kw_only=True)
class Mma:
    """`mma.sync`: clk of one sub-core for m16n8k16 of 16-bit types, others by their K."""

    m16n8k16: float = number("clk")
    latency: float = number("clk")
    fp64_m8n8k4: float = number("clk", 32)
    block_scaled: float = number("clk", 0.0)  # m16n8k32 of 8-bit floats; 0: as without scales
    #: m16n8k16 whose sums are f16, m16n8k32 of bytes or with such sums; 0: as those with f32.
    narrow_sums: float = number("clk", 0.0)

    @property
    def scaled_m16n8k32(self) -> float:
        """Clk of one sub-core for m16n8k32 of 8-bit floats with block scales."""
        return self.block_scaled or self.m16n8k16

    @property
    def narrow_m16n8k16(self) -> float:
        """Clk of one sub-core for m16n8k16 whose sums are f16."""
        return self.narrow_sums or self.m16n8k16


@dataclass(frozen=True, kw_only=True)
class Wgmma:
    """`wgmma` m64nN with K of 32 bytes: N/2 clk, or longer where operands limit it."""

    clk_per_column: float = number("clk/column", 0.0)  # 0: there is none
    shared_base: float = number("clk", 0.0)  # A from shared memory: base + N * per column
    shared_per_column: float = number("clk/column", 0.0)
    drain: float = number("clk", 0.0)  # from the last product to its result in registers

    def clk(self, n: int, a_in_registers: bool = False) -> float:
        """Cycles that the tensor cores of an SM are busy with m64 x `n` x (32 bytes of K)."""
        tensor = n * self.clk_per_column
        return tensor if a_in_registers else max(tensor, self.operands_clk(n))

    def operands_clk(self, n: int) -> float:
        """Cycles that reading A and B from shared memory takes."""
        return self.shared_base + n * self.shared_per_column


@dataclass(frozen=True, kw_only=True)
class Tcgen05:
    """`tcgen05`: intervals of products, and what is around them. K of 32 bytes (f16 K16)."""

    clk_per_column: float = number("clk/column", 0.0)  # of 128 rows a CTA; 0: there is none
    shared_base: float = number("clk", 0.0)  # both operands in shared memory
    shared_per_column: float = number("clk/column", 0.0)
    pair_floor: float = number("clk", 0.0)  # least interval of a pair of CTAs, M 256
    commit: float = number("clk", 0.0)  # after the last product until a waiter sees it; SS
    commit_tensor_a: float = number("clk", 0.0)  # the same, A in tensor memory
    commit_pair: float = number("clk", 0.0)
    burst: float = number("clk", 0.0)  # once for a series of products
    chain: float = number("clk", 0.0)  # added to the interval of a chain on one accumulator
    load_bandwidth: float = number("B/clk/SM", 0.0)
    load_latency: float = number("clk", 0.0)
    store_bandwidth: float = number("B/clk/SM", 0.0)
    copy: float = number("clk", 0.0)  # shared memory to tensor memory, one instruction
    alloc: float = number("clk", 0.0)

    def clk(self, m: int, n: int, ctas: int = 1, a_in_tensor_memory: bool = False) -> float:
        """Interval of products of `m` (both CTAs' rows) x `n` x (32 bytes of K)."""
        if ctas == 2:
            tensor = n * self.clk_per_column * (1.0 if m > 128 else 0.5)
            return max(tensor, self.pair_floor * (1.0 if m > 128 else 0.5))
        tensor = n * self.clk_per_column
        if a_in_tensor_memory or m <= 64:
            return tensor
        return max(tensor, self.shared_base + n * self.shared_per_column)

    def visible(self, ctas: int = 1, a_in_tensor_memory: bool = False) -> float:
        """Cycles from the end of the last product until who waits for its commit goes on."""
        if ctas == 2:
            return self.commit_pair
        return self.commit_tensor_a if a_in_tensor_memory else self.commit


@dataclass(frozen=True, kw_only=True)
class Copies:
    """Asynchronous copies: cp.async, bulk and tensor copies (TMA), distributed shared memory."""

    cp_async_latency: float = number("clk")  # hits in L2
    tma_latency: float = number("clk", 0.0)  # first byte, hits in L2; 0: there is no TMA
    tma_per_kb: float = number("clk/KB", 0.0)
    tma_per_row: float = number("clk", 0.0)  # a further 512 B of the innermost box extent
    tma_rows: float = number("row", 0.0)  # how many of them count
    tma_issue: float = number("clk", 0.0)
    tma_store_latency: float = number("clk", 0.0)
    tma_store_per_kb: float = number("clk/KB", 0.0)
    tma_box_row: float = number("clk/row", 0.0)  # engine's least time for a row of a box
    remote_latency: float = number("clk", 0.0)  # shared memory of another CTA of the cluster
    remote_bandwidth: float = number("B/clk/SM", 0.0)

    def tma_load_latency(self, size: int, inner: int) -> float:
        """Clk from issue to the mbarrier's flip: `size` bytes, `inner` of the innermost extent."""
        rows = min(max(-(-inner // 512) - 1, 0), self.tma_rows)
        return self.tma_latency + self.tma_per_kb * size / 1024 + self.tma_per_row * rows


@dataclass(frozen=True, kw_only=True)
class Sync:
    """Barriers and fences."""

    bar_base: float = number("clk")
    bar_per_warp: float = number("clk/warp")
    mbarrier_arrive: float = number("clk", 0.0)
    mbarrier_wait: float = number("clk", 0.0)  # from the last arrival until a waiter goes on
    fence_cta: float = number("clk")
    fence_gpu: float = number("clk")
    fence_proxy: float = number("clk", 0.0)
    cluster_barrier: float = number("clk", 0.0)
    warp: float = number("clk")


@dataclass(frozen=True, kw_only=True)
class Launch:
    """What a launch costs beside the kernel's own work."""

    stream: float = number("us")  # from launch to launch in one stream, empty kernels
    graph: float = number("us")  # the same for the nodes of a graph
    cta: float = number("clk")  # from a free place on an SM to a CTA's first instruction
    exit: float = number("clk")  # from the last instruction until the place is free
