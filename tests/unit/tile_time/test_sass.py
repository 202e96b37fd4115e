"""Listings of nvdisasm, loop nests, lines of PTX."""

from __future__ import annotations

from tile_time.flow import find_loops
from tile_time.ptx import one_instruction_a_line
from tile_time.sass.code import parse

LISTING = """
	.section	.text.k,"ax",@progbits
k:
.text.k:
	//## File ".nv_debug_ptx_txt", line 5
        /*0000*/    LDC R1, c[0x0][0x28] ;    /* 0x00000a00ff017b82 */
    /* 0x000fe20000000800 */
.L_x_1:
	//## File ".nv_debug_ptx_txt", line 22
        /*0010*/    LDG.E R4, desc[UR4][R2.64] ;    /* 0x0000000402047981 */
    /* 0x000ea8000c1e1900 */
        /*0020*/    @!P0 FADD R4, R4, R5 ;    /* 0x0000000504047221 */
    /* 0x004fc80000000000 */
        /*0030*/    @!P1 BRA `(.L_x_1) ;    /* 0xfffffffc00c49947 */
    /* 0x000fec000383ffff */
        /*0040*/    EXIT ;    /* 0x000000000000794d */
    /* 0x000fea0003800000 */
.L_x_6:
        /*0050*/    BRA `(.L_x_6);    /* 0xfffffffc00fc7947 */
    /* 0x000fc0000383ffff */
        /*0060*/    NOP;    /* 0x0000000000007918 */
    /* 0x000fc00000000000 */
"""


def test_instructions_have_their_schedule_and_their_line() -> None:
    kernel = parse(LISTING)["k"]
    assert [s.opcode for s in kernel.code] == ["LDC", "LDG.E", "FADD", "BRA", "EXIT"]
    load, add, branch = kernel.code[1:4]
    assert (load.line, load.stall, load.write, load.read, load.wait) == (22, 4, 2, 7, 0)
    assert (add.guard, add.stall, add.wait) == ("@!P0", 4, 1 << 2)
    assert kernel.target(branch) == 1
    assert kernel.has_lines


def test_loops_nest() -> None:
    #        0 -> 1 -> 2 -> 3 -> 4, 3 -> 2 (inner), 4 -> 1 (outer), 4 -> 5
    loops = find_loops([[1], [2], [3], [2, 4], [1, 5], []])
    assert [loops.inner[n] >= 0 for n in range(6)] == [False, True, True, True, True, False]
    outer, inner = loops.inner[1], loops.inner[2]
    assert loops.parent[inner] == outer
    assert loops.depth[inner] == 2
    assert loops.inner[3] == inner
    assert loops.contains(outer, inner)
    assert not loops.contains(inner, outer)


def test_a_block_of_its_own_is_a_loop_only_if_it_goes_round() -> None:
    assert find_loops([[0, 1], []]).inner == (0, -1)
    assert find_loops([]).inner == ()


def test_instructions_get_lines_of_their_own() -> None:
    text = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k() {
.reg .b32 %r<3>; mov.u32 %r1, 1; { mov.u32 %r2, %r1; }
ret; }
"""
    made, broken = one_instruction_a_line(text)
    assert [line.strip() for line in made.splitlines()[4:]] == [
        ".reg .b32 %r<3>;", "mov.u32 %r1, 1; {", "mov.u32 %r2, %r1; }", "ret; }",
    ]  # fmt: skip
    assert broken == (6, 7)
    assert one_instruction_a_line(made) == (made, ())
