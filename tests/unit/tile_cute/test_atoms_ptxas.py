"""ptxas accepts every instruction of the MMA and copy tables, on the chips they name only."""

import subprocess
from pathlib import Path

import pytest
from ptx_mma import module, tensor_mma, warp_mma, warpgroup_mma
from tile_cute.atoms import CopyAtom, MmaAtom, copy_atoms, find_mma
from tile_nvptx.emit import toolchain

PTXAS = toolchain.find("ptxas")
pytestmark = pytest.mark.skipif(PTXAS is None, reason="no ptxas")


def assemble(chip: str, text: str, where: Path) -> subprocess.CompletedProcess[str]:
    source = where / "probe.ptx"
    source.write_text(text)
    assert PTXAS is not None, "skipped without"
    command = [str(PTXAS.path), f"-arch={chip}", "-O0", str(source), "-o", str(where / "out")]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def accepts(chip: str, where: Path, *kernels: list[str]) -> None:
    done = assemble(chip, module(chip, *kernels), where)
    errors = [line for line in done.stderr.splitlines() if "error" in line]
    assert done.returncode == 0, "\n".join(errors[:20]) or done.stderr[:2000]


def warp_atoms(chip: str) -> list[MmaAtom]:
    rows = [r for r in find_mma(chip) if r.family.startswith(("mma.sync", "mma.sp", "mma.block"))]
    return [atom for row in rows for atom in row.atoms()]


@pytest.mark.parametrize("chip", ["sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a", "sm_121f"])
def test_warp_mma(chip: str, tmp_path: Path) -> None:
    atoms = warp_atoms(chip)
    assert atoms
    accepts(chip, tmp_path, [warp_mma(atom) for atom in atoms])


# (A, K) of shapes whose selector ptxas does not check: the PTX ISA has two selectors here as well.
UNCHECKED_SELECTORS = {("f16", 32)}


def _sparse_shapes() -> list[MmaAtom]:
    """A sparse MMA of each type of A, shape and kind."""
    rows = [*find_mma(family="mma.sp"), *find_mma(family="mma.sp.block_scale")]
    return list({(r.a, r.k, r.kind, r.family): r.atoms()[0] for r in rows}.values())


def test_sparsity_selectors(tmp_path: Path) -> None:
    """As many selectors as groups of lanes fit into a quad, by the layout of the metadata."""
    atoms = _sparse_shapes()
    statements, beyond = [], []
    for atom in atoms:
        assert atom.metadata_layout is not None
        count = 1 << atom.metadata_layout.free_mask("lane").bit_count()
        text = warp_mma(atom)
        assert ", %r0, 0x0" in text
        statements += [text.replace(", %r0, 0x0", f", %r0, {i:#x}") for i in range(count)]
        beyond.append(text.replace(", %r0, 0x0", f", %r0, {count:#x}"))
    accepts("sm_120a", tmp_path, statements)
    for atom, statement in zip(atoms, beyond, strict=True):
        done = assemble("sm_120a", module("sm_120a", [statement]), tmp_path)
        taken = (atom.row.a, atom.k) in UNCHECKED_SELECTORS
        assert (done.returncode == 0) == taken, atom


def test_warpgroup_mma(tmp_path: Path) -> None:
    kernels = []
    for row in find_mma("sm_90a"):
        if row.family.startswith("wgmma"):
            for atom in row.atoms():
                if atom.n in (8, 24, 128):
                    kernels.append([warpgroup_mma(atom, False), warpgroup_mma(atom, True)])
    assert len(kernels) > 50
    accepts("sm_90a", tmp_path, *kernels)


@pytest.mark.parametrize("chip", ["sm_100a", "sm_103a", "sm_110a"])
@pytest.mark.parametrize("group", [1, 2])
def test_tensor_mma(chip: str, group: int, tmp_path: Path) -> None:
    """A kernel may not mix CTA groups; M and N are in the descriptor, not the mnemonic."""
    names = {}
    for row in find_mma(chip):
        if row.family.startswith("tcgen05") and row.cta_group == group:
            atom = row.atoms()[0]
            names[atom.instruction] = tensor_mma(atom)
    assert len(names) >= 10
    accepts(chip, tmp_path, list(names.values()))


@pytest.mark.parametrize(
    ("chip", "family"),
    [("sm_89", "wgmma"), ("sm_90a", "tcgen05"), ("sm_120a", "tcgen05"), ("sm_100a", "wgmma")],
)
def test_gates(chip: str, family: str) -> None:
    assert not find_mma(chip, family=family)


def test_narrow_floats_are_refused_on_hopper(tmp_path: Path) -> None:
    """What the gate keeps away is indeed not there."""
    atom = find_mma("sm_120a", kind="f8f6f4", a="e2m1")[0].atoms()[0]
    assert not atom.row.supported_on("sm_90a")
    done = assemble("sm_90a", module("sm_90a", [warp_mma(atom)]), tmp_path)
    assert done.returncode != 0


def _registers(count: int) -> str:
    return "{" + ", ".join(f"%r{i}" for i in range(count)) + "}"


def copy_statement(atom: CopyAtom) -> str | None:
    """A use of the copy; None for a family whose operands are checked elsewhere."""
    count = atom.bits // 32
    match atom.family:
        case "ldmatrix":
            return f"{atom.instruction} {_registers(count)}, [%r99];"
        case "stmatrix":
            return f"{atom.instruction} [%r99], {_registers(count)};"
        case "tcgen05.ld" | "tcgen05.st":
            half = ", 8" if "x32bx2" in atom.instruction else ""
            regs = _registers(count)
            if atom.family == "tcgen05.ld":
                return f"{atom.instruction} {regs}, [%r200]{half};"
            return f"{atom.instruction} [%r200]{half}, {regs};"
        case "tcgen05.cp":
            return f"{atom.instruction} [%r0], %rd0;"
        case "cp.async":
            size = atom.bits // 8
            return f"{atom.instruction} [%r0], [%rd0], {size};"
        case "tma load" | "tma store" | "tma reduce":
            return _tensor_statement(atom)
        case "bulk":
            return _bulk_statement(atom)
        case _:
            return None


def _tensor_statement(atom: CopyAtom) -> str:
    rank = int(atom.instruction.split(".tensor.")[1][0])
    gather = "gather4" in atom.instruction or "scatter4" in atom.instruction
    coords = _registers(5 if gather else rank)
    if atom.family != "tma load":
        return f"{atom.instruction} [%rd0, {coords}], [%r99];"
    offsets = ""
    if "im2col" in atom.instruction:
        count = 2 if "::w" in atom.instruction else rank - 2
        offsets = ", {" + ", ".join(["%h0"] * count) + "}"
    mask = ", %h1" if "multicast" in atom.instruction else ""
    return f"{atom.instruction} [%r99], [%rd0, {coords}], [%r98]{offsets}{mask};"


def _bulk_statement(atom: CopyAtom) -> str:
    if atom.target == "global":
        return f"{atom.instruction} [%rd0], [%r0], 64;"
    source = "[%rd0]" if atom.source == "global" else "[%r2]"
    return f"{atom.instruction} [%r0], {source}, 64, [%r1];"


@pytest.mark.parametrize("chip", ["sm_80", "sm_90", "sm_100a", "sm_110a", "sm_120a"])
def test_copies(chip: str, tmp_path: Path) -> None:
    statements = []
    for atom in copy_atoms():
        if atom.supported_on(chip) and "cta_group::2" not in atom.instruction:
            statement = copy_statement(atom)
            statements += [statement] if statement else []
    assert len(statements) >= 10
    accepts(chip, tmp_path, statements)
