"""Runs a function for a model: once if possible, and with the same outcome in all attempts."""

import asyncio
import json
from collections.abc import Iterable
from datetime import UTC, datetime

from pydantic import JsonValue
from temporalio import activity

from activities.agent_tool import AgentToolRefused, AgentToolUnavailable, Used
from activities.agents.role import AnyRole, PendingUse
from activities.attempts import attempt_key
from activities.heartbeats import beating
from engine.tasks.progress import telling
from engine.tasks.transcript import Transcript
from toolagent.contracts.making import TaskNoteKind
from toolagent.core.texts import well_formed
from toolagent_service import step_names
from toolagent_service.agents.coding_log import NewNote, shown_text, tool_result_line, tool_use_line
from toolagent_service.agents.model_notes import digest_of, key_of_use
from toolagent_service.contracts.agent import ToolNote, ToolRun
from toolagent_service.contracts.model import ToolOutcome, ToolUse

_PATIENCE = 3
"""Attempts before the model is told of an outage."""

_LONGEST_SUMMARY = 200
_LEAST_S = 1.0


class UseTool:
    """Records an outcome before it returns it. An attempt that finds one returns that."""

    def __init__(self, transcript: Transcript, roles: Iterable[AnyRole]) -> None:
        self._kept = transcript
        self._roles = {role.name: role for role in roles}

    @activity.defn(name=step_names.USE_TOOL)
    async def use_tool(self, run: ToolRun) -> ToolNote:
        """Errors of the model are outcomes. Errors of the service are raised, and Temporal retries."""
        key = key_of_use(run.position, run.tool_use_id)
        known, given = await asyncio.gather(self._known(run.conversation_id, key), self._given(run))
        if known is not None:
            return known
        begun = datetime.now(UTC)
        line = tool_use_line(begun, run.name, given)
        await self._kept.notes.write(run.conversation_id, (NewNote(f"{key}:begun", TaskNoteKind.TOOL_USE, line, None, begun),))
        async with beating() as turn, telling(self._kept.tasks, run.conversation_id, attempt_key(), turn.say) as tell:
            used, is_error = await self._done(given, PendingUse(run, key, _remaining_s(run), tell))
        return await self._told(run, key, used, is_error=is_error)

    async def _known(self, conversation_id: str, key: str) -> ToolNote | None:
        kept = await self._kept.outcomes.get(conversation_id, (key, _of_note(key)))
        return ToolNote.model_validate_json(kept[_of_note(key)].content) if len(kept) == 2 else None

    async def _given(self, run: ToolRun) -> dict[str, JsonValue]:
        (message,) = await self._kept.messages.read(run.conversation_id, run.position, run.position)
        uses = (block for block in message.content if isinstance(block, ToolUse) and block.id == run.tool_use_id)
        return next(uses).input

    async def _done(self, given: dict[str, JsonValue], use: PendingUse) -> tuple[Used, bool]:
        over = asyncio.timeout(use.remaining_s)
        try:
            async with over:
                return await self._roles[use.run.role].use(given, use), False
        except AgentToolRefused as refused:
            return _error(str(refused)), True
        except TimeoutError as error:
            if over.expired():
                return _error("The time of the whole task is over."), True
            return _told_at_last(error, f"It did not answer in time: {error or type(error).__name__}")
        except AgentToolUnavailable as failure:
            return _told_at_last(failure, str(failure))

    async def _told(self, run: ToolRun, key: str, used: Used, *, is_error: bool) -> ToolNote:
        content = well_formed(shown(used.value))
        note = ToolNote(
            tool_use_id=run.tool_use_id,
            name=run.name,
            summary=shown_text(content, _LONGEST_SUMMARY),
            is_error=is_error,
            digest=digest_of(used.value),
            size=len(content.encode()),
            product=used.product,
            tool_ids=used.tool_ids,
            task_ids=used.task_ids,
        )
        outcomes = {
            key: ToolOutcome(tool_use_id=run.tool_use_id, content=content, is_error=is_error),
            _of_note(key): ToolOutcome(tool_use_id=run.tool_use_id, content=note.model_dump_json()),
        }
        ended = datetime.now(UTC)
        line = tool_result_line(ended, run.name, note.summary, is_error=is_error)
        noted = NewNote(f"{key}:ended", TaskNoteKind.TOOL_RESULT, line, None, ended)
        stands = await self._kept.outcomes.put(run.conversation_id, outcomes, (noted,))
        return ToolNote.model_validate_json(stands[_of_note(key)].content)


def shown(value: dict[str, JsonValue]) -> str:
    """Short values as JSON, one a line; multi-line texts as they are, below their names."""
    return "\n".join(_line(name, part) for name, part in value.items())


def _line(name: str, part: JsonValue) -> str:
    if isinstance(part, str):
        return f"{name}:\n{part}" if "\n" in part else f"{name}: {part}"
    return f"{name}: {json.dumps(part, ensure_ascii=False)}"


def _of_note(key: str) -> str:
    return f"{key}:note"


def _remaining_s(run: ToolRun) -> float:
    """The time that earlier attempts left. `until` is by Temporal's clock, which may differ from this host's."""
    left_s = run.remaining_s if run.until is None else min(run.remaining_s, run.until - activity.info().started_time.timestamp())
    return max(left_s, _LEAST_S)


def _told_at_last(failure: Exception, message: str) -> tuple[Used, bool]:
    """Raises an outage to Temporal; after several attempts it becomes the outcome."""
    if activity.info().attempt < _PATIENCE:
        raise failure
    return _error(message), True


def _error(message: str) -> Used:
    return Used({"error": message})
