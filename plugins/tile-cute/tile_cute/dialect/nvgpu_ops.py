"""cute_nvgpu: NVIDIA's MMA and copy instructions, tensor maps and tensor memory.

An instruction op names its row of the registry (`atom = "<PTX instruction>"`, with M and N
filled in); the verifier holds operands to the row. Per-thread fragments are vectors in register
order of the row's layout.
"""

from collections.abc import Sequence

from tile_core.mlir import ir
from tile_cute.atoms import MmaAtom
from tile_cute.atoms.registry import copy_atom, mma_atom
from tile_cute.atoms.rules import TensorMmaFlags, check_tensor_mma
from tile_cute.dialect.base import CuteNvgpu, attributes_of
from tile_cute.dialect.define import define
from tile_cute.dialect.nvgpu_signatures import CHECKS
from tile_cute.errors import LayoutError

# How PTX element types appear in MLIR vectors; bytes hold fp6 and fp4 of mixed kinds, in their low
# bits, and are moved to where the instruction takes them from.
_ELEMENTS = {
    "f16": ("f16",),
    "bf16": ("bf16",),
    "tf32": ("f32", "tf32"),
    "f32": ("f32",),
    "f64": ("f64",),
    "s32": ("i32",),
    "s8": ("i8",),
    "u8": ("i8",),
    "s4": ("i4",),
    "u4": ("i4",),
    "b1": ("i1",),
    "e4m3": ("f8E4M3FN", "i8"),
    "e5m2": ("f8E5M2", "i8"),
    "e2m3": ("f6E2M3FN", "i8"),
    "e3m2": ("f6E3M2FN", "i8"),
    "e2m1": ("f4E2M1FN", "i4", "i8"),
}


def check_element(atom: MmaAtom, name: str, element: str) -> None:
    """LayoutError unless elements of operand a, b, c or d of the MMA may have this type."""
    ptx = getattr(atom.row, "acc" if name in "cd" else name)
    if element not in _ELEMENTS[ptx]:
        raise LayoutError(
            f"expects operand {name} with element type {_ELEMENTS[ptx][0]}, but get {element}."
        )


def _check_fragment(atom: MmaAtom, name: str, type_: ir.Type) -> None:
    if not isinstance(type_, ir.VectorType):
        raise LayoutError(f"expects rmem for input operands, but got {name.upper()}: {type_}")
    check_element(atom, name, str(type_.element_type))
    count = count_of(atom, name.upper())
    if type_.shape != [count]:
        raise LayoutError(
            f"invalid layout of {name.upper()}: {atom.instruction} has {count} elements per "
            f"thread, but got {type_}"
        )


def count_of(atom: MmaAtom, operand: str) -> int:
    """How many elements of operand A, B, C or D a thread has in registers.

    Raises:
        LayoutError: the instruction does not take that one from registers.
    """
    if operand in "CD":
        return atom.m * atom.n // atom.row.threads
    layout = atom.a_layout if operand == "A" else atom.b_layout
    if layout is None:
        raise LayoutError(f"'{atom.instruction}' does not take {operand} from registers")
    return layout.elements_per_thread


def element_of(atom: MmaAtom, operand: str) -> str:
    """The type that elements of operand A, B or C have where nothing says another one."""
    return _ELEMENTS[getattr(atom.row, "acc" if operand == "C" else operand.lower())][0]


def _check_family(op: ir.OpView, families: tuple[str, ...]) -> MmaAtom:
    atom = mma_atom(attributes_of(op)["atom"])
    if atom.family not in families:
        raise LayoutError(f"'{atom.instruction}' is no {' or '.join(families)} instruction")
    return atom


def _check_warp_mma(*families: str):  # type: ignore[no-untyped-def]
    def check(op: ir.OpView) -> None:
        atom = _check_family(op, families)
        operands = list(op.operation.operands)
        if atom.row.scale is not None:
            _check_scaled(operands)
        for name, value in zip("abc", operands, strict=False):
            _check_fragment(atom, name, value.type)
        _check_fragment(atom, "d", op.operation.results[0].type)
        for extra in operands[3:]:
            if str(extra.type) not in ("i32", "vector<2xi16>", "vector<4xi8>"):
                raise LayoutError(
                    f"expects metadata and scales as 32-bit registers, but got {extra.type}"
                )

    return check


def _check_scaled(operands: Sequence[ir.Value]) -> None:
    c, *_, sfa, sfb = (operand.type for operand in operands[2:])
    if not isinstance(c, ir.VectorType) or str(c.element_type) != "f32":
        raise LayoutError(f"expects c type to be Float32, but got {c}")
    if sfa != sfb:
        raise LayoutError(f"expects sfa/sfb element types to be the same, but got {sfa} and {sfb}")


def _check_warpgroup_mma(op: ir.OpView) -> None:
    atom = _check_family(op, ("wgmma", "wgmma.sp"))
    d, a, b = (operand.type for operand in list(op.operation.operands)[:3])
    _check_fragment(atom, "d", d)
    if isinstance(a, ir.VectorType):
        _check_fragment(atom, "a", a)
    elif not _is_descriptor(a):
        raise LayoutError(f"expects memref/smem_desc_view for operand A, but gets A:{a}.")
    if not _is_descriptor(b):
        raise LayoutError(f"expects smem_desc_view for operand B, but gets B: {b}.")


def _check_wait(op: ir.OpView) -> None:
    """A fragment of sums, as it is; at most 7 groups stay in flight (PTX ISA, wait_group)."""
    before, after = op.operation.operands[0].type, op.operation.results[0].type
    elements = ("f32", "f16", "i32")
    if not isinstance(before, ir.VectorType) or str(before.element_type) not in elements:
        raise LayoutError(f"expects a fragment of sums, but got {before}")
    if before != after:
        raise LayoutError(f"expects the result to be {before}, but got {after}")
    if not 0 <= int(attributes_of(op).get("pending", 0)) <= 7:
        raise LayoutError("expects 'pending' from 0 to 7")


def _is_descriptor(type_: ir.Type) -> bool:
    return str(type_) == "i64" or str(type_).startswith("!cute_nvgpu.smem_desc")


def _check_tensor_mma(*families: str):  # type: ignore[no-untyped-def]
    def check(op: ir.OpView) -> None:
        attributes = attributes_of(op)
        atom = _check_family(op, families)
        row = atom.row
        flags = TensorMmaFlags(
            kind=row.kind,
            cta_group=row.cta_group,
            scale_size=attributes.get("scale_size", ""),
            block_scale=row.scale is not None,
            sparse=row.sparse,
            weight_stationary=row.weight_stationary,
            ashift="ashift" in op.operation.attributes,
            collector=attributes.get("collector", ""),
        )
        check_tensor_mma(flags, attributes.get("chip", "sm_100a"))
        types = [operand.type for operand in op.operation.operands]
        if isinstance(types[1], ir.VectorType):
            raise LayoutError(
                f"expects smem_desc_view or tmem for operand A, but gets A: {types[1]}."
            )
        if not _is_descriptor(types[2]):
            raise LayoutError(f"expects smem_desc_view for operand B, but gets B: {types[2]}.")

    return check


def _check_copy(*families: str):  # type: ignore[no-untyped-def]
    def check(op: ir.OpView) -> None:
        atom = copy_atom(attributes_of(op)["atom"])
        if atom.family not in families:
            raise LayoutError(f"'{atom.instruction}' is no {' or '.join(families)} instruction")
        if atom.fragment is None or atom.family == "tcgen05.cp":
            return
        values = [*op.operation.results, *op.operation.operands]
        vectors = [v.type for v in values if isinstance(v.type, ir.VectorType)]
        bits = sum(v.shape[0] * _element_bits(v.element_type) for v in map(ir.VectorType, vectors))
        if bits != atom.bits:
            raise LayoutError(
                f"expects {atom.bits // 32} registers of 32 bits for '{atom.instruction}', "
                f"but got {bits} bits"
            )

    return check


def _element_bits(type_: ir.Type) -> int:
    if isinstance(type_, ir.IntegerType | ir.FloatType):
        return type_.width
    raise LayoutError(f"cannot move elements of type {type_}")


_WARP = ("a", "b", "c")
_TENSOR = ("d", "a", "b", "idesc", "enable")
_SP = "tcgen05.sp", "tcgen05.ws.sp"

# name: (operands, results, check, pure, what it does)
_TABLE = {
    "arch_mma_sm80": (_WARP, ("d",), _check_warp_mma("mma.sync"), True, "mma.sync"),
    "arch_mma_sm89": (_WARP, ("d",), _check_warp_mma("mma.sync"), True, "mma.sync of fp8"),
    "arch_mma_sm80_sparse": (
        (*_WARP, "metadata"), ("d",), _check_warp_mma("mma.sp"), True, "mma.sp",
    ),
    "arch_mma_sm120_block_scaled": (
        (*_WARP, "scale_a", "scale_b"), ("d",), _check_warp_mma("mma.block_scale"), True,
        "mma.sync with block scales",
    ),
    "arch_mma_sm90": (
        ("d", "a", "b", "accumulate"), ("result",), _check_warpgroup_mma, False,
        "wgmma.mma_async",
    ),
    "arch_mma_sm90_wait": (
        ("sum",), ("result",), _check_wait, False, "wait for wgmma.mma_async in flight",
    ),
    "arch_mma_sm100_umma": (
        _TENSOR, (), _check_tensor_mma("tcgen05", "tcgen05.ws"), False, "tcgen05.mma",
    ),
    "arch_mma_sm100_umma_sparse": (
        (*_TENSOR, "metadata"), (), _check_tensor_mma(*_SP), False, "tcgen05.mma.sp",
    ),
    "arch_mma_sm100_umma_block_scaled": (
        (*_TENSOR, "scale_a", "scale_b"), (), _check_tensor_mma("tcgen05.block_scale"), False,
        "tcgen05.mma.block_scale",
    ),
    "arch_mma_sm100_umma_block_scaled_sparse": (
        (*_TENSOR, "metadata", "scale_a", "scale_b"), (),
        _check_tensor_mma("tcgen05.sp.block_scale"), False, "tcgen05.mma.sp.block_scale",
    ),
    "arch_copy_sm80_cp_async": (
        ("target", "source", "size?"), (), _check_copy("cp.async"), False, "cp.async",
    ),
    "arch_copy_ldsm": (("address",), ("value",), _check_copy("ldmatrix"), False, "ldmatrix"),
    "arch_copy_stsm": (("value", "address"), (), _check_copy("stmatrix"), False, "stmatrix"),
    "arch_copy_sm100_copy_s2t": (
        ("target", "descriptor"), (), _check_copy("tcgen05.cp"), False, "tcgen05.cp",
    ),
    "arch_copy_sm100_tma_load": (
        ("target", "map", "barrier", "coords*"), (), _check_copy("tma load"), False, "TMA load",
    ),
    "arch_copy_sm100_tma_store": (
        ("map", "source", "coords*"), (), _check_copy("tma store"), False, "TMA store",
    ),
    "arch_copy_sm100_tma_reduce": (
        ("map", "source", "coords*"), (), _check_copy("tma reduce"), False, "TMA reduction",
    ),
    "arch_copy_sm100_tmem_load": (
        ("address",), ("value",), _check_copy("tcgen05.ld"), False, "tcgen05.ld",
    ),
    "arch_copy_sm100_tmem_store": (
        ("value", "address"), (), _check_copy("tcgen05.st"), False, "tcgen05.st",
    ),
    "arch_alloc_rmem": ((), ("result",), None, False, "registers"),
    "arch_alloc_smem": ((), ("result",), None, False, "shared memory of fixed size"),
    "arch_get_dyn_smem": ((), ("result",), None, True, "where dynamic shared memory begins"),
    "arch_get_dyn_smem_size": ((), ("result",), None, True, "its size in bytes"),
    "arch_make_warp_uniform": (("source",), ("result",), None, True, "equal in all lanes"),
    "arch_prefetch_tma_desc": (("map",), (), None, False, "prefetch.tensormap"),
    "arch_sm100_alloc_tmem": (("target", "columns"), (), None, False, "tcgen05.alloc"),
    "arch_sm100_dealloc_tmem": (("address", "columns"), (), None, False, "tcgen05.dealloc"),
    "arch_sm100_relinquish_tmem_alloc_permit": ((), (), None, False, "no more allocations"),
    "arch_sm100_retrieve_tmem_ptr": (("source",), ("result",), None, False, "the allocation"),
    "atom_get_value": (("atom",), ("result",), None, True, "a field of an atom"),
    "atom_get_copy_s2t_smem_desc_view": (("atom", "view"), ("result",), None, True, "descriptors"),
    "atom_make_exec_tma": (("atom", "barrier?"), ("result",), None, True, "bind the barrier"),
    "atom_make_non_exec_tiled_tma_load": (("map",), ("atom",), None, True, "TMA load, unbound"),
    "atom_make_non_exec_tiled_tma_store": (("map",), ("atom",), None, True, "TMA store, unbound"),
    "atom_make_non_exec_tiled_tma_reduce": (("map",), ("atom",), None, True, "reduce, unbound"),
    "atom_make_tma_load": (("map", "barrier"), ("atom",), None, True, "TMA load"),
    "atom_make_tma_store": (("map",), ("atom",), None, True, "TMA store"),
    "atom_make_tma_reduce": (("map",), ("atom",), None, True, "TMA reduction"),
    "atom_make_s2t_copy": (("descriptor",), ("atom",), None, True, "shared to tensor memory"),
    "atom_make_tmem_copy": (("view",), ("atom",), None, True, "tensor memory and registers"),
    "atom_tma_partition": (("atom", "view"), ("result",), None, True, "tiles of a tensor map"),
    "make_sm120_mma_bs": (("scale_a", "scale_b"), ("atom",), None, True, "bind the scales"),
    "make_tma_desc_tiled": (("view",), ("map",), None, False, "a tensor map"),
    "make_tma_desc_tiled_at": (("view", "address"), (), None, False, "a tensor map in memory"),
    "make_tma_desc_im2col": (("view",), ("map",), None, False, "an im2col tensor map"),
    "make_tma_desc_im2col_at": (("view", "address"), (), None, False, "one in memory"),
    "prefetch_tma_desc": (("map",), (), None, False, "announce a tensor map"),
    "update_tma_desc": (("map", "value"), (), None, False, "tensormap.replace"),
    "copy_tma_desc": (("source", "target"), (), None, False, "copy a tensor map"),
    "get_tma_desc_addr": (("map",), ("result",), None, True, "its address"),
    "cast_tma_desc_to_integer": (("map",), ("result",), None, True, "its address as integer"),
    "get_grid_constant_pointer": (("source",), ("result",), None, True, "a grid constant"),
}  # fmt: skip


OPERATIONS = {
    name: define(
        CuteNvgpu, name, operands, results, doc=doc, pure=pure,
        check=CHECKS.checked(name, operands, results, check),
    )
    for name, (operands, results, check, pure, doc) in _TABLE.items()
}  # fmt: skip
