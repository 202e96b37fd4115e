"""What the examples promise about their arguments: contiguous arrays, aligned to 16 bytes."""

from cuda.tile import int32
from cuda.tile.compilation import (
    ArrayConstraint,
    CallingConvention,
    KernelSignature,
    ScalarConstraint,
)


def array(dtype, rank, *, shape_divisible_by=None):
    """A row-major array of `rank` dimensions whose rows start at multiples of 16 bytes."""
    elements = 16 * 8 // dtype.bitwidth
    return ArrayConstraint(
        dtype,
        rank,
        index_dtype=int32,
        stride_lower_bound_incl=0,
        alias_groups=(),
        may_alias_internally=False,
        stride_constant=[None] * (rank - 1) + [1],
        stride_divisible_by=[elements] * (rank - 1) + [1],
        shape_divisible_by=shape_divisible_by or [1] * rank,
        base_addr_divisible_by=16,
    )


def scalar(dtype):
    """A number that is known only at launch."""
    return ScalarConstraint(dtype)


def signature(name, parameters):
    """A kernel called `name` in the compiled program."""
    return KernelSignature(parameters, CallingConvention.cutile_python_v1(), symbol=name)
