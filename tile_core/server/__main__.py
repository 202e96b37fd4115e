"""`python -m tile_core.server`: how clients start a server."""

from __future__ import annotations

import argparse
import sys

from tile_core.server.supervisor import Settings, serve

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="tile_core.server")
    parser.add_argument("--preload", action="append", default=[])
    sys.exit(serve(Settings.of_environment(tuple(parser.parse_args().preload))))
