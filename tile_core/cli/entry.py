"""What runs when somebody types `tilec`: a compile server if one is there, else the command line.

Only `tilec compile` goes to a server, and only to one that runs already (`tilec serve`).
"""

from __future__ import annotations

import os
import sys

from tile_core.server.client import served

#: Verbs that a server may run.
_SERVED = ("compile",)
ENTRY = "tile_core.cli.main:run_as"


def main() -> None:
    """Entry point of `tilec`."""
    if sys.argv[1:2] and sys.argv[1] in _SERVED:
        code = served(ENTRY, sys.argv[0], sys.argv[1:], "running")
        if code is not None:
            os._exit(code)
    from tile_core.cli.main import main as run

    run()
