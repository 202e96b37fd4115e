"""The protocol: what `documents` finds, said to an editor over standard input and output."""

from __future__ import annotations

from collections.abc import Sequence

from lsprotocol import types
from pygls.lsp.server import LanguageServer

from tile_core.lsp import documents
from tile_core.plugins import core_version
from tile_core.registry import Registry


def make_server(registry: Registry, target: str) -> LanguageServer:
    """A server that checks texts for `target` and knows what `registry` has."""
    server = LanguageServer("tilec", core_version())

    def check(uri: str) -> None:
        document = server.workspace.get_text_document(uri)
        found = documents.problems(document.source, document.path, registry, target)
        diagnostics = [_diagnostic(problem, document.lines) for problem in found]
        server.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, diagnostics))

    @server.feature(types.TEXT_DOCUMENT_DID_OPEN)
    def opened(params: types.DidOpenTextDocumentParams) -> None:
        check(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    def changed(params: types.DidChangeTextDocumentParams) -> None:
        check(params.text_document.uri)

    @server.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(params: types.HoverParams) -> types.Hover | None:
        document = server.workspace.get_text_document(params.text_document.uri)
        at = params.position
        text = documents.hover(document.source, at.line, at.character, registry)
        if not text:
            return None
        return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, f"```text\n{text}\n```"))

    @server.feature(types.TEXT_DOCUMENT_DEFINITION)
    def definition(params: types.DefinitionParams) -> types.Location | None:
        uri = params.text_document.uri
        document = server.workspace.get_text_document(uri)
        at = params.position
        place = documents.definition(document.source, at.line, at.character, registry)
        if place is None:
            return None
        start = types.Position(place.line, 0)
        there = uri if place.file is None else place.file.resolve().as_uri()
        return types.Location(there, types.Range(start, start))

    return server


def _diagnostic(problem: documents.Problem, lines: Sequence[str]) -> types.Diagnostic:
    length = len(lines[problem.line].rstrip()) if problem.line < len(lines) else 0
    start = types.Position(problem.line, problem.column)
    end = types.Position(problem.line, max(problem.column + 1, length))
    return types.Diagnostic(
        types.Range(start, end), problem.message, types.DiagnosticSeverity.Error, source="tilec"
    )
