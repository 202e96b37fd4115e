"""PTX that uses every MMA row once, with the operand counts that the tables claim."""

from tile_cute.atoms import MmaAtom
from tile_cute.atoms.types import BITS

_CLASS = {"f32": ("f", "%f"), "f64": ("d", "%d")}


def _vector(prefix: str, count: int) -> str:
    return "{" + ", ".join(f"{prefix}{i}" for i in range(count)) + "}"


def _operand(atom: MmaAtom, role: str) -> str:
    kind = getattr(atom.row, "acc" if role == "c" else role)
    count = atom.registers(role)
    if kind == "f64":
        return _vector("%d", count // 2)
    return _vector(_CLASS[kind][1] if kind in _CLASS else "%r", count)


def warp_mma(atom: MmaAtom) -> str:
    """One mma.sync or mma.sp statement."""
    parts = [_operand(atom, role) for role in "cabc"]
    if atom.row.sparse:
        parts += ["%r0", "0x0"]
    if atom.row.scale is not None:
        parts += ["%r1", "{%h0, %h1}", "%r2", "{%h0, %h1}"]
    return f"{atom.instruction} {', '.join(parts)};"


def warpgroup_mma(atom: MmaAtom, a_in_registers: bool) -> str:
    """One wgmma statement, with A from shared memory or registers."""
    d = _operand(atom, "c")
    a = _operand(atom, "a") if a_in_registers else "%rd0"
    tail = ["%p0"]
    if BITS[atom.row.a] >= 8 and atom.row.acc != "s32":
        tail += ["1", "1"]
    if "MN" in atom.row.majors:
        tail += ["0"] if a_in_registers else ["0", "0"]
    metadata = ["%r0", "0"] if atom.row.sparse else []
    return f"{atom.instruction} {', '.join([d, a, '%rd1', *metadata, *tail])};"


def tensor_mma(atom: MmaAtom) -> str:
    """One tcgen05.mma statement with A from shared memory."""
    parts = ["[%r0]", "%rd0", "%rd1"]
    if atom.row.sparse:
        parts.append("[%r1]")
    parts.append("%r2")
    if atom.row.scale is not None:
        parts += ["[%r3]", "[%r4]"]
    return f"{atom.instruction} {', '.join([*parts, '%p0'])};"


def module(chip: str, *kernels: list[str]) -> str:
    """A kernel for each list of statements, with registers enough for all of them."""
    head = f".version 9.0\n.target {chip}\n.address_size 64\n"
    return head + "".join(_kernel(i, statements) for i, statements in enumerate(kernels))


def _kernel(number: int, statements: list[str]) -> str:
    body = "\n  ".join(statements)
    return f"""
.visible .entry probe{number}() {{
  .reg .b32 %r<300>;
  .reg .f32 %f<300>;
  .reg .f64 %d<40>;
  .reg .b64 %rd<8>;
  .reg .b16 %h<4>;
  .reg .pred %p<2>;
  {body}
  ret;
}}
"""
