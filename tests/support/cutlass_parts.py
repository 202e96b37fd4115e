"""Small kernels of cutlass, as MLIR text: one for each family of operations."""

from __future__ import annotations


def kernel(
    name: str, arguments: str, body: str, warps: int = 1, ctas: int = 1, types: str = ""
) -> str:
    """A kernel of so many warps, whose thread is %t."""
    return f"""{types}
!pipe = !cutlass.pipeline<STAGES>
!state = !cutlass.pipeline_state<STAGES>
gpu.module @m {{
  func.func @{name}({arguments}) attributes {{nv_tileaa.kernel,
      nv_tileaa.kernel_spec = {{num_ctas = {ctas} : i32, num_warps = {warps} : i32}}}} {{
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i2 = arith.constant 2 : i32
    %i32 = arith.constant 32 : i32
    %lane = arith.remui %t, %i32 : i32
    %warp = arith.divui %t, %i32 : i32
{body}
    return
  }}
}}
""".replace("STAGES", "3")


#: Two producers and two consumers copy %n items of two rows of 32 numbers: y[c] = x for each
#: consumer c. PRODUCES and CONSUMES are how; EXECUTOR who fills a stage.
_RING_TYPES = """
!p = !cute.ptr<f32, "gmem", 16 : i64>
!g = !cute.memref<f32, "gmem", "(32,2,64):(1,32,64)">
!r = !cute.memref<f32, "gmem", "(32,2,64,2):(1,32,64,4096)">
!l = !cute.layout<"(32,2,64):(1,32,64)">
!k = !cute.layout<"(32,2,64,2):(1,32,64,4096)">
!s = !cute.memref<f32, "smem", "(32,2,STAGES):(1,32,64)">
!who = !cutlass.participants<[2, 3], [0, 1]>
"""
_RING = """
    %l = "cute.static"() : () -> !l
    %k = "cute.static"() : () -> !k
    %gx = "cute.make_view"(%x, %l) : (!p, !l) -> !g
    %gy = "cute.make_view"(%y, %k) : (!p, !k) -> !r
    %s = "cute.memref_alloc_smem"() : () -> !s
    %who = "cutlass.pipeline_make_participants"()
      {producers = array<i32: 2, 3>, consumers = array<i32: 0, 1>} : () -> !who
    %p = "cutlass.pipeline_create"() : () -> !pipe
    "cutlass.pipeline_init"(%p, %who) {numStages = STAGES, numProducers = 2, numConsumers = 2,
      executor = "EXECUTOR"} : (!pipe, !who) -> ()
    %s0 = "cutlass.pipeline_state_create"() : () -> !state
    "cutlass.pipeline_switch_by_executor"() ({
      "cutlass.async_exec"() ({
        %own = arith.subi %warp, %i2 : i32
        %end = scf.for %i = %i0 to %n step %i1 iter_args(%cur = %s0) -> !state : i32 {
          PRODUCES
          scf.yield %next : !state
        }
        "cutlass.pipeline_producer_tail"(%p, %end) : (!pipe, !state) -> ()
      }) {mask = 12 : i32} : () -> ()
      "cutlass.async_exec"() ({
        %end = scf.for %i = %i0 to %n step %i1 iter_args(%cur = %s0) -> !state : i32 {
          CONSUMES
          scf.yield %next : !state
        }
      }) {mask = 3 : i32} : () -> ()
    }) : () -> ()"""
_OWN_ROW = """
            %v = "cute.memref_load"(%gx, %lane, %own, %i) : (!g, i32, i32, i32) -> f32
            "cute.memref_store"(%v, %s, %lane, %own, %at) : (f32, !s, i32, i32, i32) -> ()"""
_BOTH_ROWS = """
            scf.for %row = %i0 to %i2 step %i1 : i32 {
              %v = "cute.memref_load"(%gx, %lane, %row, %i) : (!g, i32, i32, i32) -> f32
              "cute.memref_store"(%v, %s, %lane, %row, %at) : (f32, !s, i32, i32, i32) -> ()
            }"""
_AT = '%at = "cutlass.pipeline_state_get_index"(%cur) : (!state) -> i32'
_REGION = f"""%next = "cutlass.pipeline_produce"(%p, %cur) ({{
            {_AT}ROWS
          }}) : (!pipe, !state) -> !state"""
_TRIED = f"""%ok = "cutlass.pipeline_producer_try_acquire"(%p, %cur) : (!pipe, !state) -> i1
          "cutlass.pipeline_producer_acquire"(%p, %cur, %ok) : (!pipe, !state, i1) -> ()
          {_AT}ROWS
          "cutlass.pipeline_producer_commit"(%p, %cur) : (!pipe, !state) -> ()
          %next = "cutlass.pipeline_state_increment"(%cur) : (!state) -> !state"""
_MASKED = f"""%mask = "cutlass.pipeline_get_producer_mask"(%p, %cur) : (!pipe, !state) -> i32
          "cutlass.pipeline_producer_acquire"(%p, %cur) : (!pipe, !state) -> ()
          %bits = arith.shrui %mask, %warp : i32
          %bit = arith.trunci %bits : i32 to i1
          scf.if %bit {{
            {_AT}ROWS
          }}
          "cutlass.pipeline_producer_commit"(%p, %cur) : (!pipe, !state) -> ()
          %next = "cutlass.pipeline_state_increment"(%cur) : (!state) -> !state"""
_COPY_OUT = """
            scf.for %row = %i0 to %i2 step %i1 : i32 {
              %v = "cute.memref_load"(%s, %lane, %row, %at) : (!s, i32, i32, i32) -> f32
              "cute.memref_store"(%v, %gy, %lane, %row, %count, %warp)
                : (f32, !r, i32, i32, i32, i32) -> ()
            }"""
_READ = f"""{_AT}
            %count = "cutlass.pipeline_state_get_count"(%cur) : (!state) -> i32{_COPY_OUT}"""
_CONSUME = f"""%next = "cutlass.pipeline_consume"(%p, %cur) ({{
            {_READ}
          }}) : (!pipe, !state) -> !state"""
_TRIED_TOO = f"""%ok = "cutlass.pipeline_consumer_try_wait"(%p, %cur) : (!pipe, !state) -> i1
          "cutlass.pipeline_consumer_wait"(%p, %cur, %ok) : (!pipe, !state, i1) -> ()
          {_READ}
          "cutlass.pipeline_consumer_release"(%p, %cur) : (!pipe, !state) -> ()
          %next = "cutlass.pipeline_state_increment"(%cur) : (!state) -> !state"""
PRODUCES = {"region": _REGION, "tried": _TRIED, "masked": _MASKED}
CONSUMES = {"region": _CONSUME, "tried": _TRIED_TOO}


def ring(executor: str, produces: str, consumes: str, stages: int = 3) -> str:
    """The ring of two producers and two consumers."""
    rows = _BOTH_ROWS if executor.startswith("strided") else _OWN_ROW
    body = _RING.replace("PRODUCES", PRODUCES[produces]).replace("CONSUMES", CONSUMES[consumes])
    body = body.replace("ROWS", rows).replace("EXECUTOR", executor)
    text = kernel("ring", "%x: !p, %y: !p, %n: i32", body, 4, types=_RING_TYPES)
    return (
        text.replace("<3>", f"<{stages}>")
        .replace(",3):", f",{stages}):")
        .replace("numStages = 3", f"numStages = {stages}")
    )


def ring_of_cluster(stages: int = 2) -> str:
    """The ring in both blocks of a cluster, whose consumers release stages for each other's
    producers, too: y[block, consumer] = x.
    """
    text = ring("cluster", "region", "region", stages).replace("num_ctas = 1", "num_ctas = 2")
    return text.replace(
        '%gy = "cute.make_view"(%y, %k)',
        """%rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
    %many = arith.constant 8192 : i32
    %far = arith.muli %rank, %many : i32
    %yo = "cute.add_offset"(%y, %far) : (!p, i32) -> !p
    %gy = "cute.make_view"(%yo, %k)""",
    )


#: A bulk copy of 64 numbers into each stage, of which the pipe counts the bytes.
BULK = kernel(
    "bulk",
    "%x: !llvm.ptr<1>, %y: !llvm.ptr<1>, %n: i32",
    """
    %s = "cute.memref_alloc_smem"() : () -> !s
    %q = "cute.get_iter"(%s) : (!s) -> !q
    %size = arith.constant 256 : i32
    %wide = arith.constant 64 : i32
    %p = "cutlass.pipeline_create"() : () -> !pipe
    "cutlass.pipeline_init"(%p) {numStages = STAGES, numProducers = 1, numConsumers = 2,
      participants = array<i32: 2>, consumers = array<i32: 0, 1>,
      executor = "cooperative"} : (!pipe) -> ()
    %s0 = "cutlass.pipeline_state_create"() : () -> !state
    "cutlass.pipeline_switch_by_executor"() ({
      "cutlass.async_exec"() ({
        %end = scf.for %i = %i0 to %n step %i1 iter_args(%cur = %s0) -> !state : i32 {
          %next = "cutlass.pipeline_produce"(%p, %cur) ({
            %at = "cutlass.pipeline_state_get_index"(%cur) : (!state) -> i32
            %off = arith.muli %at, %wide : i32
            %to = "cute.add_offset"(%q, %off) : (!q, i32) -> !q
            %dst = builtin.unrealized_conversion_cast %to : !q to !llvm.ptr<3>
            %bar = "cutlass.pipeline_get_producer_barrier"(%p, %cur)
              : (!pipe, !state) -> !llvm.ptr<3>
            %from = arith.muli %i, %wide : i32
            %src = llvm.getelementptr %x[%from] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
            %one = nvvm.elect.sync -> i1
            scf.if %one {
              %there = llvm.addrspacecast %dst : !llvm.ptr<3> to !llvm.ptr<7>
              nvvm.cp.async.bulk.shared.cluster.global %there, %src, %bar, %size
                : !llvm.ptr<7>, !llvm.ptr<1>
            }
          }) {transaction_bytes = 256} : (!pipe, !state) -> !state
          scf.yield %next : !state
        }
        "cutlass.pipeline_producer_tail"(%p, %end) : (!pipe, !state) -> ()
      }) {mask = 4 : i32} : () -> ()
      "cutlass.async_exec"() ({
        %end = scf.for %i = %i0 to %n step %i1 iter_args(%cur = %s0) -> !state : i32 {
          %next = "cutlass.pipeline_consume"(%p, %cur) ({
            %at = "cutlass.pipeline_state_get_index"(%cur) : (!state) -> i32
            %phase = "cutlass.pipeline_state_get_phase"(%cur) : (!state) -> i32
            %v = "cute.memref_load"(%s, %t, %at) : (!s, i32, i32) -> f32
            %more = arith.uitofp %phase : i32 to f32
            %sum = arith.addf %v, %more : f32
            %from = arith.muli %i, %wide : i32
            %to = arith.addi %from, %t : i32
            %dst = llvm.getelementptr %y[%to] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
            llvm.store %sum, %dst : f32, !llvm.ptr<1>
            nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>,
              space = #nvvm.shared_space<cta>}
          }) : (!pipe, !state) -> !state
          scf.yield %next : !state
        }
      }) {mask = 3 : i32} : () -> ()
    }) : () -> ()""",
    3,
    types="""
!s = !cute.memref<f32, "smem", "(64,STAGES):(1,64)">
!q = !cute.ptr<f32, "smem", 16 : i64>""",
)

#: Three warps take turns at two logs, one of each stage: log[s, i] = the warp that came i-th.
SEQUENCE = kernel(
    "sequence",
    "%log: !llvm.ptr<1>, %n: i32",
    """
    %b = "cutlass.seq_bar_create"() : () -> !cutlass.seq_bar<2, 3>
    "cutlass.seq_bar_init"(%b) {warps = 1} : (!cutlass.seq_bar<2, 3>) -> ()
    %s0 = "cutlass.seq_bar_state_create"(%warp) : (i32) -> !turn
    %s = "cute.memref_alloc_smem"() : () -> !s
    %first = arith.cmpi eq, %t, %i0 : i32
    scf.if %first {
      "cute.memref_store"(%i0, %s, %i0) : (i32, !s, i32) -> ()
      "cute.memref_store"(%i0, %s, %i1) : (i32, !s, i32) -> ()
    }
    nvvm.barrier
    %nine = arith.constant 9 : i32
    %end = scf.for %i = %i0 to %n step %i1 iter_args(%cur = %s0) -> !turn : i32 {
      %stage = arith.remui %i, %i2 : i32
      %row = arith.muli %stage, %nine : i32
      "cutlass.seq_bar_wait"(%b, %cur, %warp) : (!cutlass.seq_bar<2, 3>, !turn, i32) -> ()
      %leads = arith.cmpi eq, %lane, %i0 : i32
      scf.if %leads {
        %at = "cute.memref_load"(%s, %stage) : (!s, i32) -> i32
        %to = arith.addi %row, %at : i32
        %dst = llvm.getelementptr %log[%to] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
        llvm.store %warp, %dst : i32, !llvm.ptr<1>
        %more = arith.addi %at, %i1 : i32
        "cute.memref_store"(%more, %s, %stage) : (i32, !s, i32) -> ()
      }
      %next = "cutlass.seq_bar_arrive"(%b, %cur, %warp)
        : (!cutlass.seq_bar<2, 3>, !turn, i32) -> !turn
      scf.yield %next : !turn
    }""",
    3,
    types="""
!turn = !cutlass.seq_bar_state<2>
!s = !cute.memref<i32, "smem", "2:1">""",
)

#: Warp 0 writes what warp 1 reads.
NAMED = kernel(
    "named",
    "%y: !llvm.ptr<1>",
    """
    %s = "cute.memref_alloc_smem"() : () -> !s
    "cutlass.pipeline_switch_by_executor"() ({
      "cutlass.async_exec"() ({
        "cute.memref_store"(%t, %s, %lane) : (i32, !s, i32) -> ()
        "cutlass.named_barrier_arrive"() {barrier_id = 3, threads = 64} : () -> ()
      }) {mask = 1 : i32} : () -> ()
      "cutlass.async_exec"() ({
        "cutlass.named_barrier_arrive_and_wait"() {barrier_id = 3, threads = 64} : () -> ()
        %v = "cute.memref_load"(%s, %lane) : (!s, i32) -> i32
        %dst = llvm.getelementptr %y[%lane] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
        llvm.store %v, %dst : i32, !llvm.ptr<1>
      }) {mask = 2 : i32} : () -> ()
    }) : () -> ()""",
    2,
    types='!s = !cute.memref<i32, "smem", "32:1">',
)

#: Each block writes its part of x; block 0 sums all parts up once all have counted, with WAIT.
GENERIC = kernel(
    "generic",
    "%x: !llvm.ptr<1>, %counter: !llvm.ptr<1>, %y: !llvm.ptr<1>",
    """
    %cta = nvvm.read.ptx.sreg.ctaid.x : i32
    %all = nvvm.read.ptx.sreg.nctaid.x : i32
    %n = arith.constant 64 : i32
    %base = arith.muli %cta, %n : i32
    %own = arith.addi %base, %t : i32
    %dst = llvm.getelementptr %x[%own] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %own, %dst : i32, !llvm.ptr<1>
    "cutlass.generic_barrier_arrive_increment"(%counter) : (!llvm.ptr<1>) -> ()
    WAIT(%counter, %all) : (!llvm.ptr<1>, i32) -> ()
    %sum = scf.for %i = %i0 to %all step %i1 iter_args(%s = %i0) -> i32 : i32 {
      %b = arith.muli %i, %n : i32
      %at = arith.addi %b, %t : i32
      %src = llvm.getelementptr %x[%at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      %v = llvm.load %src : !llvm.ptr<1> -> i32
      %r = arith.addi %s, %v : i32
      scf.yield %r : i32
    }
    %to = llvm.getelementptr %y[%own] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %sum, %to : i32, !llvm.ptr<1>""",
    2,
)
WAITS = ('"cutlass.generic_barrier_wait_eq"', '"cutlass.generic_barrier_wait_less_than"')

#: y = x + z of 256 ELEMENTs by stripes of 64 threads; w = REDUCTION of w and y.
STRIPES = kernel(
    "stripes",
    "%x: !p, %z: !p, %y: !p, %w: !p",
    """
    %l = "cute.static"() : () -> !l
    %gx = "cute.make_view"(%x, %l) : (!p, !l) -> !g
    %gy = "cute.make_view"(%y, %l) : (!p, !l) -> !g
    %gz = "cute.make_view"(%z, %l) : (!p, !l) -> !g
    %gw = "cute.make_view"(%w, %l) : (!p, !l) -> !g
    %r = "cute_nvgpu.arch_alloc_rmem"() : () -> !r
    "cutlass.block_striped_load"(%r, %gx, %t) {threads = 64} : (!r, !g, i32) -> ()
    "cutlass.block_striped_load_add"(%r, %gz, %t) {threads = 64} : (!r, !g, i32) -> ()
    %cta = nvvm.read.ptx.sreg.ctaid.x : i32
    %first = arith.cmpi eq, %cta, %i0 : i32
    scf.if %first {
      "cutlass.block_striped_store"(%r, %gy, %t) {threads = 64} : (!r, !g, i32) -> ()
    }
    "cutlass.block_striped_reduce"(%r, %gw, %t) {threads = 64, reduction = "REDUCTION"}
      : (!r, !g, i32) -> ()""",
    2,
    types="""
!p = !cute.ptr<ELEMENT, "gmem", 16 : i64>
!g = !cute.memref<ELEMENT, "gmem", "(16,16):(16,1)">
!l = !cute.layout<"(16,16):(16,1)">
!r = !cute.memref<ELEMENT, "rmem", "4:1">""",
)

_NUMBERS = ", ".join(f"%a{i}: i32" for i in range(5))
_WORK_TYPES = (
    '!params = !cutlass.tile_scheduler_params<"KIND">\n!info = !cutlass.work_tile_info<"KIND">'
)


def _stored(values: list[str], first: int = 0) -> str:
    lines = []
    for at, value in enumerate(values, first):
        lines.append(
            f"    %d{at} = llvm.getelementptr %y[{at}] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32\n"
            f"    llvm.store {value}, %d{at} : i32, !llvm.ptr<1>"
        )
    return "\n".join(lines)


_MAKE = {
    "dp": '"cutlass.tile_scheduler_create_dp_params"(%a0, %a1, %a2, %a3) '
    ": (i32, i32, i32, i32) -> !params",
    "static_persistent": '"cutlass.tile_scheduler_create_static_persistent_params"'
    "(%a0, %a1, %a2, %a3, %a4) : (i32, i32, i32, i32, i32) -> !params",
    "streamk": '"cutlass.tile_scheduler_create_streamk_params"(%a0, %a1, %a2, %a3, %a4, %y) '
    ": (i32, i32, i32, i32, i32, !llvm.ptr<1>) -> !params",
}
_NUMBERED = {
    "dp": "cutlass.tile_scheduler_create_dp_work_tile_info",
    "static_persistent": "cutlass.tile_scheduler_create_static_persistent_work_tile_info",
    "streamk": "cutlass.tile_scheduler_create_streamk_work_tile_info",
}


def asks(kind: str) -> str:
    """y = what is asked of the work of number %number, and of the one behind it."""
    body = f"""
    %params = {_MAKE[kind]}
    %w = "{_NUMBERED[kind]}"(%params, %number) : (!params, i32) -> !info
    %m, %n, %k, %l = "cutlass.tile_scheduler_work_tile_info_to_coord_mnkl"(%w)
      : (!info) -> (i32, i32, i32, i32)
    %kc = "cutlass.tile_scheduler_get_work_k_tile_count"(%w) : (!info) -> i32
    %next = "cutlass.tile_scheduler_static_fetch_next_work"(%params, %w) : (!params, !info) -> !info
    %id = "cutlass.tile_scheduler_work_tile_info_get_value"(%next) {{field = "linear_id"}}
      : (!info) -> i32
    %valid = "cutlass.tile_scheduler_work_tile_info_get_value"(%next) {{field = "valid"}}
      : (!info) -> i32
    %seven = arith.constant 7 : i32
    %set = "cutlass.tile_scheduler_work_tile_info_set_value"(%w, %seven) {{field = "l"}}
      : (!info, i32) -> !info
    %m1, %n1, %l1 = "cutlass.tile_scheduler_work_tile_info_to_cta_coord"(%set)
      : (!info) -> (i32, i32, i32)
    %gx, %gy, %gz = "cutlass.tile_scheduler_get_grid_shape"(%params) : (!params) -> (i32, i32, i32)
    %all, %sums, %counters = "cutlass.tile_scheduler_get_workspace_sizes"(%params)
      {{accumulator_bytes = 512}} : (!params) -> (i64, i64, i64)
    %s0 = arith.trunci %all : i64 to i32
    %s1 = arith.trunci %sums : i64 to i32
    %s2 = arith.trunci %counters : i64 to i32
""" + _stored(
        ["%m", "%n", "%k", "%l", "%kc", "%id", "%valid", "%m1", "%n1", "%l1", "%gx", "%gy", "%gz",
         "%s0", "%s1", "%s2"]
    )  # fmt: skip
    text = kernel("asks", f"%y: !llvm.ptr<1>, {_NUMBERS}, %number: i32", body, types=_WORK_TYPES)
    return text.replace("KIND", kind)


#: Parameters of a StreamK schedule from a record with the workspace's address.
_RECORD = """
    %made = "cutlass.tile_scheduler_make_streamk_params"(%record) : (!llvm.ptr<1>) -> !params
    %tm = "cutlass.tile_scheduler_params_get_value"(%made) {field = "num_tiles_m"}
      : (!params) -> i32
    %tk = "cutlass.tile_scheduler_params_get_value"(%made) {field = "num_tiles_k"}
      : (!params) -> i32
    %ctas = "cutlass.tile_scheduler_params_get_value"(%made) {field = "total_ctas"}
      : (!params) -> i32
    %params = "cutlass.tile_scheduler_create_streamk_params"(%tm, %i1, %tk, %i1, %ctas, %store)
      : (i32, i32, i32, i32, i32, !llvm.ptr<1>) -> !params"""
_STREAMK_TYPES = _WORK_TYPES.replace("KIND", "streamk")
CLEAR = kernel(
    "clear",
    "%record: !llvm.ptr<1>, %store: !llvm.ptr<1>",
    _RECORD
    + """
    "cutlass.tile_scheduler_initialize_workspace"(%params) {accumulator_bytes = 512}
      : (!params) -> ()""",
    2,
    types=_STREAMK_TYPES,
)
#: y[tile] = parts of the tile, written by the block with its last steps once all others counted;
#: x[tile, split] = steps of the part.
COUNTED = kernel(
    "counted",
    "%record: !llvm.ptr<1>, %store: !llvm.ptr<1>, %x: !llvm.ptr<1>, %y: !llvm.ptr<1>",
    _RECORD
    + """
    %first = "cutlass.tile_scheduler_initial_work_tile_info"(%params) : (!params) -> !info
    %end = scf.while (%w = %first) : (!info) -> !info {
      %v = "cutlass.tile_scheduler_work_tile_info_get_value"(%w) {field = "valid"} : (!info) -> i32
      %go = arith.cmpi ne, %v, %i0 : i32
      scf.condition(%go) %w : !info
    } do {
    ^bb0(%w: !info):
      %tile = "cutlass.tile_scheduler_work_tile_info_get_value"(%w) {field = "tile"}
        : (!info) -> i32
      %split = "cutlass.tile_scheduler_work_tile_info_get_value"(%w) {field = "split"}
        : (!info) -> i32
      %splits = "cutlass.tile_scheduler_work_tile_info_get_value"(%w) {field = "splits"}
        : (!info) -> i32
      %steps = "cutlass.tile_scheduler_get_work_k_tile_count"(%w) : (!info) -> i32
      %wide = arith.constant 8 : i32
      %row = arith.muli %tile, %wide : i32
      %at = arith.addi %row, %split : i32
      %lead = arith.cmpi eq, %t, %i0 : i32
      scf.if %lead {
        %d = llvm.getelementptr %x[%at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
        llvm.store %steps, %d : i32, !llvm.ptr<1>
      }
      %final = "cutlass.tile_scheduler_compute_epilogue"(%w) : (!info) -> i1
      scf.if %final {
        "cutlass.tile_scheduler_fixup_wait"(%params, %w) {accumulator_bytes = 512}
          : (!params, !info) -> ()
        %sum = scf.for %i = %i0 to %splits step %i1 iter_args(%s = %i0) -> i32 : i32 {
          %p = arith.addi %row, %i : i32
          %src = llvm.getelementptr %x[%p] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
          %u = llvm.load %src : !llvm.ptr<1> -> i32
          %r = arith.addi %s, %u : i32
          scf.yield %r : i32
        }
        scf.if %lead {
          %d = llvm.getelementptr %y[%tile] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
          llvm.store %sum, %d : i32, !llvm.ptr<1>
        }
      } else {
        "cutlass.tile_scheduler_fixup_increment"(%params, %w) {accumulator_bytes = 512}
          : (!params, !info) -> ()
      }
      %next = "cutlass.tile_scheduler_static_fetch_next_work"(%params, %w)
        : (!params, !info) -> !info
      scf.yield %next : !info
    }""",
    2,
    types=_STREAMK_TYPES,
)

#: y = [SM, whether time went on].
MODS = kernel(
    "mods",
    "%record: !llvm.ptr<1>, %y: !llvm.ptr<1>",
    """
    %params = "cutlass.tile_scheduler_make_static_persistent_params"(%record)
      : (!llvm.ptr<1>) -> !params
    %who = arith.constant 3 : i64
    "cutlass.async_exec"() ({
      %t0 = "cutlass.tile_scheduler_mods_report_mainloop_start"(%params, %who)
        : (!params, i64) -> i64
      %sm = "cutlass.tile_scheduler_mods_report_smid"() : () -> i32
      "cutlass.tile_scheduler_mods_throttle"() {profile = 0 : i32} : () -> ()
      "cutlass.tile_scheduler_mods_throttle"() {profile = 1 : i32} : () -> ()
      "cutlass.tile_scheduler_mods_throttle"() {profile = 2 : i32} : () -> ()
      %d = "cutlass.tile_scheduler_mods_report_mainloop_end"(%params, %who, %t0)
        : (!params, i64, i64) -> i64
      %z = arith.constant 0 : i64
      %on = arith.cmpi sge, %d, %z : i64
      %was = arith.extui %on : i1 to i32
      %first = arith.cmpi eq, %t, %i0 : i32
      %rank = nvvm.read.ptx.sreg.cluster.ctarank : i32
      scf.if %first {
        %at = arith.muli %rank, %i2 : i32
        %p = llvm.getelementptr %y[%at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
        llvm.store %sm, %p : i32, !llvm.ptr<1>
        %q = llvm.getelementptr %p[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
        llvm.store %was, %q : i32, !llvm.ptr<1>
      }
    }) : () -> ()""",
    2,
    2,
    types=_WORK_TYPES.replace("KIND", "static_persistent"),
)
