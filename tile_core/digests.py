"""`hashlib.sha256`, which is loaded when it is first used: with it comes OpenSSL, 4 ms."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hashlib import _Hash


def sha256(data: bytes = b"") -> _Hash:
    """A SHA-256 of `data`, to which more can be added."""
    import hashlib

    return hashlib.sha256(data)
