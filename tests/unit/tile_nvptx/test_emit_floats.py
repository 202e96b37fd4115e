"""Float literals between two LLVMs: bits must survive exactly."""

import struct
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tile_nvptx.emit.float_literals import FORMATS, legacy_literal, literal_bits, nearest_bits
from tile_nvptx.emit.llvm_compat import readable_by_codegen


@given(st.floats(min_value=0, max_value=3e38, allow_nan=False))
def test_rounding_to_float_is_numpys(value: float) -> None:
    with np.errstate(over="ignore"):
        expected = int(np.float32(value).view(np.uint32))
    assert nearest_bits(Fraction(value), FORMATS["float"]) == expected


@given(st.floats(min_value=0, max_value=1e6, allow_nan=False))
def test_rounding_to_half_is_numpys(value: float) -> None:
    with np.errstate(over="ignore"):
        expected = int(np.float16(value).view(np.uint16))
    assert nearest_bits(Fraction(value), FORMATS["half"]) == expected


@given(st.integers(0, 2**16 - 1))
def test_every_half_widens_to_the_same_value(bits: int) -> None:
    value = np.uint16(bits).view(np.float16)
    if np.isnan(value):
        return
    text = legacy_literal(f"f0x{bits:04X}", "half")
    assert text == f"0xH{bits:04X}"


@given(st.integers(0, 2**32 - 1))
def test_float_bits_are_written_as_the_double_of_the_same_value(bits: int) -> None:
    text = legacy_literal(f"f0x{bits:08X}", "float")
    double = struct.unpack("<d", struct.pack("<Q", int(text, 16)))[0]
    value = struct.unpack("<f", struct.pack("<I", bits))[0]
    assert double == value or (np.isnan(double) and np.isnan(value))


@pytest.mark.parametrize(
    ("literal", "kind", "bits"),
    [
        ("1.000000e-01", "float", 0x3DCCCCCD),
        ("-0.000000e+00", "float", 0x80000000),
        ("1.401300e-45", "float", 0x00000001),
        ("3.402820e+39", "float", 0x7F800000),
        ("-inf", "half", 0xFC00),
        ("+qnan", "bfloat", 0x7FC0),
        ("+snan(0x1)", "float", 0x7F800001),
        ("-nan(0x12345)", "float", 0xFFC12345),
        ("9.997550e-02", "half", 0x2E66),
        ("f0x3FD5555555555555", "double", 0x3FD5555555555555),
    ],
)
def test_literal_bits(literal: str, kind: str, bits: int) -> None:
    assert literal_bits(literal, FORMATS[kind]) == bits


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("  %1 = fadd float %0, 1.000000e-01", "  %1 = fadd float %0, 0x3FB99999A0000000"),
        ("  ret half +inf", "  ret half 0xH7C00"),
        (
            "  %3 = phi float [ 1.000000e+00, %a ], [ -inf, %1 ]",
            "  %3 = phi float [ 0x3FF0000000000000, %a ], [ 0xFFF0000000000000, %1 ]",
        ),
        (
            "  store { half, double } { half 1.000000e+00, double 2.000000e+00 }, ptr %p",
            "  store { half, double } { half 0xH3C00, double 0x4000000000000000 }, ptr %p",
        ),
        ('  call void asm "add 1.0, f0x12;", ""()', '  call void asm "add 1.0, f0x12;", ""()'),
        ('@"float 1.5" = global i32 3 ; 1.5', '@"float 1.5" = global i32 3 ; 1.5'),
        ("  %a1.5 = add i32 %x.2.5, 3", "  %a1.5 = add i32 %x.2.5, 3"),
    ],
)
def test_literals_are_found_by_their_type(line: str, expected: str) -> None:
    assert readable_by_codegen(line) == expected


def test_intrinsic_declarations_go_with_their_attributes() -> None:
    text = (
        "declare void @mine() #0\n\n; Function Attrs: nofree\n"
        "declare float @llvm.sqrt.f32(float) #1\n\n"
        "attributes #0 = { nounwind }\nattributes #1 = { unknowntothisllvm }\n"
    )
    assert readable_by_codegen(text) == (
        "declare void @mine() #0\n\n\nattributes #0 = { nounwind }\n"
    )
