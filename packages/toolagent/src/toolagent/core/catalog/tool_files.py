"""Validates a `*.tool.json`, for the service and for its author."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol

from pydantic import JsonValue, TypeAdapter, ValidationError

from toolagent.contracts.calls import ValidationIssue
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sandbox import HostPattern
from toolagent.contracts.tool_files import ExternalScript, ToolFile
from toolagent.core.catalog.commented_json import CommentedJson, NotJsonError, Place, Step, parse_commented
from toolagent.core.catalog.tool_file_fields import meant
from toolagent.core.json_paths import json_path, referenced
from toolagent.core.schemas import mentions, with_defaults

__all__ = [
    "CAPABILITIES",
    "SUFFIX",
    "FileFault",
    "ReadToolFile",
    "Rules",
    "manifest_of",
    "read_tool_file",
    "tool_file_schema",
    "unsafe_script_path",
]

SUFFIX = ".tool.json"
CAPABILITIES: Mapping[str, str] = {}
"""Capabilities for `requiredCapabilities`, with their meaning. None so far: files, hosts, environment and limits have fields."""

_HOST: TypeAdapter[str] = TypeAdapter(HostPattern)
_MAX_FAULTS = 20
_MAX_STRANGERS = 50
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_NOT_IN_A_PATH = re.compile(r"[\x00-\x1f\x7f\\\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_FREE = frozenset({"parameters", "output", "examples"})
"""Keys with the tool's own values, whose names are not checked."""


class Rules(Protocol):
    """Checks that need optional libraries."""

    def schema_faults(self, schema: JsonSchema) -> Iterable[ValidationIssue]:
        """Faults of a document as a JSON Schema, by path (`$.properties.x`)."""
        ...

    def issues_of(self, schema: JsonSchema, value: JsonValue) -> Iterable[ValidationIssue]:
        """Faults of a value against a usable schema, by path."""
        ...

    def range_fault(self, wanted: str) -> str | None:
        """Why a text is neither a version nor a range."""
        ...


@dataclass(frozen=True, slots=True)
class FileFault:
    """`path` is a JSON path, `place` its line and column, or those of the nearest value around it."""

    path: str
    reason: str
    place: Place


@dataclass(frozen=True, slots=True)
class ReadToolFile:
    """A parsed file; `file` is None if there are faults. `value` is its JSON without comments."""

    file: ToolFile | None
    value: dict[str, JsonValue]
    faults: tuple[FileFault, ...]
    document: CommentedJson | None = None

    def fault(self, path: Sequence[Step], reason: str) -> FileFault:
        """A fault that depends on more than the file."""
        place = self.document.place_of(path) if self.document else Place(1, 1)
        return FileFault(json_path(path), reason, place)


def read_tool_file(text: str, rules: Rules) -> ReadToolFile:
    """Parses the file and finds all its own faults. Does not look for its script and dependencies."""
    try:
        document = parse_commented(text)
    except NotJsonError as error:
        return ReadToolFile(None, {}, (FileFault("$", str(error), error.place),))
    value = document.value
    if not isinstance(value, dict):
        return ReadToolFile(None, {}, (FileFault("$", "The file must hold a JSON object.", document.place_of(())),))
    found = [*_unstorable(value, ())] or [*_faults(value, rules)]
    faults = tuple(FileFault(json_path(path), reason, document.place_of(path)) for path, reason in found[:_MAX_FAULTS])
    if len(found) > _MAX_FAULTS:
        faults += (FileFault("$", f"{len(found) - _MAX_FAULTS} more things are wrong with this file.", document.place_of(())),)
    return ReadToolFile(None if faults else _parsed(value), value, faults, document)


def manifest_of(file: ToolFile, **of_handler: object) -> ToolManifest:
    """The manifest for the registry; `of_handler` has the defaults of its handler."""
    names = ToolManifest.model_fields.keys() & (file.model_fields_set | of_handler.keys())
    said = {name: getattr(file, name) for name in names & ToolFile.model_fields.keys() if name in file.model_fields_set}
    described = {"name": file.display_name, "input_schema": file.parameters, "output_schema": file.output}
    return ToolManifest.model_validate({**of_handler, **said, **described} | ({"timeout_s": file.timeout_s} if file.timeout_s else {}))


def tool_file_schema() -> JsonSchema:
    """The JSON Schema of a `*.tool.json`."""
    schema = ToolFile.model_json_schema(by_alias=True)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "*.tool.json",
        "$comment": "Besides this: `//` comments, `examples[].input` fits `parameters`, capabilities, scripts and methods are known.",
        **{key: part for key, part in schema.items() if key != "title"},
    }


def unsafe_script_path(path: str) -> str | None:
    """Why a script path is unsafe, whatever is on the disk."""
    if path.startswith(("/", "~")) or re.match(r"[A-Za-z]:", path):
        return "A script's path is relative to the folder of the file, or to the script root."
    if _NOT_IN_A_PATH.search(path):
        return "A script's path has only visible characters, and / between its parts."
    if ".." in path.split("/") or PurePosixPath(path).name in ("", ".", ".."):
        return "A script's path leads to a file below the folder: no part of it may be `..`."
    return None


def _leads_out(pattern: str) -> bool:
    return ".." in pattern.split("/") or _NOT_IN_A_PATH.search(pattern) is not None


def _parsed(value: dict[str, JsonValue]) -> ToolFile:
    # From JSON, so that a list can be a tuple although "1" is no number.
    return ToolFile.model_validate_json(json.dumps(value), strict=True)


Found = tuple[tuple[Step, ...], str]


def _faults(value: dict[str, JsonValue], rules: Rules) -> Iterator[Found]:
    schema = tool_file_schema()
    try:
        file = _parsed(value)
    except ValidationError as error:
        for issue in error.errors(include_url=False, include_input=False):
            yield _path_in(value, issue["loc"]), "This is required." if issue["type"] == "missing" else issue["msg"]
        yield from _misspelled(value, schema, schema)
        return
    yield from _misspelled(value, schema, schema)
    yield from _of_schemas(file, rules)
    yield from _of_security(file)
    if isinstance(file.handler, ExternalScript):
        yield from _of_script(file.handler)
    for index, dependency in enumerate(file.dependencies):
        if reason := rules.range_fault(dependency.version):
            yield ("dependencies", index, "version"), reason
        if dependency.tool_id == file.tool_id:
            yield ("dependencies", index, "toolId"), "A tool cannot depend on itself."


def _path_in(value: JsonValue, location: Sequence[Step]) -> tuple[Step, ...]:
    """The path in the file. Pydantic adds a step for the chosen form of an object, which the file does not have."""
    path: list[Step] = []
    for step in location:
        if isinstance(value, dict) and step not in value and value.get("type") == step:
            continue
        path.append(step)
        value = _part(value, step)
    return tuple(path)


def _part(value: JsonValue, step: Step) -> JsonValue:
    if isinstance(value, dict) and isinstance(step, str):
        return value.get(step)
    return value[step] if isinstance(value, list) and isinstance(step, int) and step < len(value) else None


def _of_schemas(file: ToolFile, rules: Rules) -> Iterator[Found]:
    sound = True
    for name, schema in (("parameters", file.parameters), ("output", file.output)):
        for issue in rules.schema_faults(schema):
            sound = False
            yield (name, *(_steps(issue.path) or _innermost(schema, issue.message, rules))), issue.message
    if file.parameters.get("type", "object") != "object":
        yield ("parameters", "type"), 'The parameters of a call are an object: "object" is expected here.'
        sound = False
    for index, example in enumerate(file.examples if sound else ()):
        for issue in rules.issues_of(file.parameters, with_defaults(file.parameters, example.input)):
            yield ("examples", index, "input", *_steps(issue.path)), f"The example does not fit `parameters`: {issue.message}"


def _innermost(part: JsonValue, message: str, rules: Rules) -> tuple[Step, ...]:
    """The innermost part with the fault. For regular expressions, for example, the rules give no path."""
    steps: list[Step] = []
    while (found := next((step for step, value in _parts_of(part) if _has_fault(value, message, rules)), None)) is not None:
        steps.append(found)
        part = _part(part, found)
    return tuple(steps)


def _parts_of(part: JsonValue) -> Iterator[tuple[Step, JsonValue]]:
    if isinstance(part, dict):
        yield from part.items()
    elif isinstance(part, list):
        yield from enumerate(part)


def _has_fault(part: JsonValue, message: str, rules: Rules) -> bool:
    return mentions(part, lambda schema: any(issue.message == message for issue in rules.schema_faults(schema)))


def _of_script(handler: ExternalScript) -> Iterator[Found]:
    if reason := unsafe_script_path(handler.script_path):
        yield ("handler", "scriptPath"), reason
    if "files" in handler.model_fields_set and not handler.files:
        yield ("handler", "files"), "A pattern is expected here. Leave `files` out to give the script its whole folder."
    reason = "A pattern of files in the script's folder is expected here: `helper.py`, `lib/*.py`, `data/**`; without `..`."
    yield from _each(
        ("handler", "files"),
        handler.files,
        lambda pattern: _leads_out(pattern) or pattern.startswith(("/", "~")) or not PurePosixPath(pattern).parts,
        reason,
    )


def _of_security(file: ToolFile) -> Iterator[Found]:
    context = file.security_context
    for name, patterns in (("allowRead", context.file_access.allow_read), ("allowWrite", context.file_access.allow_write)):
        reason = "A pattern of paths is expected here: `self`, `./*`, `.cache/**`; without `..`."
        yield from _each(("securityContext", "fileAccess", name), patterns, lambda pattern: not pattern or _leads_out(pattern), reason)
    reason = "A host is expected here: `example.com`, `*.example.com`, with `:port` for another port than 80 and 443."
    yield from _each(("securityContext", "networkAccess", "allowHosts"), context.network_access.allow_hosts, _is_no_host, reason)
    for index, name in enumerate(context.required_capabilities):
        if name not in CAPABILITIES:
            known = ", ".join(CAPABILITIES) or "none"
            reason = f"There is no capability {name[:80]!r}; known: {known}."
            yield ("securityContext", "requiredCapabilities", index), reason


def _each(place: tuple[Step, ...], texts: Sequence[str], is_faulty: Callable[[str], bool], reason: str) -> Iterator[Found]:
    yield from (((*place, index), reason) for index, text in enumerate(texts) if is_faulty(text))


def _is_no_host(text: str) -> bool:
    try:
        _HOST.validate_python(text)
    except ValidationError:
        return True
    return False


def _misspelled(value: JsonValue, schema: JsonValue, root: JsonValue, path: tuple[Step, ...] = ()) -> Iterator[Found]:
    """Keys that resemble known ones, or belong elsewhere. Other unknown keys are allowed, because a later release may know them."""
    schema = _resolved(schema, value, root)
    properties = schema.get("properties")
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            yield from _misspelled(item, schema["items"], root, (*path, index))
    if not isinstance(value, dict) or not isinstance(properties, dict):
        return
    unknown = [key for key in value if key not in properties]
    for key in unknown[:_MAX_STRANGERS]:
        if (told := meant(key, properties.keys(), value.keys())) is not None:
            yield (*path, key), f"Nothing here is called {key!r}. {told}"
    for key in value.keys() & properties.keys() - (_FREE if not path else set[str]()):
        yield from _misspelled(value[key], properties[key], root, (*path, key))


def _resolved(schema: JsonValue, value: JsonValue, root: JsonValue) -> dict[str, JsonValue]:
    """The schema for the value, with references resolved; of a choice, the one for the value's `type`."""
    match schema:
        case {"discriminator": {"mapping": dict(mapping)}} if isinstance(value, dict):
            return _resolved({"$ref": mapping.get(str(value.get("type")))}, value, root)
        case {"$ref": str(reference)}:
            return _resolved(referenced(root, reference), value, root)
        case dict():
            return schema
        case _:
            return {}


def _unstorable(value: JsonValue, path: tuple[Step, ...]) -> Iterator[Found]:
    match value:
        case str() if _UNSTORABLE.search(value):
            yield path, "A text here holds NUL (\\u0000) or half a character (\\ud800 to \\udfff), which cannot be stored."
        case list():
            for index, item in enumerate(value):
                yield from _unstorable(item, (*path, index))
        case dict():
            for key, item in value.items():
                if _UNSTORABLE.search(key):
                    yield path, "A key here holds NUL (\\u0000) or half a character (\\ud800 to \\udfff), which cannot be stored."
                else:
                    yield from _unstorable(item, (*path, key))
        case _:
            return


_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")


def _steps(path: str) -> tuple[Step, ...]:
    """The steps of a path as text. A key with a dot counts as two: then the place is that of the value around it."""
    return tuple(name or int(index) for name, index in _STEP.findall(path))
