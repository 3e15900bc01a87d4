"""Reads task specifications from requests, and explains faults with remedies."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, islice
from urllib.parse import urlsplit

from pydantic import BaseModel, JsonValue, ValidationError

from toolagent.contracts.identifiers import TOOL_ID_PATTERN
from toolagent.contracts.making import MakeRequest
from toolagent.contracts.task_specs import LONGEST_WORDS, MOST_EXAMPLES, BuildTool, Example, GithubDeploy, MakeLimits, RepairTool
from toolagent.core.digests import digest_of
from toolagent.core.failures import TaskConflictError
from toolagent.core.suggestions import nearest

__all__ = [
    "TYPES",
    "AskedOtherwiseError",
    "SpecError",
    "SpecFault",
    "described",
    "prose_spec",
    "read_spec",
    "request_fingerprint",
    "request_key",
    "subject_of",
    "task_id_for",
    "tool_name_from",
]

Spec = GithubDeploy | BuildTool | RepairTool

TYPES: Mapping[str, type[GithubDeploy] | type[BuildTool] | type[RepairTool]] = {
    "github_deploy": GithubDeploy,
    "build_tool": BuildTool,
    "repair_tool": RepairTool,
}
_MOST_FAULTS = 50
_MOST_SAID = 3
_NAME_WORDS = 4
_NAME_LENGTH = 64
_LEFT_OUT = frozenset(
    {"a", "an", "and", "for", "from", "i", "in", "it", "me", "need", "of", "please", "that", "the", "to", "tool", "which", "with"}
)
_FORMS = {
    "tuple_type": "It must be a list",
    "string_too_long": f"It may have at most {LONGEST_WORDS:,} characters",
    "dict_type": "It must be an object",
    "model_type": "It must be an object",
}
"""Messages in terms of JSON, by pydantic's type of error."""
_LISTS: Mapping[tuple[int | str, ...], str] = {
    ("examples",): '[{"input": {…}, "expected_output": …}]',
    ("operations",): '["getPet", "pets*"]',
    ("hosts",): '["api.example.com"]',
}

_ID_FORM = "small letters, digits, _ and -, beginning with a letter"
_STATED = (
    f"it is made of the first {_NAME_WORDS} words in Latin letters of the description, small words left out, and there is no such word here"
)


@dataclass(frozen=True, slots=True)
class SpecFault:
    """One fault: its place (a dotted path into the request), and what is wrong, with the remedy."""

    field: str
    message: str


class SpecError(ValueError):
    """An invalid task. The first `faults` are kept; the message has the first one."""

    def __init__(self, *faults: SpecFault) -> None:
        self.faults = faults[:_MOST_FAULTS]
        said = "; ".join(f"{fault.field}: {fault.message}" for fault in faults[:_MOST_SAID])
        further, least = len(self.faults) - _MOST_SAID, "at least " if len(faults) > _MOST_FAULTS else ""
        super().__init__(f"{said} (and {least}{further} more)" if further > 0 else said)


class AskedOtherwiseError(TaskConflictError):
    """The task with this id was started as `asked`."""

    def __init__(self, asked: MakeRequest) -> None:
        super().__init__(asked.task_id)
        self.asked = asked


def read_spec(given: Mapping[str, JsonValue], description: str = "", place: str = "task_spec") -> Spec:
    """Reads a specification. `description` is used if it has none of its own. Raises SpecError.

    `place` is its path in the request, for messages; empty: it is the whole request.
    """
    kind = given.get("type")
    if not isinstance(kind, str) or kind not in TYPES:
        raise SpecError(SpecFault(_at(place, "type"), _no_such_type(kind)))
    examples = given.get("examples")
    if isinstance(examples, list) and len(examples) > MOST_EXAMPLES:
        raise SpecError(SpecFault(_at(place, "examples"), f"There are more than {MOST_EXAMPLES}."))
    model = TYPES[kind]
    found = chain(_lacking(kind, given, description, place), _unknown_fields(model, given, place))
    # One more than is kept, to know that there are more. Finding similar names for thousands of faults would take seconds.
    faults = [*islice(found, _MOST_FAULTS + 1)]
    whole = {**given, "description": given.get("description") or description}
    try:
        spec = model.model_validate(whole)
    except ValidationError as error:
        told = {fault.field for fault in faults}
        formal = [
            _fault_of(_at(place, *one["loc"]), one["loc"], _FORMS.get(one["type"], one["msg"]), one["input"], whole)
            for one in error.errors()
        ]
        raise SpecError(*faults, *(fault for fault in formal if fault.field not in told)) from error
    if faults or (faults := [*_address_faults(spec, place)]):
        raise SpecError(*faults)
    return spec


def prose_spec(prose: str, description: str = "", name: str | None = None) -> BuildTool:
    """The specification of a tool that is described in plain text.

    Without a `name`, the first four words in Latin letters of the description (or of the prose) make it, without small words.
    Raises SpecError where there are none, or too many.
    """
    whole = "\n\n".join(dict.fromkeys(part for part in (description.strip(), prose.strip()) if part))
    if not whole:
        raise SpecError(SpecFault("task_spec", "There is neither a description nor a repository: say what the tool is to do."))
    if len(whole) > LONGEST_WORDS:
        raise SpecError(SpecFault("task_spec", f"It may have at most {LONGEST_WORDS:,} characters together with the description."))
    name = name or tool_name_from(description) or tool_name_from(prose)
    if name is None:
        remedy = 'give task_spec as an object with one: {"type": "build_tool", "tool_name": "word_counter", "description": "…"}'
        raise SpecError(SpecFault("task_spec.tool_name", f"No name follows from the words ({_STATED}); {remedy}."))
    return BuildTool(tool_name=name, description=whole)


def tool_name_from(words: str) -> str | None:
    """The tool id that a description gives: `Count the words of a text` is `count_words_text`. None when it has no Latin letters."""
    found = [word for word in re.findall(r"[a-z0-9]+", words.lower()) if word not in _LEFT_OUT]
    while found and not found[0][0].isalpha():
        found.pop(0)
    return "_".join(found[:_NAME_WORDS])[:_NAME_LENGTH].rstrip("_") or None


def subject_of(spec: Spec) -> str:
    """The id of the tool to make or repair."""
    return spec.tool_id if isinstance(spec, RepairTool) else spec.tool_name


def request_key(caller_id: str | None, key: str | None) -> str:
    """The stored form of an idempotency key, different for each caller. Empty without a key."""
    return "" if key is None else digest_of(caller_id, key)


def task_id_for(spec: Spec, key: str, attempt: int) -> str:
    """The task id for a hashed key; later attempts give other ids, in case another key has the first."""
    digest = hashlib.sha256(f"{key}/{attempt}".encode()).hexdigest()
    return f"{'repair' if isinstance(spec, RepairTool) else 'create'}_{digest[:8]}"


def described(request: MakeRequest) -> str:
    """The description of the request, or else of the specification."""
    return request.description or request.spec.description


def request_fingerprint(request: MakeRequest) -> str:
    """Equal for two requests that are the same task."""
    content = [request.key, request.description, request.spec.model_dump(mode="json"), request.caller.caller_id]
    text = json.dumps(content, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _no_such_type(kind: JsonValue) -> str:
    there_are = f"there are {', '.join(TYPES)}"
    if kind is None:
        return f"It is missing; {there_are}."
    near = nearest(kind, TYPES, 1) if isinstance(kind, str) else ()
    return f"There is no type {str(kind)[:64]!r}; {there_are}.{f' Did you mean {near[0]}?' if near else ''}"


def _at(place: str, *path: int | str) -> str:
    return ".".join((*filter(None, (place,)), *(str(part) or "''" for part in path)))


def _lacking(kind: str, given: Mapping[str, JsonValue], description: str, place: str) -> Iterator[SpecFault]:
    """Missing fields, with better messages than pydantic's."""
    told = given.get("description") or description
    if kind == "github_deploy" and not given.get("repo_url"):
        remedy = "give the address of the repository, or type build_tool with a description"
        yield SpecFault(_at(place, "repo_url"), f"It is missing: {remedy}.")
    if kind == "build_tool" and not told:
        remedy = "say what the tool is to do, or give a repo_url with type github_deploy"
        yield SpecFault(_at(place, "description"), f"It is missing: {remedy}.")
    if kind != "repair_tool" and not given.get("tool_name"):
        name = tool_name_from(str(told or ""))
        yield SpecFault(_at(place, "tool_name"), f"It is missing: {_ID_FORM}{f', such as {name!r}' if name else ''}.")


def _unknown_fields(model: type[BaseModel], given: Mapping[str, JsonValue], place: str) -> Iterator[SpecFault]:
    """Unknown fields. Contracts ignore them, but a misspelt wish must not be ignored."""
    for name, value in given.items():
        if name not in model.model_fields:
            near = nearest(name[:64], model.model_fields, 1)
            hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(model.model_fields)}."
            yield SpecFault(_at(place, name[:64]), f"There is no such field. {hint}")
        elif name == "limits" and isinstance(value, dict):
            yield from _unknown_fields(MakeLimits, value, _at(place, "limits"))
        elif name == "examples" and isinstance(value, list):
            for number, example in enumerate(value):
                if isinstance(example, dict):
                    yield from _unknown_fields(Example, example, _at(place, "examples", number))


def _fault_of(field: str, location: tuple[int | str, ...], message: str, value: object, whole: Mapping[str, JsonValue]) -> SpecFault:
    if location in {("tool_name",), ("tool_id",)} and isinstance(value, str):
        near = tool_name_from(value) or tool_name_from(str(whole.get("description", "")))
        such = f"; {near!r} would do" if near and re.fullmatch(TOOL_ID_PATTERN, near) else ""
        return SpecFault(field, f"{value[:64]!r} is no id of a tool: {_ID_FORM}{such}.")
    if location == ("ref",) and isinstance(value, str):
        return SpecFault(field, f"{value[:64]!r} is no branch, tag or commit: letters, digits and . _ / + - only, a letter or digit first.")
    if location in _LISTS and not isinstance(value, list):
        return SpecFault(field, f"It must be a list, such as {_LISTS[location]}.")
    return SpecFault(field, f"{message}.")


def _address_faults(spec: Spec, place: str) -> Iterator[SpecFault]:
    """Faults of the repository URL. It must contain no password, because it is stored in logs and histories."""
    if not isinstance(spec, GithubDeploy):
        return
    try:
        parts = urlsplit(spec.repo_url)
    except ValueError as error:
        yield SpecFault(_at(place, "repo_url"), f"It is no address: {error}.")
        return
    if ":" not in spec.repo_url:
        remedy = (
            "Write it whole: https://host/owner/name or git@host:owner/name. A git repository on the service's own machine is "
            "file:///folder, where TOOL_AGENT_REPO_SCHEMES has file"
        )
        yield SpecFault(_at(place, "repo_url"), f"This is no address of a repository. {remedy}.")
    if parts.password or (parts.username and parts.scheme in {"http", "https"}):
        remedy = "leave it out; what is not open to everybody is cloned over ssh (git@host:owner/name) with the service's own key"
        yield SpecFault(_at(place, "repo_url"), f"There is a user name or password in it, which would be kept in logs: {remedy}.")
