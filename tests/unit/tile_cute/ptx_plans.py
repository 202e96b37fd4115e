"""PTX of conversion plans for 32-bit elements, straight from their definition."""

from collections.abc import Sequence

from tile_cute.linear import (
    ConditionalXor,
    Plan,
    RegisterPermute,
    SharedRoundTrip,
    SharedSide,
    WarpShuffle,
)

SOURCE, RESULT, STAGE, SLOTS = "%s", "%o", "%a", "%b"


def conversion(plan: Plan, sources: int, results: int) -> str:
    """From registers %s0.. to %o0..; %lane, %warp and `%tmp`s are declared here."""
    lines = [f".reg .b32 {SOURCE}<{sources}>;", f".reg .b32 {RESULT}<{results}>;"]
    match plan:
        case RegisterPermute(perm=perm):
            body = [f"mov.b32 {RESULT}{i}, {SOURCE}{r};" for i, r in enumerate(perm)]
        case WarpShuffle():
            body = _shuffle(plan)
        case SharedRoundTrip():
            body = _round_trip(plan)
    return "\n".join([*lines, *body])


def linear(target: str, space: str, columns: Sequence[int], start: int) -> list[str]:
    """target = start ^ XOR of the columns whose bit of %lane or %warp is set."""
    lines = [f"mov.b32 {target}, {start};"]
    return lines + _accumulate(target, space, columns)


def _accumulate(target: str, space: str, columns: Sequence[int]) -> list[str]:
    lines = []
    for bit, column in enumerate(columns):
        if column:
            lines += [
                f"bfe.u32 %t0, %{space}, {bit}, 1; mul.lo.u32 %t0, %t0, {column};",
                f"xor.b32 {target}, {target}, %t0;",
            ]
    return lines


def _conditional(steps: Sequence[ConditionalXor], prefix: str, count: int) -> list[str]:
    """In place: register r becomes register r ^ xor where the bit is set."""
    lines = []
    for step in steps:
        lines.append(f"bfe.u32 %t0, %{step.space}, {step.bit}, 1; setp.ne.b32 %q, %t0, 0;")
        done = set()
        for r in range(count):
            if r in done:
                continue
            other = r ^ step.xor
            done.add(other)
            a, b = f"{prefix}{r}", f"{prefix}{other}"
            lines.append(
                f"mov.b32 %t1, {a}; selp.b32 {a}, {b}, {a}, %q; selp.b32 {b}, %t1, {b}, %q;"
            )
    return lines


def _shuffle(plan: WarpShuffle) -> list[str]:
    count = plan.source_registers
    lines = [f".reg .b32 {STAGE}<{count}>;", f".reg .b32 {SLOTS}<{plan.slots}>;"]
    lines += [f"mov.b32 {STAGE}{r}, {SOURCE}{r};" for r in range(count)]
    lines += _conditional(plan.before, STAGE, count)
    for step in plan.rounds:
        lines += linear("%t2", "lane", plan.lane_map, step.lane_xor)
        lines += _accumulate("%t2", "warp", plan.warp_map)
        for source, slot in zip(step.sources, step.slots, strict=True):
            if step.words:
                lines.append(
                    f"shfl.sync.idx.b32 {SLOTS}{slot}, {STAGE}{source}, %t2, 31, 0xffffffff;"
                )
            else:
                lines.append(f"mov.b32 {SLOTS}{slot}, {STAGE}{source};")
    lines += _conditional(plan.after, SLOTS, plan.slots)
    return lines + [f"mov.b32 {RESULT}{i}, {SLOTS}{s};" for i, s in enumerate(plan.gather)]


def _accesses(side: SharedSide, number: int, prefix: str, load: bool) -> list[str]:
    lines = linear("%t2", "lane", side.lane_map, 0) + _accumulate("%t2", "warp", side.warp_map)
    suffix = {1: "b32", 2: "v2.b32", 4: "v4.b32"}[side.vector]
    for access in side.accesses[number]:
        registers = ", ".join(f"{prefix}{r}" for r in access.registers)
        vector = "{" + registers + "}" if side.vector > 1 else registers
        lines.append(
            f"xor.b32 %t3, %t2, {access.offset}; shl.b32 %t3, %t3, 2; add.u32 %t3, %t3, %t4;"
        )
        if load:
            lines.append(f"ld.shared.{suffix} {vector}, [%t3];")
        else:
            lines.append(f"st.shared.{suffix} [%t3], {vector};")
    return lines


def _round_trip(plan: SharedRoundTrip) -> list[str]:
    slots = max(plan.gather) + 1
    lines = [f".reg .b32 {SLOTS}<{slots}>;", f".shared .align 16 .b8 buf[{max(16, plan.bytes)}];"]
    barrier = "bar.warp.sync -1;" if plan.scope == "warp" else "bar.sync 0;"
    lines.append("mov.u32 %t4, buf;")
    for number in range(plan.passes):
        for side, prefix, load in ((plan.store, SOURCE, False), (plan.load, SLOTS, True)):
            lines += [barrier, *linear("%t5", "warp", side.warp_pass, number)]
            for group, accesses in enumerate(side.accesses):
                if not accesses or not (side.is_guarded or group == number):
                    continue
                label = f"SKIP_{number}_{int(load)}_{group}"
                lines.append(f"setp.ne.u32 %q, %t5, {group}; @%q bra {label};")
                lines += [*_accesses(side, group, prefix, load), f"{label}:"]
    return lines + [f"mov.b32 {RESULT}{i}, {SLOTS}{s};" for i, s in enumerate(plan.gather)]


def kernel(plan: Plan, sources: int, results: int) -> str:
    """A kernel that converts `src[thread][register]` to `dst[thread][register]`."""
    loads = "\n".join(f"ld.global.b32 {SOURCE}{r}, [%rd1+{4 * r}];" for r in range(sources))
    stores = "\n".join(f"st.global.b32 [%rd3+{4 * r}], {RESULT}{r};" for r in range(results))
    body = conversion(plan, sources, results)
    declarations, rest = body.split("\n", 2)[:2], body.split("\n", 2)[2]
    return f"""
.version 8.5
.target sm_80
.address_size 64
.visible .entry k(.param .u64 src_p, .param .u64 dst_p) {{
.reg .b32 %lane; .reg .b32 %warp; .reg .b32 %tid; .reg .b32 %t<8>; .reg .pred %q;
.reg .b64 %rd<8>;
{declarations[0]}
{declarations[1]}
mov.u32 %tid, %tid.x; and.b32 %lane, %tid, 31; shr.u32 %warp, %tid, 5;
ld.param.u64 %rd0, [src_p]; mul.wide.u32 %rd1, %tid, {4 * sources}; add.u64 %rd1, %rd1, %rd0;
ld.param.u64 %rd2, [dst_p]; mul.wide.u32 %rd3, %tid, {4 * results}; add.u64 %rd3, %rd3, %rd2;
{loads}
{rest}
{stores}
ret;
}}
"""
