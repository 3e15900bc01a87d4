"""Findings about OpenAPI documents."""

from pathlib import Path

from pydantic import JsonValue

from engine.making.openapi.documents.document import DocumentRefused, OpenApiDocument
from engine.making.openapi.documents.reading import DocumentReader
from engine.making.openapi.documents.servers import server_fault
from engine.making.openapi.operations import ReadOperations, operations_of
from engine.runtimes.environments.failures import ScriptFailure
from toolagent.contracts.making import Finding, FindingKind, Inspection

_MOST_NAMED = 3
_MOST_TOLD = 500


def document_finding(path: str, document: OpenApiDocument) -> Finding:
    """Raises DocumentRefused. Blocks."""
    read = operations_of(document)
    count = len(read.operations)
    details: dict[str, JsonValue] = {"version": document.version, "title": document.title, "operations": count}
    if document.server_url:
        details["server_url"] = document.server_url
    if fault := _without_tools(read) or server_fault(document):
        details["fault"] = fault
    summary = f"OpenAPI {document.version}, {document.title!r}: {count} operations can be tools, {len(read.left_out)} cannot."
    return Finding(kind=FindingKind.OPENAPI, path=path, summary=summary[:_MOST_TOLD], details=details)


def refused_document(path: str, why: str) -> Finding:
    summary = f"An OpenAPI document that cannot be used: {why}"
    return Finding(kind=FindingKind.OPENAPI, path=path, summary=summary[:_MOST_TOLD], details={"refused": why})


def unread_document(path: str) -> Finding:
    """A large document, or one in several files, which is read later."""
    return Finding(kind=FindingKind.OPENAPI, path=path, summary="An OpenAPI document.", details={"unread": True})


async def read_documents(inspection: Inspection, repository: Path, reader: DocumentReader) -> Inspection:
    """Replaces the findings of unread documents; large documents are read in the sandbox."""
    findings = [await _read(one, repository, reader) if "unread" in one.details else one for one in inspection.findings]
    # Documents that cannot be used come last.
    findings.sort(key=lambda one: one.kind is FindingKind.OPENAPI and "refused" in one.details)
    return inspection.model_copy(update={"findings": tuple(findings)})


async def _read(finding: Finding, repository: Path, reader: DocumentReader) -> Finding:
    try:
        return document_finding(finding.path, await reader.read(repository, finding.path))
    except (DocumentRefused, ScriptFailure) as refusal:
        return refused_document(finding.path, str(refusal))


def _without_tools(read: ReadOperations) -> str:
    """Why no operation can be a tool; empty if one can."""
    if read.operations:
        return ""
    if not read.left_out:
        return "It describes no operation."
    named = " ".join(map(str, read.left_out[:_MOST_NAMED]))
    more = len(read.left_out) - _MOST_NAMED
    return f"None of its operations can be a tool. {named}{f' And {more} more.' if more > 0 else ''}"
