"""Kernels written with cute around one instruction that multiplies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

#: Operands come from, and the result goes to, rows of one array for each; MORE are words.
_WARP = """
gpu.module @m {
  func.func @k(%pa: !llvm.ptr<1>, %pb: !llvm.ptr<1>, %pc: !llvm.ptr<1>, %pd: !llvm.ptr<1>,
               %pe: !llvm.ptr<1>) attributes {
      nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 1 : i32}} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %ta = llvm.getelementptr %pa[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, LOADA
    %tb = llvm.getelementptr %pb[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, LOADB
    %tc = llvm.getelementptr %pc[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, VECC
    %td = llvm.getelementptr %pd[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, VECC
    %te = llvm.getelementptr %pe[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<2xi32>
    %la = llvm.load %ta : !llvm.ptr<1> -> LOADA
    %lb = llvm.load %tb : !llvm.ptr<1> -> LOADB
    %c = llvm.load %tc : !llvm.ptr<1> -> VECC
    %ee = llvm.load %te : !llvm.ptr<1> -> vector<2xi32>
    %e0 = vector.extract %ee[0] : i32 from vector<2xi32>
    %e1 = vector.extract %ee[1] : i32 from vector<2xi32>
    CAST
    PRODUCT
    llvm.store %d, %td : VECC, !llvm.ptr<1>
    return
  }
}
"""
#: Elements that LLVM does not load.
_NARROW = {"f8E4M3FN": "i8", "f8E5M2": "i8", "f4E2M1FN": "i4"}


def warp_kernel(
    operation: str,
    instruction: str,
    types: Sequence[tuple[int, str]],
    *,
    more: int = 0,
    attributes: str = "",
    bound: bool = False,
) -> str:
    """The product of fragments with so many elements of those types, A, B and C; `more` words go
    behind them. `bound`: scales are bound to an atom, which multiplies tensors in registers.
    """
    vectors = {name: f"vector<{n}x{e}>" for name, (n, e) in zip("ABC", types, strict=True)}
    loads = {f"LOAD{name}": f"vector<{n}x{_NARROW.get(e, e)}>"
             for name, (n, e) in zip("AB", types, strict=False)}  # fmt: skip
    casts = "\n    ".join(
        f"%{x.lower()} = arith.bitcast %l{x.lower()} : {loads[f'LOAD{x}']} to {vectors[x]}"
        for x in "AB"
    )
    extras = "".join(f", %e{at}" for at in range(more))
    listed = ", ".join([*vectors.values(), *["i32"] * more])
    use = (
        f'%d = "cute_nvgpu.{operation}"(%a, %b, %c{extras}) {{atom = "{instruction}"{attributes}}}'
        f" : ({listed}) -> {vectors['C']}"
    )
    text = _WARP.replace("PRODUCT", _bound(instruction, types, attributes) if bound else use)
    for name, type_ in (*loads.items(), ("CAST", casts), ("VECC", vectors["C"])):
        text = text.replace(name, type_)
    return text


def _bound(instruction: str, types: Sequence[tuple[int, str]], attributes: str) -> str:
    """The product by an atom that has its scales."""
    atom = f'!cute_nvgpu.atom<"{instruction}">'
    lines = [
        f'%atom = "cute_nvgpu.make_sm120_mma_bs"(%e0, %e1) {{{attributes.lstrip(", ")}}} '
        f": (i32, i32) -> {atom}"
    ]
    views = []
    for name, (count, element) in zip("abc", types, strict=True):
        view = f'!cute.memref<{element}, "rmem", "({count},1,1):(1,0,0)">'
        vector = f"vector<{count}x{element}>"
        lines.append(f'%r{name} = "cute_nvgpu.arch_alloc_rmem"() : () -> {view}')
        lines.append(f'"cute.memref_store_vec"(%{name}, %r{name}) : ({vector}, {view}) -> ()')
        views.append(view)
    a, b, c = views
    lines.append(
        f'"cute.mma_atom_call"(%atom, %rc, %ra, %rb, %rc) : ({atom}, {c}, {a}, {b}, {c}) -> ()'
    )
    count, element = types[2]
    lines.append(f'%d = "cute.memref_load_vec"(%rc) : ({c}) -> vector<{count}x{element}>')
    return "\n    ".join(lines)


#: Tensor memory begins as `start`, two products of what is in shared memory (`image`) are made,
#: with A from there and from tensor memory, and all columns are written.
_TENSOR = """
!bar = !cute.ptr<i64, "smem", 8 : i64>
!bars = !cute.memref<i64, "smem", "1:1">
!slot = !cute.memref<i32, "smem", "1:1">
!pslot = !cute.ptr<i32, "smem", 4 : i64>
!s = !cute.memref<i32, "smem", "ROOM:1">
!ps = !cute.ptr<i32, "smem", 1024 : i64>
gpu.module @m {
  func.func @k(%image: !llvm.ptr<1>, %start: !llvm.ptr<1>, %out: !llvm.ptr<1>) attributes {
      nv_tileaa.kernel, nv_tileaa.kernel_spec = {num_ctas = 1 : i32, num_warps = 4 : i32}} {
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %i0 = arith.constant 0 : i32
    %i1 = arith.constant 1 : i32
    %i4 = arith.constant 4 : i32
    %i8 = arith.constant 8 : i32
    %i32 = arith.constant 32 : i32
    %i128 = arith.constant 128 : i32
    %room = arith.constant ROOM : i32
    %width = arith.constant WIDTH : i32
    %columns = arith.constant 256 : i32
    %high = arith.constant 65536 : i32
    %ticks = arith.constant 10000000 : i32
    %s = "cute.memref_alloc_smem"() : () -> !s
    %bars = "cute.memref_alloc_smem"() : () -> !bars
    %slot = "cute.memref_alloc_smem"() : () -> !slot
    %pslot = "cute.get_iter"(%slot) : (!slot) -> !pslot
    %bar = "cute.get_iter"(%bars) : (!bars) -> !bar
    %end = builtin.unrealized_conversion_cast %bar : !bar to !llvm.ptr<3>
    %warp = arith.divui %t, %i32 : i32
    %w0 = arith.cmpi eq, %warp, %i0 : i32
    %t0 = arith.cmpi eq, %t, %i0 : i32
    scf.if %t0 {
      nvvm.mbarrier.init %end, %i1 : !llvm.ptr<3>, i32
    }
    scf.if %w0 {
      "cute_nvgpu.arch_sm100_alloc_tmem"(%pslot, %columns) : (!pslot, i32) -> ()
      "cute_nvgpu.arch_sm100_relinquish_tmem_alloc_permit"() : () -> ()
    }
    scf.for %i = %t to %room step %i128 : i32 {
      %p = llvm.getelementptr %image[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      %v = llvm.load %p : !llvm.ptr<1> -> i32
      "cute.memref_store"(%v, %s, %i) : (i32, !s, i32) -> ()
    }
    nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
    nvvm.barrier
    %base = "cute_nvgpu.arch_sm100_retrieve_tmem_ptr"(%pslot) : (!pslot) -> i32
    %first = arith.muli %warp, %i32 : i32
    %quarter = arith.muli %first, %high : i32
    %own = arith.addi %base, %quarter : i32
    %row = arith.muli %t, %width : i32
    scf.for %c = %i0 to %width step %i8 : i32 {
      %at = arith.addi %row, %c : i32
      %p = llvm.getelementptr %start[%at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      %v = llvm.load %p {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xi32>
      %to = arith.addi %own, %c : i32
      "cute_nvgpu.arch_copy_sm100_tmem_store"(%v, %to)
        {atom = "tcgen05.st.sync.aligned.32x32b.x8.b32"} : (vector<8xi32>, i32) -> ()
    }
    nvvm.tcgen05.fence #nvvm.tcgen05_fence<before>
    nvvm.barrier
    nvvm.tcgen05.fence #nvvm.tcgen05_fence<after>
    scf.if %t0 {
      %iter = "cute.get_iter"(%s) : (!s) -> !ps
      %place = builtin.unrealized_conversion_cast %iter : !ps to !llvm.ptr<3>
      %address = llvm.ptrtoint %place : !llvm.ptr<3> to i32
      %units = arith.shrui %address, %i4 : i32
      %unit = arith.extui %units : i32 to i64
      ISSUE
      nvvm.tcgen05.commit %end : !llvm.ptr<3>
    }
    nvvm.mbarrier.try_wait.parity %end, %i0, %ticks : !llvm.ptr<3>, i32, i32
    nvvm.tcgen05.fence #nvvm.tcgen05_fence<after>
    scf.for %c = %i0 to %width step %i8 : i32 {
      %from = arith.addi %own, %c : i32
      %v = "cute_nvgpu.arch_copy_sm100_tmem_load"(%from)
        {atom = "tcgen05.ld.sync.aligned.32x32b.x8.b32"} : (i32) -> vector<8xi32>
      %at = arith.addi %row, %c : i32
      %p = llvm.getelementptr %out[%at] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.store %v, %p {alignment = 16 : i64} : vector<8xi32>, !llvm.ptr<1>
    }
    nvvm.tcgen05.fence #nvvm.tcgen05_fence<before>
    nvvm.barrier
    scf.if %w0 {
      "cute_nvgpu.arch_sm100_dealloc_tmem"(%base, %columns) : (i32, i32) -> ()
    }
    return
  }
}
"""


def tensor_kernel(
    operation: str,
    instruction: str,
    descriptors: Sequence[int],
    kind: int,
    columns: Mapping[str, int],
    *,
    words: int,
    more: Sequence[str] = (),
    attributes: str = "",
) -> str:
    """The products of `operation`; `words` of 32 bits are shared.

    Args:
        descriptors: of A and B, in units from the beginning of shared memory on.
        columns: where operands and sums begin: "first", "second", "a", and the names of `more`.
    """
    lines = [
        f"%word{name} = arith.constant {value} : i64\n"
        f"%d{name} = arith.addi %unit, %word{name} : i64"
        for name, value in zip("ab", descriptors, strict=True)
    ]
    lines += [f"%kind = arith.constant {kind} : i32", "%fresh = arith.constant false"]
    for name in ("first", "second", "a", *more):
        lines.append(f"%col_{name} = arith.constant {columns[name]} : i32")
        lines.append(f"%at_{name} = arith.addi %base, %col_{name} : i32")
    extras = "".join(f", %at_{name}" for name in more)
    types = ", ".join(["i32"] * len(more))
    for total, left, type_ in (("first", "%da", "i64"), ("second", "%at_a", "i32")):
        lines.append(
            f'"cute_nvgpu.{operation}"(%at_{total}, {left}, %db, %kind, %fresh{extras}) '
            f'{{atom = "{instruction}"{attributes if type_ == "i32" else ""}}} '
            f": (i32, {type_}, i64, i32, i1{', ' + types if types else ''}) -> ()"
        )
    text = _TENSOR.replace("ISSUE", "\n      ".join(lines)).replace("ROOM", str(words))
    return text.replace("WIDTH", str(columns["all"]))
