"""Device functions with loops of their own, as MLIR text (see `helpers`)."""

from __future__ import annotations


def bf16_add_text(instruction: str, qualifiers: str, bits: int, arity: int) -> tuple[str, str]:
    """Name and text of `(ptr<1>, i16, i1) -> i16`: an atomic sum in bf16 by compare-and-swap.

    For targets before sm_90, which lack `atom.add.bf16` but have `atom.cas.b16` (PTX ISA, "atom").
    The sum is exact in f32 but for one rounding there, which that to bf16 cannot see: f32 has more
    than twice the digits of bf16 and two. Without the flag, the result is the value.
    """
    name = f"__tile_atom{qualifiers}_bf16_add_by_cas".replace(".", "_")
    asm = f"atom{qualifiers}.global.cas.b16 $0, [$1], $2, $3;"
    first = f"ld.relaxed.{qualifiers.rsplit('.', 1)[1]}.global.b16 $0, [$1];"
    lines = [
        f"llvm.func internal @{name}(%p: !llvm.ptr<1>, %x: i16, %c: i1) -> i16 {{",
        "  llvm.cond_br %c, ^begin, ^done(%x : i16)",
        "^begin:",
        f'  %before = llvm.inline_asm has_side_effects asm_dialect = att "{first}", '
        '"=h,l,~{memory}" %p : (!llvm.ptr<1>) -> i16',
        "  %sixteen = llvm.mlir.constant(16 : i32) : i32",
        "  %xw = llvm.zext %x : i16 to i32",
        "  %xs = llvm.shl %xw, %sixteen : i32",
        "  %xf = llvm.bitcast %xs : i32 to f32",
        "  llvm.br ^again(%before : i16)",
        "^again(%old: i16):",
        "  %ow = llvm.zext %old : i16 to i32",
        "  %os = llvm.shl %ow, %sixteen : i32",
        "  %of = llvm.bitcast %os : i32 to f32",
        "  %sum = llvm.fadd %of, %xf : f32",
        "  %short = llvm.fptrunc %sum : f32 to bf16",
        "  %new = llvm.bitcast %short : bf16 to i16",
        f'  %found = llvm.inline_asm has_side_effects asm_dialect = att "{asm}", '
        '"=h,l,h,h,~{memory}" %p, %old, %new : (!llvm.ptr<1>, i16, i16) -> i16',
        '  %same = llvm.icmp "eq" %found, %old : i16',
        "  llvm.cond_br %same, ^done(%found : i16), ^again(%found : i16)",
        "^done(%result: i16):",
        "  llvm.return %result : i16",
        "}",
    ]
    return name, "\n".join(lines)
