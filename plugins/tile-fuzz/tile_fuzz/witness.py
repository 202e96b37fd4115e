"""Other compilers whose code random programs are run through, too."""

from __future__ import annotations

#: Their names, as `--witness` takes them.
WITNESSES = ("tileiras",)
#: The kind of failure of a program that a witness does not compile.
REFUSED = "refused"
