"""What `tilec check` prints of findings: one for each line of the program and kind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tile_sim.cli import check
from tile_sim.errors import Where
from tile_sim.findings import by_line
from tile_sim.machine.monitor import Finding

from tile_core.cli.main import Application

#: All threads store to the same four words: at line 7 by three instructions, at line 9 by one.
RACES = """
.version 8.0
.target sm_90
.address_size 64
.file 1 "program.py"
.visible .entry k(.param .u64 p)
{
.reg .b64 %rd<2>;
.reg .b32 %r<2>;
ld.param.u64 %rd1, [p];
mov.u32 %r1, %tid.x;
.loc 1 7 5
st.global.u32 [%rd1], %r1;
st.global.u32 [%rd1+4], %r1;
.loc 1 7 20
st.global.u32 [%rd1+8], %r1;
.loc 1 9 5
st.global.u32 [%rd1+12], %r1;
ret;
}
"""


def checked(tmp_path: Path, *options: str) -> Result:
    path = tmp_path / "k.ptx"
    path.write_text(RACES)
    launch = ["--grid", "1", "--block", "64", "--arg", "u32[4]=zeros"]
    arguments = [str(path), *launch, *options]
    return CliRunner().invoke(check, arguments, obj=Application(), standalone_mode=False)


def test_one_finding_for_each_line_of_the_program(tmp_path: Path) -> None:
    result = checked(tmp_path)
    assert result.return_value == 5
    _, seven, nine, last = result.output.splitlines()
    assert seven.startswith("ptx:13:1 (program.py:7:5): race: several warps write the same global")
    assert seven.endswith(" [96 times; the first of 3 instructions of this line]")
    assert nine.startswith("ptx:18:1 (program.py:9:5): race: ")
    assert "instructions" not in nine
    assert last == "2 findings, of 4 instructions (--json lists them)"


def test_json_has_them_all(tmp_path: Path) -> None:
    records = json.loads(checked(tmp_path, "--json").output)
    assert [record["where"].partition(":")[2].partition(":")[0] for record in records] == [
        "13", "14", "16", "18",
    ]  # fmt: skip
    assert all(record["count"] == 32 for record in records)  # lanes of the second warp


def finding(line: int, source: str | None, kind: str = "race", other: str | None = None) -> Finding:
    place = None if other is None else Where(99, 1, other)
    return Finding(kind, f"message {line}", Where(line, 1, source), place)


@pytest.mark.parametrize(
    "apart",
    [
        [finding(1, "a.py:3:1"), finding(2, "a.py:4:1")],
        [finding(1, "a.py:3:1"), finding(2, "a.py:3:1", kind="missing-fence")],
        [finding(1, "a.py:3:1"), finding(2, "a.py:3:1", other="a.py:5:1")],
        [finding(1, "a.py:3:1"), finding(2, "b.py:3:1")],
        [finding(1, None), finding(2, None)],
        [Finding("tmem-leak", "columns", None), Finding("tmem-leak", "others", None)],
    ],
)
def test_what_is_not_the_same_stays_apart(apart: list[Finding]) -> None:
    assert [str(line) for line in by_line(apart)] == [str(one) for one in apart]


def test_an_instruction_that_is_found_twice_counts_once() -> None:
    same = [finding(1, "a.py:3:1"), finding(1, "a.py:3:1"), finding(2, "a.py:3:9")]
    (line,) = by_line(same)
    assert (line.count, line.instructions) == (3, 2)
