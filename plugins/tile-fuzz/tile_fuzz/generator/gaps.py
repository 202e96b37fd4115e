"""What the generator can draw and the compiler refuses for now, with a clear error.

`tilec fuzz` avoids it unless `--gaps` is given, so that it does not hide what is wrong.
"""

from __future__ import annotations

#: Name for `Settings.avoid` -> what is missing.
GAPS: dict[str, str] = {
    "shape of gather view": "no index space of gather/scatter views",
}
