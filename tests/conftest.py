"""Nothing that one run leaves behind may help or hurt the next: no server, cache, or defaults."""

from __future__ import annotations

import os

os.environ["TILEC_SERVER"] = "off"
os.environ["TILEC_CACHE"] = "off"
os.environ["TILEC_DEFAULTS"] = "off"
# Texts of tests end no process; those that may, or are about this, set it themselves.
os.environ["TILEC_REHEARSAL"] = "off"
