"""Which pipe an opcode of SASS goes to: one table.

Names before the first dot. What is not in the table counts as an instruction of the ALU, and is
named in the report.
"""

from __future__ import annotations

from tile_sim.ptx.syntax import Instr

from tile_time.sass.code import Sass

_PIPES = {
    "fma": "FFMA FADD FMUL FFMA32I FMUL32I FADD32I FSWZADD",
    "packed": "FFMA2 FADD2 FMUL2",
    "half": "HFMA2 HADD2 HMUL2 HFMA2_MMA HADD2_32I HFMA2_32I HMUL2_32I HSET2 HSETP2",
    "imad": "IMAD IMUL IMAD32I IDP IDP4A XMAD",
    "alu": "IADD IADD3 IADD2 IADD32I LOP3 LOP LOP32I SHF SHL SHR PRMT ISETP SEL IMNMX VIMNMX "
    "VIMNMX3 LEA VIADD VIADDMNMX IABS BMSK SGXT VABSDIFF VABSDIFF4 I2FP FSEL FSET FSETP FMNMX "
    "FMNMX3 FCHK PSETP PLOP3 PSET P2R R2P MOV MOV32I CS2R ISCADD HMNMX2 VHMNMX VIMNMX16X2 "
    "IMNMX3 VOTE NOP LEPC GETLMEMBASE VIADD3",
    "convert": "F2FP",
    "convert_slow": "F2F F2I I2F FRND F2IP I2IP I2I F2FP_SLOW",
    "mufu": "MUFU",
    "popc": "POPC FLO BREV",
    "shuffle": "SHFL MATCH MOVM",
    "redux": "REDUX CREDUX",
    "fp64": "DADD DMUL DFMA DSETP DMNMX DSET",
    "uniform": "UIADD3 ULOP3 USHF UMOV UIMAD ULEA USEL UISETP UPRMT UPLOP3 UP2UR UR2UP UFLO UPOPC "
    "UBMSK USGXT UBREV UIABS UVIADD UFADD UFMUL UFFMA UFSEL UFSETP UFMNMX UI2FP UF2FP UVIMNMX "
    "VOTEU R2UR S2UR S2R UCS2R B2R UF2I UI2F UMEMSETS UPSETP USTGR UVIADDMNMX USETMAXREG "
    "UVIRTCOUNT SETCTAID SETLMEMBASE ELECT UREDUX UMOV32I UIADD64 ULOP32I USHL USHR UCLEA",
    "branch": "BRA BRX BRXU JMP JMX CALL RET EXIT BREAK BSSY BSYNC BMOV WARPSYNC YIELD KILL BPT "
    "RTT RPCMOV NANOSLEEP PREEXIT ACQBULK ENDCOLLECTIVE BRX_U UBRA CGAERRBAR ERRBAR ACQSHMINIT "
    "PMTRIG UGETNEXTWORKID WARPGROUPSET",
    "constant": "LDC ULDC LDCU",
    "load": "LDG LD",
    "store": "STG ST",
    "atomic": "ATOMG ATOM RED REDG REDAS",
    "shared_load": "LDS LDSM",
    "shared_store": "STS STSM STAS",
    "shared_atomic": "ATOMS",
    "local_load": "LDL",
    "local_store": "STL",
    "async_copy": "LDGSTS",
    "async_commit": "LDGDEPBAR UTMACMDFLUSH",
    "async_arrive": "ARRIVES",
    "scoreboard": "DEPBAR",
    "mma": "HMMA IMMA DMMA QMMA OMMA BMMA SMMA",
    "wgmma": "HGMMA QGMMA IGMMA BGMMA",
    "warpgroup": "WARPGROUP",
    "bulk": "UTMALDG UTMASTG UTMAREDG UBLKCP UBLKRED UTMACCTL UTMAPF UBLKPF",
    "mbarrier": "SYNCS",
    "barrier": "BAR",
    "cluster_barrier": "UCGABAR_ARV UCGABAR_WAIT",
    "fence": "MEMBAR FENCE CCTL CCTLL CCTLT",
    "tensor_product": "UTCHMMA UTCQMMA UTCIMMA UTCOMMA UTCMXQMMA",
    "tensor_commit": "UTCBAR",
    "tensor_load": "LDTM",
    "tensor_store": "STTM",
    "tensor_copy": "UTCCP UTCSHIFT",
    "tensor_alloc": "UTCATOMSWS",
}
KIND_OF = {op: kind for kind, ops in _PIPES.items() for op in ops.split()}

#: Kinds whose instructions are neither removed, copied nor moved out of loops, once for each
#: execution of the PTX instruction: they tell how often ptxas unrolled a loop.
ANCHORS = frozenset(
    {
        "load", "store", "atomic", "shared_load", "shared_store", "shared_atomic", "async_copy",
        "mma", "wgmma", "bulk", "barrier", "cluster_barrier", "mbarrier", "tensor_product",
        "tensor_load", "tensor_store", "mufu", "shuffle",
    }
)  # fmt: skip

#: Kinds that act on what the record has of their PTX instruction: accesses and synchronisation.
NOTED = frozenset(
    {
        "load", "store", "atomic", "shared_load", "shared_store", "shared_atomic", "async_copy",
        "async_arrive", "bulk", "mbarrier", "barrier", "tensor_product", "tensor_commit",
    }
)  # fmt: skip


def kind_of(name: str) -> str | None:
    """The kind of an opcode, None for one that is not known."""
    return KIND_OF.get(name)


_PTX = {
    "ldmatrix": "shared_load", "stmatrix": "shared_store", "mma": "mma", "bar": "barrier",
    "barrier": "barrier", "shfl": "shuffle", "ex2": "mufu", "lg2": "mufu", "tanh": "mufu",
}  # fmt: skip
_SPACES = {"shared": "shared_", "global": ""}
_ACCESSES = {"ld": "load", "st": "store", "atom": "atomic", "red": "atomic"}


def ptx_kind(ins: Instr) -> str | None:
    """The kind of SASS that an instruction of PTX becomes, where it is one of the anchors."""
    if ins.op in _ACCESSES:
        space = next(
            (m.partition("::")[0] for m in ins.mods if m.partition("::")[0] in _SPACES), ""
        )
        return f"{_SPACES[space]}{_ACCESSES[ins.op]}" if space else None
    if ins.op == "cp" and ins.mods[:1] == ("async",) and ins.mods[1:2] in (("ca",), ("cg",)):
        return "async_copy"
    if ins.op == "barrier" and ins.mods[:1] == ("cluster",):
        return "cluster_barrier"
    if ins.op == "wgmma":
        return "wgmma" if "mma_async" in ins.mods else None
    if ins.op == "tcgen05":
        return {"mma": "tensor_product", "ld": "tensor_load", "st": "tensor_store"}.get(ins.mods[0])
    return _PTX.get(ins.op)


def access_kind(ins: Instr) -> str:
    """The kind of SASS that makes the access of an instruction of PTX; generic ones are global."""
    return ptx_kind(ins) or _ACCESSES.get(ins.op, "")


#: What SASS says of accesses that take nothing from L1: ordered loads, `cp.async.cg`.
_PAST_L1 = {"load": (".STRONG.GPU", ".STRONG.SYS"), "async_copy": (".BYPASS",)}


def takes_from_l1(sass: Sass) -> bool:
    """Whether it loads what L1 may have."""
    ways = _PAST_L1.get(kind_of(sass.name) or "")
    return ways is not None and not any(way in sass.opcode for way in ways)
