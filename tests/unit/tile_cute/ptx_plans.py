"""PTX of conversion plans, straight from their definition.

A register holds one element: zero-extended in 32 bits, or 64 bits of its own. What travels through
shuffles and shared memory is packed.
"""

from collections.abc import Sequence

from tile_cute.linear import (
    ConditionalXor,
    Plan,
    RegisterPermute,
    SharedRoundTrip,
    SharedSide,
    WarpShuffle,
)

SOURCE, RESULT, STAGE, SLOTS, WORDS = "%s", "%o", "%a", "%b", "%w"
_ACCESS = {8: "b8", 16: "b16", 32: "b32", 64: "v2.b32", 128: "v4.b32"}


def conversion(plan: Plan, sources: int, results: int, bits: int) -> str:
    """From registers %s0.. to %o0..; %lane, %warp and `%tmp`s are declared by the caller."""
    kind = register_type(bits)
    lines = [f".reg .{kind} {SOURCE}<{sources}>;", f".reg .{kind} {RESULT}<{results}>;"]
    match plan:
        case RegisterPermute(perm=perm):
            body = [f"mov.{kind} {RESULT}{i}, {SOURCE}{r};" for i, r in enumerate(perm)]
        case WarpShuffle():
            body = _shuffle(plan, bits)
        case SharedRoundTrip():
            body = _round_trip(plan, bits)
    return "\n".join([*lines, *body])


def register_type(bits: int) -> str:
    return "b64" if bits == 64 else "b32"


def _pack(registers: Sequence[str], bits: int) -> tuple[list[str], list[str]]:
    """(PTX, words): the elements one behind the other in 32-bit words."""
    if bits == 32:
        return [], list(registers)
    lines = []
    count = -(-len(registers) * bits // 32)
    words = [f"{WORDS}{i}" for i in range(count)]
    if bits == 64:
        for i, register in enumerate(registers):
            lines.append(f"mov.b64 {{{words[2 * i]}, {words[2 * i + 1]}}}, {register};")
        return lines, words
    per = 32 // bits
    for i, register in enumerate(registers):
        word = words[i // per]
        if i % per:
            lines.append(
                f"shl.b32 %t0, {register}, {bits * (i % per)}; or.b32 {word}, {word}, %t0;"
            )
        else:
            lines.append(f"mov.b32 {word}, {register};")
    return lines, words


def _unpack(registers: Sequence[str], words: Sequence[str], bits: int) -> list[str]:
    """The opposite of `_pack`."""
    if bits == 32:
        return [f"mov.b32 {r}, {w};" for r, w in zip(registers, words, strict=True) if r != w]
    if bits == 64:
        pairs = zip(registers, words[::2], words[1::2], strict=True)
        return [f"mov.b64 {register}, {{{low}, {high}}};" for register, low, high in pairs]
    per = 32 // bits
    return [
        f"bfe.u32 {register}, {words[i // per]}, {bits * (i % per)}, {bits};"
        for i, register in enumerate(registers)
    ]


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


def _conditional(steps: Sequence[ConditionalXor], prefix: str, count: int, kind: str) -> list[str]:
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
                f"mov.{kind} %x1, {a}; selp.{kind} {a}, {b}, {a}, %q; "
                f"selp.{kind} {b}, %x1, {b}, %q;"
            )
    return lines


def _shuffle(plan: WarpShuffle, bits: int) -> list[str]:
    count, kind = plan.source_registers, register_type(bits)
    lines = [f".reg .{kind} {STAGE}<{count}>;", f".reg .{kind} {SLOTS}<{plan.slots}>;"]
    lines += [f"mov.{kind} {STAGE}{r}, {SOURCE}{r};" for r in range(count)]
    lines += _conditional(plan.before, STAGE, count, kind)
    for step in plan.rounds:
        lines += linear("%t2", "lane", plan.lane_map, step.lane_xor)
        lines += _accumulate("%t2", "warp", plan.warp_map)
        sources = [f"{STAGE}{source}" for source in step.sources]
        slots = [f"{SLOTS}{slot}" for slot in step.slots]
        if not step.words:
            pairs = zip(slots, sources, strict=True)
            lines += [f"mov.{kind} {slot}, {source};" for slot, source in pairs]
            continue
        packing, words = _pack(sources, bits)
        received = slots if bits == 32 else words
        lines += packing
        for target, word in zip(received, words, strict=True):
            lines.append(f"shfl.sync.idx.b32 {target}, {word}, %t2, 31, 0xffffffff;")
        lines += _unpack(slots, received, bits)
    lines += _conditional(plan.after, SLOTS, plan.slots, kind)
    return lines + [f"mov.{kind} {RESULT}{i}, {SLOTS}{s};" for i, s in enumerate(plan.gather)]


def _accesses(side: SharedSide, number: int, prefix: str, load: bool, bits: int) -> list[str]:
    lines = linear("%t2", "lane", side.lane_map, 0) + _accumulate("%t2", "warp", side.warp_map)
    suffix = _ACCESS[side.vector * bits]
    for access in side.accesses[number]:
        registers = [f"{prefix}{r}" for r in access.registers]
        packing, words = _pack(registers, bits)
        vector = "{" + ", ".join(words) + "}" if len(words) > 1 else words[0]
        lines.append(
            f"xor.b32 %t3, %t2, {access.offset}; mul.lo.u32 %t3, %t3, {bits // 8}; "
            "add.u32 %t3, %t3, %t4;"
        )
        if load:
            lines.append(f"ld.shared.{suffix} {vector}, [%t3];")
            lines += _unpack(registers, words, bits)
        else:
            lines += [*packing, f"st.shared.{suffix} [%t3], {vector};"]
    return lines


def _round_trip(plan: SharedRoundTrip, bits: int) -> list[str]:
    slots, kind = max(plan.gather) + 1, register_type(bits)
    lines = [
        f".reg .{kind} {SLOTS}<{slots}>;",
        f".shared .align 128 .b8 buf[{max(16, plan.bytes)}];",
    ]
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
                lines += [*_accesses(side, group, prefix, load, bits), f"{label}:"]
    return lines + [f"mov.{kind} {RESULT}{i}, {SLOTS}{s};" for i, s in enumerate(plan.gather)]


def kernel(plan: Plan, sources: int, results: int, bits: int = 32) -> str:
    """A kernel that converts `src[thread][register]` to `dst[thread][register]`.

    Elements of less than 32 bits stand in 32 bits each.
    """
    return _kernel(conversion(plan, sources, results, bits), sources, results, bits)


def through_buffer(
    store: SharedSide, load: SharedSide, size: int, sources: int, results: int, bits: int
) -> str:
    """As `kernel`, through a buffer of `size` elements with accesses of one's own."""
    kind = register_type(bits)
    lines = [f".reg .{kind} {SOURCE}<{sources}>;", f".reg .{kind} {RESULT}<{results}>;"]
    lines += [f".shared .align 128 .b8 buf[{max(16, size * bits // 8)}];", "mov.u32 %t4, buf;"]
    lines += _accesses(store, 0, SOURCE, False, bits)
    lines += ["bar.sync 0;", *_accesses(load, 0, RESULT, True, bits)]
    return _kernel("\n".join(lines), sources, results, bits)


def _kernel(body: str, sources: int, results: int, bits: int) -> str:
    kind, size = register_type(bits), max(32, bits) // 8
    loads = "\n".join(f"ld.global.{kind} {SOURCE}{r}, [%rd1+{size * r}];" for r in range(sources))
    stores = "\n".join(f"st.global.{kind} [%rd3+{size * r}], {RESULT}{r};" for r in range(results))
    declarations, rest = body.split("\n", 2)[:2], body.split("\n", 2)[2]
    return f"""
.version 8.5
.target sm_80
.address_size 64
.visible .entry k(.param .u64 src_p, .param .u64 dst_p) {{
.reg .b32 %lane; .reg .b32 %warp; .reg .b32 %tid; .reg .b32 %t<8>; .reg .pred %q;
.reg .{kind} %x1; .reg .b32 {WORDS}<64>;
.reg .b64 %rd<8>;
{declarations[0]}
{declarations[1]}
mov.u32 %tid, %tid.x; and.b32 %lane, %tid, 31; shr.u32 %warp, %tid, 5;
ld.param.u64 %rd0, [src_p]; mul.wide.u32 %rd1, %tid, {size * sources}; add.u64 %rd1, %rd1, %rd0;
ld.param.u64 %rd2, [dst_p]; mul.wide.u32 %rd3, %tid, {size * results}; add.u64 %rd3, %rd3, %rd2;
{loads}
{rest}
{stores}
ret;
}}
"""
