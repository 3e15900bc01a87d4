"""The `<ACTION>` protocol: finds a block, reads it, writes its observation.

The caller parses the XML.
"""

import json
import re
from dataclasses import dataclass, replace

from pydantic import JsonValue

from toolagent.contracts.actions import Observation
from toolagent.contracts.calls import CallMode, ErrorType, ToolError, ToolResult, ValidationIssue
from toolagent.core.calls.results import original_type_of

__all__ = [
    "Action",
    "ActionRefused",
    "Block",
    "Element",
    "action_of",
    "block_of",
    "not_called",
    "observation_of",
    "own_failure",
    "refused",
    "started",
]

_BEGIN = re.compile(r"<ACTION(?=[\s/>])")
_EMPTY = re.compile(r"<ACTION(\s[^<>]*)?/>")
_MARK = re.compile(r"<!\[CDATA\[|<!--|</ACTION\s*>")
_CLOSED_BY = {"<![CDATA[": "]]>", "<!--": "-->"}
_PROLOG = re.compile(r"\s*(<\?xml|<!DOCTYPE)")
_DECLARATION = re.compile(r"\s*<\?xml[^<>]*\?>")

NO_DTD = "A document type declaration is refused, and with it every entity: write plain text, or <![CDATA[…]]>."
FORM = (
    'An action is <ACTION><tool_id>ID</tool_id><inputs><input name="NAME"><![CDATA[VALUE]]></input></inputs></ACTION>,'
    " or <ACTION><ID><NAME>VALUE</NAME></ID></ACTION>."
)

_EXECUTION = {"success", "outputData", "logs"}


class ActionRefused(ValueError):
    """The action is refused, and nothing is called. `kind` is an error type as the protocol writes it."""

    def __init__(self, message: str, *, kind: str = "MalformedActionError", tool_id: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.tool_id = tool_id


@dataclass(frozen=True, slots=True)
class Block:
    """The first `<ACTION>` block of a text and the text around it. `xml` is empty without a block; `more` blocks follow."""

    xml: str
    around: str
    more: int = 0


@dataclass(frozen=True, slots=True)
class Element:
    """A parsed element: `text` is all text directly in it. Only known attributes are kept."""

    tag: str
    text: str = ""
    name: str | None = None
    children: "tuple[Element, ...]" = ()
    mode: str | None = None
    callback_url: str | None = None


@dataclass(frozen=True, slots=True)
class Action:
    """A requested call, with values as written. `mode` and `callback_url` of the block mean the same as in `/run_tool`."""

    tool_id: str
    inputs: dict[str, Element]
    mode: CallMode | None = None
    callback_url: str | None = None


def block_of(text: str) -> Block:
    """The first block. Raises ActionRefused for a block without an end or a document with a DTD."""
    begin = _BEGIN.search(text)
    before = text[: begin.start()] if begin else text
    if _PROLOG.match(before):
        if "<!DOCTYPE" in before or "<!ENTITY" in before:
            raise ActionRefused(NO_DTD)
        # `match`, not `search`: a search in blanks takes quadratic time.
        declared = _DECLARATION.match(before)
        before = before[declared.end() :] if declared else before
    if begin is None:
        return Block("", before.strip())
    end = _end_of(text, begin.start())
    around = [part.strip() for part in (before, text[end:])]
    return Block(text[begin.start() : end], "\n\n".join(part for part in around if part), _blocks_after(text, end))


def action_of(root: Element) -> Action:
    """The action, in either form. Raises ActionRefused."""
    if root.mode is not None and root.mode not in set(CallMode):
        raise ActionRefused(f"The mode of an <ACTION> is {' or '.join(CallMode)}, not {root.mode[:64]!r}.")
    return replace(_asked(root), mode=CallMode(root.mode) if root.mode else None, callback_url=root.callback_url)


def _asked(root: Element) -> Action:
    _require_no_text(root)
    tags = [child.tag for child in root.children]
    if "tool_id" in tags:
        return _named(root, tags)
    if len(root.children) != 1:
        raise ActionRefused(f"The block names {'no tool' if not tags else 'several tools: ' + ', '.join(tags[:5])}. {FORM}")
    tool = root.children[0]
    _require_no_text(tool)
    return Action(tool.tag, _once([(child.tag, child) for child in tool.children], tool.tag))


def observation_of(result: ToolResult) -> Observation:
    """The observation of an ended call."""
    tool_id = result.tool_id
    if result.error is not None:
        kind = original_type_of(result.error) or _written(result.error.type)
        return refused(tool_id, kind, _message(result.error, result.validation_errors), _details(result.error))
    if (own := own_failure(result.result)) is not None:
        return refused(tool_id, *own)
    output = json.dumps(_own_output(result.result), ensure_ascii=False)
    return Observation(tool_id=tool_id, status="success", content=f"Tool {tool_id} executed successfully. Output: {output}")


def started(tool_id: str, call_id: str) -> Observation:
    """The observation of an asynchronous call."""
    content = f"Tool {tool_id} was started as task {call_id}. GET /tasks/{call_id} says how it ends."
    return Observation(tool_id=tool_id, status="success", content=content)


def not_called(more: int) -> str:
    """The note about further blocks; empty if there are none."""
    if not more:
        return ""
    which = "another <ACTION> block, which was" if more == 1 else f"{more} more <ACTION> blocks, which were"
    return f"The text has {which} not called: one is called for each text. Send it again, in a text of its own."


def refused(tool_id: str, kind: str, message: str, details: str = "") -> Observation:
    subject = f"Tool {tool_id}" if tool_id else "The action"
    more = f" Details: {details}" if details else ""
    return Observation(tool_id=tool_id, status="error", content=f"{subject} failed. Error type: {kind}. Message: {message}{more}")


def _written(kind: ErrorType) -> str:
    """An error type as the protocol writes it: `ToolNotFoundError`."""
    if kind is ErrorType.VALIDATION_ERROR:
        return "ParameterValidationError"
    return f"{kind.title().replace('_', '').removesuffix('Error')}Error"


def _blocks_after(text: str, position: int) -> int:
    """The number of complete blocks from this position on."""
    count = 0
    try:
        while begin := _BEGIN.search(text, position):
            position = _end_of(text, begin.start())
            count += 1
    except ActionRefused:
        return count
    return count


def _end_of(text: str, begin: int) -> int:
    """Where the block ends; `</ACTION>` inside CDATA or a comment does not end it."""
    if empty := _EMPTY.match(text, begin):
        return empty.end()
    position = begin
    while mark := _MARK.search(text, position):
        closing = _CLOSED_BY.get(mark.group())
        if closing is None:
            return mark.end()
        found = text.find(closing, mark.end())
        if found < 0:
            raise ActionRefused(f"The block does not end: a {mark.group()} in it is not closed by {closing}.")
        position = found + len(closing)
    raise ActionRefused("The block does not end: </ACTION> is missing.")


def _named(root: Element, tags: list[str]) -> Action:
    """`<tool_id>` and `<inputs>`."""
    others = [tag for tag in tags if tag not in {"tool_id", "inputs"}]
    if others or tags.count("tool_id") > 1 or tags.count("inputs") > 1:
        raise ActionRefused(f"Beside one <tool_id> and one <inputs> there must be nothing in the block. {FORM}")
    tool_id = next(child.text.strip() for child in root.children if child.tag == "tool_id")
    inputs = next((child for child in root.children if child.tag == "inputs"), Element("inputs"))
    _require_no_text(inputs, tool_id)
    pairs: list[tuple[str, Element]] = []
    for child in inputs.children:
        if child.tag != "input" or not child.name:
            raise ActionRefused(f'<inputs> holds <input name="NAME"> only; there is <{child.tag}>. {FORM}', tool_id=tool_id)
        pairs.append((child.name, child))
    return Action(tool_id, _once(pairs, tool_id))


def _once(pairs: list[tuple[str, Element]], tool_id: str) -> dict[str, Element]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ActionRefused(f"Input parameter {twice!r} is given more than once; a list is written with <item>.", tool_id=tool_id)
    return found


def _require_no_text(element: Element, tool_id: str = "") -> None:
    if element.text.strip():
        raise ActionRefused(f"There is text in <{element.tag}> where only elements belong. {FORM}", tool_id=tool_id)


def _message(error: ToolError, issues: tuple[ValidationIssue, ...]) -> str:
    if not issues or error.type is not ErrorType.VALIDATION_ERROR:
        return error.message
    return "; ".join(f"{_subject(issue.path)}: {issue.message}" for issue in issues[:5]) + "."


def _subject(path: str) -> str:
    return "Input parameters" if path == "$" else f"Input parameter {path.removeprefix('$.')!r}"


def _details(error: ToolError) -> str:
    details = error.details
    if not isinstance(details, dict):
        return json.dumps(details, ensure_ascii=False) if details is not None else ""
    said = details.get("details", details.get("stderr"))
    return said if isinstance(said, str) else json.dumps(details, ensure_ascii=False) if details else ""


def _own_output(output: JsonValue) -> JsonValue:
    """The script's own output, if the output is a ScriptExecutionResult; else the output unchanged."""
    if isinstance(output, dict) and output.get("success") is True and output.keys() <= _EXECUTION:
        return output.get("outputData", output)
    return output


def own_failure(output: JsonValue) -> tuple[str, str, str] | None:
    """Type, message and details of an output that reports its own failure, such as a ScriptExecutionResult."""
    error = output.get("error") if isinstance(output, dict) and output.get("success") is False else None
    if not isinstance(error, dict):
        return None
    kind, message, details = (str(error.get(name) or "") for name in ("type", "message", "details"))
    return kind or "ExecutionError", message, details
