"""What runs when somebody types `tileiras`: a compile server does it, or this process."""

from __future__ import annotations

import os
import sys

from tile_core.server.client import served

#: What a server runs for a client.
ENTRY = "tile_dropin.main:run"


def main() -> None:
    """Entry point of `tileiras`."""
    code = served(ENTRY, sys.argv[0], sys.argv[1:], "on")
    if code is not None:
        os._exit(code)
    from tile_dropin.main import main as run

    run()
