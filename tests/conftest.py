"""Nothing that one run leaves behind may help or hurt the next: no server, no artifact cache."""

from __future__ import annotations

import os

os.environ["TILEC_SERVER"] = "off"
os.environ["TILEC_CACHE"] = "off"
