"""Digests of `hashlib`, which is loaded when one is asked for: with it comes OpenSSL, 4 ms."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hashlib import _Hash


def sha256(data: bytes = b"") -> _Hash:
    """A SHA-256 of `data`, to which more can be added."""
    import hashlib

    return hashlib.sha256(data)


def md5(data: bytes) -> str:
    """The MD5 of `data` in hexadecimal, for what only asks for a name."""
    import hashlib

    return hashlib.md5(data, usedforsecurity=False).hexdigest()
