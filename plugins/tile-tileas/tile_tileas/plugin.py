"""What tile-tileas brings: the nv_tileas dialect, layout strategies, passes."""

from collections.abc import Iterable

from tile_core.hookspecs import SPEC_VERSION, Lazy, hookimpl

TILE_SPEC_VERSION = SPEC_VERSION


@hookimpl
def tile_dialects() -> Iterable[Lazy]:
    return (Lazy("nv_tileas", "tile_tileas.dialect:load", "tiles with layouts"),)


@hookimpl
def tile_passes() -> Iterable[Lazy]:
    return (
        Lazy(
            "convert-tileaa-to-tileas",
            "tile_tileas.passes.convert_tileaa:ConvertTileAAToTileAS",
            "memory, shape and reduction operations of nv_tileaa to nv_tileas",
        ),
        Lazy(
            "tileas-plan-cta",
            "tile_tileas.passes.plan_cta:PlanCta",
            "tiles cut over the blocks of a cluster",
        ),
        Lazy(
            "tileas-shorten-steps",
            "tile_tileas.passes.shorten_steps:ShortenSteps",
            "loops of products whose tiles are long along K take shorter steps",
        ),
        Lazy(
            "tileas-order-blocks",
            "tile_tileas.passes.order_blocks:OrderBlocks",
            "blocks that have most to do begin first",
        ),
        Lazy(
            "tileas-flatten-loops",
            "tile_tileas.passes.flatten_loops:FlattenLoops",
            "sums of products over two loops, one in the other, take one loop",
        ),
        Lazy(
            "tileas-narrow-early",
            "tile_tileas.passes.narrow_early:NarrowEarly",
            "operations that free registers before what they need not wait for",
        ),
        Lazy(
            "tileas-canonicalize",
            "tile_tileas.passes.canonicalize:Canonicalize",
            "local rewrites of slices and of the branches around them",
        ),
        Lazy(
            "tileas-pair-iterations",
            "tile_tileas.passes.pair_iterations:PairIterations",
            "loops whose product is read in each iteration have two in turn",
        ),
        Lazy(
            "tileas-unroll-shifts",
            "tile_tileas.passes.unroll_shifts:UnrollShifts",
            "short loops whose steps read what the one before did, further on",
        ),
        Lazy(
            "tileas-slice-and-fuse",
            "tile_tileas.passes.slice_and_fuse:SliceAndFuse",
            "elementwise work on long tiles, a slice after the other",
        ),
        Lazy(
            "tileas-plan-accesses",
            "tile_tileas.passes.plan_accesses:PlanAccesses",
            "vector width and bounds form of loads and stores",
        ),
        Lazy(
            "tileas-assign-layouts",
            "tile_tileas.passes.assign_layouts:AssignLayouts",
            "a distributed layout for every tile",
        ),
        Lazy(
            "tileas-remove-layout-conversions",
            "tile_tileas.passes.remove_conversions:RemoveLayoutConversions",
            "conversions that change nothing, follow one another, or move too much",
        ),
        Lazy(
            "tileas-prepare-for-scheduling",
            "tile_tileas.passes.prepare_for_scheduling:PrepareForScheduling",
            "direct views, true vectors, marks, no tiny loops",
        ),
        Lazy(
            "tileas-generate-schedule-constraints",
            "tile_tileas.passes.schedule:GenerateScheduleConstraints",
            "start cycles of operations, from a scheduler",
        ),
        Lazy(
            "tileas-materialize-schedule",
            "tile_tileas.passes.materialize_schedule:MaterializeSchedule",
            "operations in the order of their schedule, iterations overlapping",
        ),
        Lazy(
            "tileas-dynamic-persistent",
            "tile_tileas.passes.dynamic_persistent:DynamicPersistent",
            "blocks take further tile blocks of the grid until none is left",
        ),
        Lazy(
            "tileas-assign-phases",
            "tile_tileas.passes.assign_phases:AssignPhases",
            "stages and phases of pipes as integers",
        ),
        Lazy(
            "tileas-materialize-barriers",
            "tile_tileas.passes.materialize_barriers:MaterializeBarriers",
            "mbarriers in place of pipes",
        ),
        Lazy(
            "tileas-slicing",
            "tile_tileas.passes.slicing:Slicing",
            "loops cut into loops over parts of their range",
        ),
        Lazy(
            "tileas-buffer-assign",
            "tile_tileas.passes.buffer_assign:BufferAssign",
            "places of buffers and named barriers of agents, by when they live",
        ),
        Lazy(
            "tileas-optimize-pipeline-region",
            "tile_tileas.passes.optimize_pipeline_region:OptimizePipelineRegion",
            "stages of pipes are held no longer than they are worked on",
        ),
        Lazy(
            "tileas-remove-dead-args",
            "tile_tileas.passes.remove_dead_args:RemoveDeadArgs",
            "what loops carry for nothing goes",
        ),
        Lazy(
            "tileir-verify-ops-analysis",
            "tile_tileas.passes.verify_module:VerifyModule",
            "a whole module: names, kernels, instructions, schedules, pipes",
        ),
        Lazy(
            "tileas-verify-pipes",
            "tile_tileas.passes.verify_pipes:VerifyPipes",
            "pipes are used in turn, and all agents can finish",
        ),
        Lazy(
            "lower-tma-load-store-to-async",
            "tile_tileas.passes.lower_tma_load_store_to_async:LowerTmaLoadStoreToAsync",
            "stores by tensor maps, through shared memory",
        ),
        Lazy(
            "tileas-separate-host-tma",
            "tile_tileas.passes.separate_host_tma:SeparateHostTma",
            "tensor maps that a launch can make become hidden parameters",
        ),
        Lazy(
            "tileas-build-tma-descs",
            "tile_tileas.passes.build_tma_descs:BuildTmaDescs",
            "tensor maps that the kernel makes",
        ),
        Lazy(
            "tileas-materialize-convert-layout",
            "tile_tileas.passes.materialize_convert_layout:MaterializeConvertLayout",
            "buffers and copies for what passes through shared memory",
        ),
        Lazy(
            "tileas-unspecialized-pipeline",
            "tile_tileas.passes.unspecialized_pipeline:UnspecializedPipeline",
            "loads of products that run ahead of their loop, by cp.async",
        ),
        Lazy(
            "tileas-specialize-warps",
            "tile_tileas.passes.specialize_warps:SpecializeWarps",
            "loops that copy for others become an agent of their own",
        ),
        Lazy(
            "tileas-prefetch-loads",
            "tile_tileas.passes.prefetch_loads:PrefetchLoads",
            "loads of loops without products that run ahead, where too few are in flight",
        ),
        Lazy(
            "tileas-numbers-ahead",
            "tile_tileas.passes.numbers_ahead:NumbersAhead",
            "single numbers that loops load, an iteration ahead",
        ),
        Lazy(
            "tileas-place-accumulators",
            "tile_tileas.passes.place_accumulators:PlaceAccumulators",
            "accumulators of tcgen05 in tensor memory",
        ),
        Lazy(
            "tileas-store-in-slices",
            "tile_tileas.passes.store_in_slices:StoreInSlices",
            "sums leave tensor memory, and the block, a slice at a time",
        ),
        Lazy(
            "tileas-allocate-tensor-memory",
            "tile_tileas.passes.allocate_tensor_memory:AllocateTensorMemory",
            "columns of buffers in tensor memory",
        ),
        Lazy(
            "tileas-allocate-shared",
            "tile_tileas.passes.allocate_shared:AllocateShared",
            "places of buffers in shared memory",
        ),
        Lazy(
            "tileas-plan-occupancy",
            "tile_tileas.passes.plan_occupancy:PlanOccupancy",
            "as many blocks at once as registers allow, where kernels wait for memory",
        ),
        Lazy(
            "tileas-insert-barriers",
            "tile_tileas.passes.insert_barriers:InsertBarriers",
            "barriers where threads meet each other's data",
        ),
        Lazy(
            "tileas-part-meetings",
            "tile_tileas.passes.part_meetings:PartMeetings",
            "blocks of a cluster arrive early at their first meeting, and wait late",
        ),
        Lazy(
            "tileas-share-turns",
            "tile_tileas.passes.share_turns:ShareTurns",
            "threads count the turns of barriers that are in step once for all of them",
        ),
        Lazy(
            "tileas-reuse-loads",
            "tile_tileas.passes.reuse_loads:ReuseLoads",
            "threads have elements of loads from others that read the same memory",
        ),
        Lazy(
            "tileas-remark-choices",
            "tile_tileas.passes.remark_choices:RemarkChoices",
            "remarks on what was chosen for loads, stores, products and loops",
        ),
    )


@hookimpl
def tile_layout_strategies() -> Iterable[Lazy]:
    return (
        Lazy(
            "blocked",
            "tile_tileas.strategies.blocked:BlockedStrategy",
            "coalesced loads and stores decide",
        ),
        Lazy(
            "first-legal",
            "tile_tileas.strategies.first_legal:FirstLegalStrategy",
            "the first layout that works",
        ),
    )


@hookimpl
def tile_instrumentations() -> Iterable[Lazy]:
    return (
        Lazy(
            "schedule-trace",
            "tile_tileas.sched.trace:ScheduleTrace",
            "=FILE: every decision of schedulers, as a Chrome trace",
        ),
    )


@hookimpl
def tile_views() -> Iterable[Lazy]:
    return (
        Lazy("layouts", "tile_tileas.views:layouts", "layouts of registers and buffers, drawn"),
        Lazy("schedules", "tile_tileas.views:schedules", "schedules of loops"),
    )


@hookimpl
def tile_messages() -> Iterable[Lazy]:
    return (Lazy("tileas", "tile_tileas:messages.toml", "layouts, accesses, schedules, buffers"),)


@hookimpl
def tile_cli_commands() -> Iterable[Lazy]:
    return (
        Lazy("schedule", "tile_tileas.cli.schedule:schedule", "Show the schedules of a program"),
    )
