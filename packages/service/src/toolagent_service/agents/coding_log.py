"""Lines of the coding log: each event is one line, whatever a model writes."""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import JsonValue

from toolagent.contracts.making import TaskNoteKind
from toolagent.core.calls.masking import DEEPEST, masked_params, masked_text

LOGGER = "tool_agent.tool.agent"

LONGEST_LINE = 2_000
_ERROR = "error: "
_LONGEST_VALUE = 200
_BREAKS = re.compile(r"\s+")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class NewNote:
    """A line to write. `key` identifies the event within its task; a repetition changes nothing."""

    key: str
    kind: TaskNoteKind
    text: str
    payload: JsonValue = None
    at: datetime | None = None


def start_line(at: datetime, task: str) -> str:
    return log_line(at, f"[CodingAgent] Starting task: {shown_text(task)}")


def text_line(at: datetime, text: str) -> str:
    """A text of the model."""
    return log_line(at, f"[TEXT] {shown_text(text)}")


def tool_use_line(at: datetime, name: str, arguments: dict[str, JsonValue]) -> str:
    return log_line(at, f"[TOOL_USE] {shown_use(name, arguments)}")


def tool_result_line(at: datetime, name: str, summary: str, *, is_error: bool = False) -> str:
    told = shown_text(summary)
    is_plain = is_error and not told.startswith(_ERROR)
    return log_line(at, f"[TOOL_RESULT] {shown_text(name)} | {_ERROR if is_plain else ''}{told}", is_error=is_error)


def done_line(at: datetime, seconds: float) -> str:
    return log_line(at, f"[DONE] duration={round(seconds * 1_000)}ms")


def cost_line(at: datetime, cost_usd: float | None) -> str:
    """`cost_usd` None: the price of the model is unknown."""
    return log_line(at, f"[COST] {'unknown' if cost_usd is None else f'${cost_usd:.2f}'}")


def turn_cost_line(
    at: datetime, tokens: int, cost_usd: float | None, task_tokens: int, task_cost_usd: float, *, is_lost: bool = False, unpriced: int = 0
) -> str:
    """The usage of one turn, and of the task so far, with `unpriced` turns of unknown price. `is_lost`: the answer broke off."""
    cost = "unknown" if cost_usd is None else f"${cost_usd:.4f}"
    known = f"${task_cost_usd:.4f}" if task_cost_usd or not unpriced else "unknown"
    more = f" and {unpriced} turns of unknown price" if task_cost_usd and unpriced else ""
    so_far = f"so far {known}{more}, {task_tokens:,} tokens"
    return log_line(at, f"[COST] {cost}, {tokens:,} tokens{' for an answer that broke off' if is_lost else ''}; {so_far}")


def log_line(at: datetime, message: str, *, is_error: bool = False) -> str:
    """`2026-03-26 15:09:32 [tool_agent.tool.agent] INFO: …`, in UTC. The message is one line and holds no control characters."""
    moment = at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f"{moment} [{LOGGER}] {'ERROR' if is_error else 'INFO'}: {shown_text(message, LONGEST_LINE)}"


def shown_use(name: str, arguments: dict[str, JsonValue]) -> str:
    """`name | {…}` with secrets masked and long values cut."""
    cut = {name: _cut(value, 1) for name, value in arguments.items()}
    values = json.dumps(masked_params({}, cut), ensure_ascii=False, separators=(",", ":"))
    return f"{shown_text(name)} | {shown_text(values, LONGEST_LINE)}"


def shown_text(text: str, longest: int = LONGEST_LINE) -> str:
    """The text on one line, with secrets masked, cut to `longest` characters with a mark."""
    # The rest is ignored, because a model's text may have megabytes.
    beginning = masked_text(text[: longest * 2])
    line = _CONTROLS.sub("�", _BREAKS.sub(" ", beginning)).strip()
    return line if len(line) <= longest and len(text) <= longest * 2 else f"{line[: longest - 1]}…"


def _cut(value: JsonValue, depth: int) -> JsonValue:
    if depth > DEEPEST:
        return "…"
    match value:
        case str():
            beginning = masked_text(value[: 2 * _LONGEST_VALUE])
            return beginning if len(value) <= _LONGEST_VALUE else f"{beginning[:_LONGEST_VALUE]}… ({len(value)} characters)"
        case dict():
            return {name: _cut(inner, depth + 1) for name, inner in value.items()}
        case list():
            return [_cut(inner, depth + 1) for inner in value]
        case _:
            return value
