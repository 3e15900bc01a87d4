"""`*.tool.json`: parses and writes one version of a tool per file."""

import json
from functools import lru_cache

from pydantic import JsonValue

from engine.registry.formats.state import Document, KeptVersion
from engine.registry.services import UnknownMethodError, method_of
from engine.validation.references import SchemaNotFollowedError, written_out
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import ScriptSource
from toolagent.contracts.tool_files import ServiceMethod, ToolFile
from toolagent.core.catalog.tool_files import SUFFIX, FileFault, ReadToolFile, manifest_of, read_tool_file
from toolagent.validation.tool_rules import ToolRules

FILE_NAME = f"*{SUFFIX}"
FOLDER = "tools"
"""The default folder for tool files, in the data folder."""


_RULES = ToolRules()


# Cached, because an edit of one file reads all the others again.
@lru_cache(maxsize=4096)
def read(text: str) -> ReadToolFile:
    """Parse a file, without looking at other files."""
    found = read_tool_file(text, _RULES)
    if found.file is None:
        return found
    faults = tuple(_faults_here(found, found.file))
    return ReadToolFile(None, found.value, faults, found.document) if faults else found


def manifest_in(file: ToolFile) -> ToolManifest:
    """The manifest of a file that was read without faults."""
    of_handler = method_of(file.handler).of_tool if isinstance(file.handler, ServiceMethod) else dict[str, JsonValue]()
    manifest = manifest_of(file, **of_handler)
    schemas = {"input_schema": written_out(manifest.input_schema), "output_schema": written_out(manifest.output_schema)}
    return manifest.model_copy(update=schemas)


def dump(kept: KeptVersion) -> Document:
    """The file as it was, except for later decisions. A script's folder becomes its archive in the content store."""
    document: Document = dict(kept.raw) if isinstance(kept.raw, dict) else {}
    status = kept.entry.manifest.status
    before = ToolFile.model_validate_json(json.dumps(document), strict=True).status
    if status is not before:
        document["status"] = status.value
    source, handler = next(iter(kept.entry.sources), None), document.get("handler")
    if isinstance(source, ScriptSource) and source.content is not None and isinstance(handler, dict):
        document["handler"] = {**handler, "scriptPath": source.script_path, "content": source.content}
    return document


def file_name_of(manifest: ToolManifest) -> str:
    """The path in a data folder: a safe file name per version."""
    return f"{FOLDER}/{manifest.tool_id.replace(':', '.')}@{manifest.version}{SUFFIX}"


def _faults_here(found: ReadToolFile, file: ToolFile) -> list[FileFault]:
    faults: list[FileFault] = []
    if isinstance(file.handler, ServiceMethod):
        try:
            method_of(file.handler)
        except UnknownMethodError as error:
            return [found.fault(("handler", error.field), str(error))]
    for name, schema in (("parameters", file.parameters), ("output", file.output)):
        try:
            written_out(schema)
        except SchemaNotFollowedError as error:
            faults.append(found.fault((name,), f"{error} ({error.path})"))
    return faults
