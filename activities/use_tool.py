"""Doing what a model wants done: once, as far as that is possible, and told in the same words however often it is asked."""

import asyncio

from pydantic import JsonValue
from temporalio import activity

from activities.agent_tools.offers import runner_of, shown
from activities.agent_tools.tool import Role, Site, Used
from activities.heartbeats import beating
from activities.task_progress import telling
from engine.making.workbench.bench import Workbenches
from engine.making.workbench.proposals import Judge, Proposals
from engine.making.workbench.refusal import BenchRefused
from engine.runtimes.failures import StartFailed
from engine.runtimes.runtime import Progress
from engine.runtimes.scripts.failures import ScriptErrorKind, ScriptFailure
from engine.store.clock import now
from engine.store.messages import MessageTable
from engine.store.task_notes import NewNote, TaskNoteTable
from engine.store.tasks import TaskTable
from engine.store.tool_outcomes import ToolOutcomeTable
from toolagent.client import names
from toolagent.contracts.agent import ToolNote, ToolRun
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.making import TaskNoteKind
from toolagent.contracts.making_views import ListedTask
from toolagent.contracts.model import ToolOutcome, ToolUse
from toolagent.contracts.task_specs import MakeRuntime, RepairTool
from toolagent.core.coding_log import shown_text, tool_result_line, tool_use_line
from toolagent.core.failures import UnknownTaskError
from toolagent.core.loop import FINAL_TOOL
from toolagent.core.model_notes import digest_of
from toolagent.core.texts import well_formed
from toolagent.core.tool_uses import key_of_use

__all__ = ["UseTool"]

_PATIENCE = 3
"""Attempts, when something of ours does not work, before the model is told so."""

_LONGEST_SUMMARY = 200
_LEAST_S = 1.0
_REPAIR = RepairTool.model_fields["type"].default


class UseTool:
    """An outcome is written down before it is told; an attempt that finds one has nothing to do."""

    def __init__(
        self,
        benches: Workbenches,
        gate: Judge,
        proposals: Proposals,
        tasks: TaskTable,
        messages: MessageTable,
        outcomes: ToolOutcomeTable,
        notes: TaskNoteTable,
    ) -> None:
        self._benches, self._gate, self._proposals = benches, gate, proposals
        self._tasks, self._messages, self._outcomes, self._notes = tasks, messages, outcomes, notes

    @activity.defn(name=names.USE_TOOL)
    async def use_tool(self, run: ToolRun) -> ToolNote:
        """What the model got wrong is an outcome; what we got wrong is raised to Temporal, and tried again."""
        key = key_of_use(run.position, run.tool_use_id)
        known, given, task = await asyncio.gather(self._known(run.task_id, key), self._given(run), self._task(run.task_id))
        if known is not None:
            return known
        begun = now()
        line = tool_use_line(begun, run.name, given)
        await self._notes.write(run.task_id, (NewNote(f"{key}:begun", TaskNoteKind.TOOL_USE, line, None, begun),))
        async with beating() as pulse, telling(self._tasks, run.task_id, pulse.say) as tell:
            used, is_error = await self._done(run, given, await self._site(run, task, key, tell))
        return await self._told(run, key, used, is_error=is_error)

    async def _known(self, task_id: str, key: str) -> ToolNote | None:
        kept = await self._outcomes.get(task_id, (key, _of_note(key)))
        return ToolNote.model_validate_json(kept[_of_note(key)].content) if len(kept) == 2 else None

    async def _given(self, run: ToolRun) -> dict[str, JsonValue]:
        (message,) = await self._messages.read(run.task_id, run.position, run.position)
        uses = (block for block in message.content if isinstance(block, ToolUse) and block.id == run.tool_use_id)
        return next(uses).input

    async def _task(self, task_id: str) -> ListedTask:
        task = await self._tasks.listed(task_id)
        if task is None:
            raise UnknownTaskError(task_id)
        return task

    async def _runtime(self, run: ToolRun) -> MakeRuntime | None:
        """The one that is asked for. Looked up where it counts: with its examples a specification may be large."""
        task = await self._tasks.get(run.task_id) if run.name == FINAL_TOOL else None
        return None if task is None or isinstance(task.spec, RepairTool) else task.spec.runtime

    async def _done(self, run: ToolRun, given: dict[str, JsonValue], site: Site) -> tuple[Used, bool]:
        over = asyncio.timeout(site.remaining_s)
        try:
            runner = runner_of(Role.CODING, run.name)
            async with over:
                return await runner(given, site), False
        except BenchRefused as refused:
            return _error(str(refused)), True
        except TimeoutError as error:
            if over.expired():
                return _error("The time of the whole task is over."), True
            return _told_at_last(error, f"It did not answer in time: {error or type(error).__name__}")
        except StartFailed as failure:
            if failure.error_type is ErrorType.UNAVAILABLE:
                return _told_at_last(failure, failure.message)
            return _error(failure.message), True
        except ScriptFailure as failure:
            if failure.kind is ScriptErrorKind.UNAVAILABLE:
                return _told_at_last(failure, failure.message)
            return _error(failure.message), True

    async def _site(self, run: ToolRun, task: ListedTask, key: str, say: Progress) -> Site:
        return Site(
            task_id=run.task_id,
            own_tool=task.tool_id,
            is_repair=task.type == _REPAIR,
            runtime=await self._runtime(run),
            use=key,
            remaining_s=_remaining_s(run),
            bench=await self._benches.of(run.task_id),
            gate=self._gate,
            proposals=self._proposals,
            beat=say,
        )

    async def _told(self, run: ToolRun, key: str, used: Used, *, is_error: bool) -> ToolNote:
        content = well_formed(shown(used.value))
        note = ToolNote(
            tool_use_id=run.tool_use_id,
            name=run.name,
            summary=shown_text(content, _LONGEST_SUMMARY),
            is_error=is_error,
            digest=digest_of(used.value),
            size=len(content.encode()),
            candidate=used.candidate,
        )
        outcomes = {
            key: ToolOutcome(tool_use_id=run.tool_use_id, content=content, is_error=is_error),
            _of_note(key): ToolOutcome(tool_use_id=run.tool_use_id, content=note.model_dump_json()),
        }
        ended = now()
        line = tool_result_line(ended, run.name, note.summary, is_error=is_error)
        noted = NewNote(f"{key}:ended", TaskNoteKind.TOOL_RESULT, line, None, ended)
        stands = await self._outcomes.put(run.task_id, outcomes, (noted,))
        return ToolNote.model_validate_json(stands[_of_note(key)].content)


def _of_note(key: str) -> str:
    return f"{key}:note"


def _remaining_s(run: ToolRun) -> float:
    """Each attempt has what those before it left. `until` is by Temporal's clock, which may differ from that of this host."""
    left_s = run.remaining_s if run.until is None else min(run.remaining_s, run.until - activity.info().started_time.timestamp())
    return max(left_s, _LEAST_S)


def _told_at_last(failure: Exception, message: str) -> tuple[Used, bool]:
    """What does not work is ours: raised to Temporal, and told when that has helped nothing."""
    if activity.info().attempt < _PATIENCE:
        raise failure
    return _error(message), True


def _error(message: str) -> Used:
    return Used({"error": message})
