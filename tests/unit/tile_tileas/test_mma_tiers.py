"""Which tier of instructions a product runs on, and why not a higher one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tile_cute.atoms.tensor_memory import accumulator_layout
from tile_cute.linear import memory_access
from tile_tileas.mma.interleaved import buffer_of
from tile_tileas.mma.tensor import TensorTier
from tile_tileas.mma.tier import Planned, Product, Unfit, choose
from tile_tileas.mma.tiers import TIERS, tier_of, tiers_up_to
from tile_tileas.mma.warpgroup import WarpgroupTier, planned_warpgroups

F16, BF16, TF32 = ("f16", "f16", "f32"), ("bf16", "bf16", "f32"), ("tf32", "tf32", "f32")
FP8, INT8 = ("e4m3", "e5m2", "f32"), ("s8", "u8", "s32")


def product(
    types: tuple[str, str, str] = F16,
    size: tuple[int, int, int] = (128, 128, 64),
    warps: int = 4,
    chip: str = "sm_90a",
    batch: int = 0,
    promotes: bool = False,
    orders: tuple[str, str] = ("", ""),
) -> Product:
    shape, rank = (batch or 1, *size), 3 if batch else 2
    return Product(chip, types, shape, rank, warps, 232448, promotes, orders)


@pytest.mark.parametrize(
    ("wanted", "made"),
    [
        ("m64n128k16.f32.f16.f16", product()),
        ("m64n256k16.f32.f16.f16", product(size=(128, 256, 64), warps=8)),
        ("m64n64k16.f32.bf16.bf16", product(BF16, (64, 64, 16))),
        ("m64n8k8.f32.tf32.tf32", product(TF32, (64, 8, 32))),
        ("m64n64k32.f32.e4m3.e5m2", product(FP8, (64, 64, 64))),
        ("m64n64k32.f32.e4m3.e5m2", product(FP8, (64, 64, 64), promotes=True)),
        # Half of the columns at once, whose sums are there twice.
        ("m64n128k32.f32.e4m3.e5m2", product(FP8, (128, 256, 64), warps=8, promotes=True)),
        ("m64n128k32.s32.s8.u8", product(INT8, (64, 128, 64), orders=("K", "K"))),
        ("m64n64k16.f32.bf16.bf16", product(BF16, (64, 64, 64), orders=("MN", "MN"))),
        ("m64n64k16.f16.f16.f16", product(("f16", "f16", "f16"), (256, 64, 32), 8)),
        # The second warpgroup takes other columns where there are no more rows.
        ("m64n64k16.f32.f16.f16", product(size=(64, 128, 16), warps=8)),
    ],
)
def test_warpgroups_come_first(wanted: str, made: Product) -> None:
    choice = choose(made, TIERS)
    assert choice is not None
    assert choice.atom == f"wgmma.mma_async.sync.aligned.{wanted}"
    assert choice.refused == ()
    assert tier_of(choice.atom).family == "wgmma"
    plan = planned_warpgroups(Planned(choice.atom, made.shape, 2, made.num_warps))
    assert plan.accumulator.shape == made.shape[1:3]
    layout = tier_of(choice.atom).accumulator(
        Planned(choice.atom, made.shape, 2, made.num_warps), whole_rows=True
    )
    assert layout == plan.accumulator


def test_a_along_m_is_read_by_threads() -> None:
    """tf32, which wgmma reads along K: rows are placed so that a thread has neighbouring ones."""
    made = product(TF32, (128, 64, 32), orders=("MN", "K"))
    choice = choose(made, TIERS)
    assert choice is not None
    assert choice.atom.endswith("m64n64k8.f32.tf32.tf32 (A along M)")
    plan = planned_warpgroups(Planned(choice.atom, made.shape, 2, 4))
    along = buffer_of(128, 32, 32)
    read = memory_access(along, plan.a_fragment, 32)
    assert (read.vector, read.wavefronts) == (4, read.ideal)
    natural = replace(plan, along_m=False)
    assert memory_access(along, natural.a_fragment, 32).vector == 1
    for fragment, other in ((plan.a_fragment, natural.a_fragment),
                            (plan.accumulator, natural.accumulator)):  # fmt: skip
        assert fragment.is_surjective
        assert fragment.elements_per_thread == other.elements_per_thread


@pytest.mark.parametrize(
    ("reason", "made"),
    [
        ("it multiplies matrices, not batches of them", product(batch=2)),
        ("it is issued by 4 warps together, and the block has 2", product(warps=2)),
        ("it has 64 rows, and the tile 32", product(size=(32, 64, 16))),
        (
            "its operands take 262144 bytes of shared memory, and a block has 232448",
            product(size=(128, 128, 512)),
        ),
        ("sums would take 256 registers of a thread with 4 warps", product(size=(128, 256, 16))),
        (
            "sums inside and outside of the tensor cores would take 320 registers of a thread with "
            "4 warps",
            product(FP8, (256, 128, 32), promotes=True),
        ),
        (
            "it reads e5m2 along K, and B lies along N in memory: each element would be turned by "
            "itself",
            product(FP8, (64, 64, 64), orders=("K", "MN")),
        ),
        (
            "it reads tf32 along K, and B lies along N in memory: each element would be turned by "
            "itself",
            product(TF32, (64, 64, 64), orders=("MN", "MN")),
        ),
        (
            "sums and fragments of A, which lies along M, would take 256 registers of a thread "
            "with 4 warps",
            product(TF32, (128, 128, 128), orders=("MN", "K")),
        ),
        (
            "sums and fragments of A, which lies along M, would take 256 registers of a thread "
            "with 8 warps",
            product(FP8, (256, 128, 256), warps=8, promotes=True, orders=("MN", "K")),
        ),
        (
            "no instruction of it divides tiles of 64x64x8 among 4 warps",
            product(size=(64, 64, 8)),
        ),
    ],
)
def test_what_does_not_fit_says_why(reason: str, made: Product) -> None:
    choice = choose(made, TIERS)
    assert choice is not None
    assert choice.refused[0] == ("wgmma", reason)
    assert not choice.atom.startswith("wgmma")


def test_types_without_an_instruction_are_passed_on() -> None:
    choice = choose(product(("f64", "f64", "f64"), (64, 64, 16)), TIERS)
    assert choice is not None
    assert choice.refused == (("wgmma", "it does not multiply f64 by f64 into f64"),)
    assert choice.atom.startswith("mma.sync")


@pytest.mark.parametrize("chip", ["sm_80", "sm_120a"])
def test_other_targets_have_neither_and_no_word_of_them(chip: str) -> None:
    choice = choose(product(chip=chip), TIERS)
    assert choice is not None
    assert choice.atom.startswith("mma.sync")
    assert choice.refused == ()


def test_the_highest_tier_may_be_said() -> None:
    for highest in ("mma.sync", "fma"):
        choice = choose(product(), tiers_up_to(highest))
        assert choice is not None
        assert tier_of(choice.atom).family == highest
    with pytest.raises(KeyError):
        tiers_up_to("wmma")


def test_every_product_that_no_tensor_core_takes_has_multiply_adds() -> None:
    for types in (("f32", "f32", "f32"), F16):
        choice = choose(product(types, (1, 4, 2)), TIERS)
        assert choice is not None
        assert choice.atom == "fma"
    assert isinstance(WarpgroupTier().choose(product(("f32", "f32", "f32"))), Unfit)


@pytest.mark.parametrize("n", [32, 256])
@pytest.mark.parametrize("rows", [64, 128])
def test_sums_of_a_pair_lie_as_the_instruction_writes_them(rows: int, n: int) -> None:
    """A block's part of them: with 64 rows, columns of the upper half are in the upper rows."""
    made = replace(product(size=(rows, n, 16), chip="sm_100a"), ctas=2)
    chosen = choose(made, TIERS)
    assert chosen is not None
    plan = TensorTier().plan(Planned(chosen.atom, (1, rows, n, 16), 2, 4))
    whole = accumulator_layout(2 * rows, n, 2, False)
    assert whole is not None
    assert plan.columns == n * rows // 128
    for space in ("row", "column"):
        assert plan.buffer.bases[space] == whole.bases[space]
