"""A row of speed_rows.py as a program: `tilec time --gpu G --cutile one_row.py -- ROW SMS`."""

from __future__ import annotations

import sys
from pathlib import Path


def main(name: str, sms: str) -> None:
    """Launch the row on as many multiprocessors."""
    here = Path(__file__).resolve().parent
    sys.path[:0] = [str(here), str(here.parent / "examples")]
    import cuda.tile as ct
    from speed import kernel_of
    from speed_rows import ROWS

    row = next(row for row in ROWS if row.name == name)
    launch = row.launch(int(sms))
    ct.launch(None, launch.grid, kernel_of(row, None), launch.arguments)


if __name__ == "__main__":
    main(*sys.argv[1:])
