"""Functions of several angles at once, as MLIR text (see `helpers`, `together`)."""

from __future__ import annotations

from tile_nvptx.passes.tileas.device.together import each, ending, f32s

#: Up to here libdevice's functions of f32 angles have a way without branches. Beyond it they take
#: as many digits of 2 / pi as an angle needs.
LARGEST = 105615.0


def of_angles(function: str, count: int) -> tuple[str, str]:
    """Name and text of `(vector<count x f32> x) -> vector`: libdevice's `function`, as `__nv_cosf`.

    The test of each angle is the one that libdevice makes, so that LLVM drops its other way where
    all are known to be small.
    """
    name, vector = f"__tile{function}_v{count}", f32s(count)
    call = f"llvm.call @{function}(%x) : (f32) -> f32"
    quick, exact = ([each("x", way, count, call)] for way in ("quick", "exact"))
    text = f"""
llvm.func @{function}(f32) -> f32
llvm.func internal @{name}(%x: {vector}) -> {vector} attributes {{always_inline}} {{
{_all_small(count)}
{ending(f"%all{count - 1}", quick, exact, count)}
}}"""
    return name, text


def _all_small(count: int) -> str:
    """`%all<n>`, whether elements of `%x` up to the nth are small, which libdevice says of what is
    no number, too.
    """
    vector = f32s(count)
    lines = [f"  %most = llvm.mlir.constant({LARGEST} : f32) : f32"]
    for at in range(count):
        lines += [
            f"  %i{at} = llvm.mlir.constant({at} : i32) : i32",
            f"  %x{at} = llvm.extractelement %x[%i{at} : i32] : {vector}",
            f"  %size{at} = llvm.intr.fabs(%x{at}) : (f32) -> f32",
            f'  %{"small" if at else "all"}{at} = llvm.fcmp "ult" %size{at}, %most : f32',
        ]
        if at:
            lines.append(f"  %all{at} = llvm.and %all{at - 1}, %small{at} : i1")
    return "\n".join(lines)
