"""`tilec lsp`: a language server for editors."""

from __future__ import annotations

from typing import Any

import rich_click as click

from tile_core.cli.arguments import completing
from tile_core.diagnostics import ConfigurationError


@click.command("lsp")
@click.option("--gpu-name", default="sm_100", show_default=True, metavar="SM",
              shell_complete=completing("target"),
              help="GPU that pipelines and programs are checked for.")  # fmt: skip
@click.pass_obj
def lsp(app: Any, gpu_name: str) -> None:
    """Serve editors over standard input and output: Tile IR text, textual MLIR, pipeline files.

    Errors as one types, what a name under the cursor is, and where it is defined.
    """
    try:
        from tile_core.lsp.server import make_server
    except ImportError as error:
        raise ConfigurationError(
            f"the language server needs a package that is missing: {error.name}",
            hint="pip install 'tilec[lsp]'",
        ) from error
    app.registry.target(gpu_name)
    make_server(app.registry, gpu_name).start_io()
