"""Rewrites messages of the service for the command line: commands and options instead of requests and fields."""

import re

from toolagent.contracts.calls import ToolResult
from toolagent.contracts.http import Problem

__all__ = ["problem_told", "result_told", "spoken"]

_NAMED = re.compile(r"\$\.([A-Za-z_][\w-]*)")
_UPLOAD = re.compile(r"([Uu])pload (?:it|one|the file)( again)?,? with POST /files(?: and give (?:its id|the id that is answered))?")
_ID = r"([^\s/:,;)]+)"
_PHRASES: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (r"; give task_spec as an object with one: \{[^}]*\}", "; give one with --name"),
        (r"\bPOST /files takes files\b", "A file goes as NAME=@FILE"),
        (r"\bhave POST /files take what is large in it", "give what is large as a file"),
        (rf"\bPOST /tools/{_ID}/versions/{_ID}/activate", r"`toolagent activate \1 \2`"),
        (rf"\bPOST /tools/{_ID}/repair", r"`toolagent repair \1`"),
        (rf"\bPOST /tasks/{_ID}/messages", r"`toolagent task \1 --say TEXT`"),
        (rf"\bDELETE /tools/{_ID}", r"`toolagent remove \1`"),
        (rf"\bGET /tasks/{_ID}", r"`toolagent task \1`"),
        (r"\bGET /tasks\b", "`toolagent tasks`"),
        (r"\bGET /tools\b", "`toolagent tools`"),
        (rf"\bGET /groups/{_ID}/sessions", r"`toolagent group sessions \1`"),
        (r"\bGET /groups\b", "`toolagent group list`"),
        (r"\bGET /hosts\b", "`toolagent hosts list`"),
        (r"\bGET /external_tools\b", "`toolagent external list`"),
        (r"\bGET /mcp_servers\b", "`toolagent mcp list`"),
        (r"\bGET /chats lists them, POST /chat opens one", "`toolagent chat MESSAGE` opens one"),
        (r"\bPOST /create_tool builds one", "`toolagent create` builds one"),
        (r"\bunder the same Idempotency-Key\b", "with the same --key"),
        (r"\bwith this Idempotency-Key\b", "with this --key"),
        (r"Idempotency-Key", "--key"),
        (r"task_spec\.tool_name", "--name"),
        (r"task_spec\.repo_url", "--repo"),
        (r"task_spec\.runtime", "--runtime"),
        (r"task_spec\.examples", "--example"),
        (r"task_spec\.description", "the description"),
    )
)


def spoken(text: str) -> str:
    """The text with commands and options instead of requests and fields. A file is uploaded by `NAME=@FILE`."""
    named = _NAMED.search(text)
    text = _UPLOAD.sub(rf"\1pload it\2 by {named.group(1) if named else 'NAME'}=@FILE", text)
    for pattern, words in _PHRASES:
        text = pattern.sub(words, text)
    return text


def result_told(result: ToolResult) -> str:
    """The error of a call, without repetitions."""
    message = result.error.message if result.error else "The call failed and does not say why."
    issues = [f"{issue.path}: {issue.message}" for issue in result.validation_errors]
    return spoken(_once(message, issues))


def problem_told(problem: Problem) -> str:
    """The error of a request, without repetitions."""
    return spoken(_once(problem.detail, [f"{issue.field}: {issue.message}" for issue in problem.errors]))


def _once(message: str, issues: list[str]) -> str:
    """The message and the issues. Issues that the message already contains are listed once."""
    if len(issues) == 1 and (issues[0] in message or issues[0].partition(": ")[2] in message):
        return message
    beginning = next((message.partition(f": {issue}")[0] for issue in issues if f": {issue}" in message), message)
    head = f"{beginning}:" if beginning != message else message
    return "\n".join((head, *(f"  {issue}" for issue in issues))) if issues else message
