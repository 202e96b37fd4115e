"""What `--version` and `--list-versions` print."""

from __future__ import annotations

#: The release of NVIDIA's tool whose command line this is; clients read "release X.Y, VX.Y.Z".
RELEASE = "13.5"


def version_text() -> str:
    """Five lines, as clients expect; caches of cubins take the whole text as their key.

    Hence the last line: digests of everything installed that decides what comes out, and of what
    `tilec doctor --gpu` found.
    """
    from tile_core.defaults import digest
    from tile_core.fingerprint import installed
    from tile_core.snapshot import remembered

    own = digest()
    return (
        "tileiras: tilec, an open compiler for CUDA Tile IR\n"
        "Copyright of the tilec authors, Apache License 2.0 with LLVM exceptions\n"
        f"tilec {remembered('tilec-version', _core_version)}\n"
        f"Cuda compilation tools, release {RELEASE}, V{RELEASE}.0\n"
        f"Build tilec.{installed()}{own and '.' + own}\n"
    )


def leave_answers(version: str, entry: str = "tile_dropin.main:run") -> None:
    """Have the compiled client say this itself, as long as nothing that is installed changes."""
    from tile_core.server.answers import keep
    from tile_core.snapshot import behind

    versions = bytecode_versions()
    texts = {"--version": version, "-version": version, "--list-versions": versions,
             "-list-versions": versions}  # fmt: skip
    keep(entry, texts, behind("fingerprint-all"))


def _core_version() -> tuple[str, tuple[()]]:
    from tile_core.plugins import core_version

    return core_version(), ()


def bytecode_versions() -> str:
    """The versions that the reader takes, oldest first, a line each."""
    from tile_cudatile.versions import SUPPORTED, version_text

    return "".join(f"{version_text(version)}\n" for version in SUPPORTED)
