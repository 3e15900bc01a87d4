"""Replies to a recognised wish, made from the tools, groups or tasks that were read for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from engine.concierge import wording
from engine.concierge.solutions import brief, composite_workflow, making_of, single_call, steps_of, suggested
from engine.concierge.wording import RUNTIME_NAMES, STATES, Text, counted, listed
from engine.registry.matching.evidence import words_in_common
from engine.registry.matching.ranking import Counts
from toolagent.contracts.agent_chat import (
    CompositeWorkflow,
    GroupOverview,
    GroupsOverview,
    RuntimeOverview,
    RuntimesOverview,
    Solution,
    SuggestedTool,
)
from toolagent.contracts.groups import ToolGroup
from toolagent.contracts.making_views import ListedTask
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.task_specs import RepairTool, TaskSpec, is_making
from toolagent.contracts.tasks import TaskState
from toolagent.core.parameter_schemas import property_names, property_schema, required_names, type_label
from toolagent.core.task_requests import subject_of
from toolagent_service.contracts.concierge import Intent, Language, Reply

_MOST_FOUND, _MOST_NEAR = 5, 3
_MOST_CATEGORIES = 12


@dataclass(frozen=True, slots=True)
class Answers:
    """Replies in one language, to one intent."""

    intent: Intent
    language: Language

    def tools_found(self, need: str, tools: Sequence[ToolManifest], wish: str) -> Reply:
        """Tools that contain at least half of the need's words, the best first; else the nearest, as such.

        `wish` is the whole request: a tool can be made from it.
        """
        words = {tool.tool_id: words_in_common(need, tool) for tool in tools}
        most = max(map(len, words.values()), default=0)
        fitting = [tool for tool in tools if 2 * len(words[tool.tool_id]) >= most][:_MOST_FOUND]
        if not fitting or 2 * most < len(need.split()):
            # The first one by meaning may use other words.
            near = [*tools[:1], *(tool for tool in fitting if tool is not tools[0])] if most else tools
            return self.nothing_fits(wish, near[:_MOST_NEAR])
        best = fitting[0].tool_id
        reasons = [self._reason(words[tool.tool_id], tool) for tool in fitting]
        return self._reply(
            self._say(wording.FOUND if len(fitting) > 1 else wording.FOUND_ONE, count=len(fitting), best=best),
            self._say(wording.CALL_IT, tool_id=best),
            self._say(wording.SEE_IT, tool_id=best),
            tools=tuple(map(suggested, fitting, reasons)),
            solution=single_call(fitting[0]),
        )

    def with_part(self, reply: Reply, part: str, tool: ToolManifest | None) -> Reply:
        """Adds a need of the message that the reply does not meet, and `tool` if it does."""
        said = self._say(wording.ALSO if tool else wording.NOT_ALSO, part=part[:128], tool=tool.tool_id if tool else "")
        more = _suggested((tool,)) if tool else ()
        ended = reply.reply.rstrip(".。") + ("。" if self.language == "zh" else ".")
        return reply.model_copy(update={"reply": f"{ended}{said}", "tools": (*reply.tools, *more)})

    def nothing_fits(self, need: str, near: Sequence[ToolManifest] = ()) -> Reply:
        return self._reply(
            self._say(wording.NEAREST if near else wording.NONE, tools=self._list([tool.tool_id for tool in near])),
            *(self._say(wording.SEE_IT, tool_id=tool.tool_id) for tool in near[:1]),
            *map(self._say, (wording.HAVE_IT_MADE, wording.SEARCH, wording.LIST_ALL)),
            tools=_suggested(near),
            solution=making_of(need),
        )

    def details(self, tool: ToolManifest, others: Sequence[ToolManifest], group: CompositeWorkflow | None, asked: str = "") -> Reply:
        """`group`: the tool is used in its sessions. `asked`: the words that were asked for, if they are not the tool's name."""
        tool_id = tool.tool_id
        described = self._say(wording.DETAILS, tool_id=tool_id, name=tool.name, description=tool.description, params=self._params(tool))
        before = self._say(wording.CLOSEST, name=asked[:128], tool=tool_id) if asked else ""
        after = f" {self._say(wording.IN_SESSION, group=group.group_id)}" if group else ""
        return self._reply(
            f"{before}{described}{after}",
            self._say(wording.OPEN_SESSION, request=group.session) if group else self._say(wording.CALL_IT, tool_id=tool_id),
            self._say(wording.SEE_IT, tool_id=tool_id),
            self._say(wording.REPAIR_IT, tool_id=tool_id),
            tools=_suggested((tool, *others)),
            solution=group or single_call(tool),
        )

    def no_such_tool(self, name: str, near: Sequence[str]) -> Reply:
        hint = self._say(wording.DID_YOU_MEAN, near=self._list(near)) if near else ""
        steps = map(self._say, (wording.SEARCH, wording.LIST_ALL, wording.SAY_WHAT))
        return self._reply(self._say(wording.NO_SUCH_TOOL, name=name[:128], hint=hint), *steps)

    def composite(self, group: ToolGroup, tools: Sequence[ToolManifest]) -> Reply:
        solution = composite_workflow(group, tools)
        usages = {step.tool_id: step.usage for step in group.steps}
        return self._reply(
            self._say(wording.COMPOSITE, group=group.group_id, count=counted(len(solution.steps), self.language)),
            *([self._say(wording.OPEN_SESSION, request=solution.session)] if solution.session else []),
            self._say(wording.CALL_STEPS),
            tools=tuple(suggested(tool, usages.get(tool.tool_id) or brief(tool)) for tool in tools if tool.tool_id in solution.base_tools),
            solution=solution,
        )

    def group(self, group: ToolGroup, tools: Sequence[ToolManifest]) -> Reply:
        told = self._say(wording.GROUP, group=group.group_id, description=group.description, order=" → ".join(steps_of(group)))
        return self.composite(group, tools).model_copy(update={"reply": told})

    def groups(self, groups: Sequence[ToolGroup]) -> Reply:
        names = self._list([f"{group.group_id} ({' → '.join(steps_of(group))})" for group in groups])
        shown = tuple(
            GroupOverview(group_id=one.group_id, name=one.name, description=one.description, usage_order=steps_of(one)) for one in groups
        )
        return self._reply(
            self._say(wording.GROUPS if groups else wording.NO_GROUPS, count=len(groups), groups=names),
            *(self._say(wording.ASK_DETAILS, tool_id=one.group_id) for one in groups[:1]),
            solution=GroupsOverview(groups=shown),
        )

    def runtimes(self, counts: Counts) -> Reply:
        shown = tuple(
            RuntimeOverview(backend_runtime=one, name=self._say(name), tool_count=counts.by_backend.get(one, 0))
            for one, name in RUNTIME_NAMES.items()
        )
        told = self._list([f"{one.backend_runtime} ({one.name}, {one.tool_count})" for one in shown])
        solution = RuntimesOverview(backend_runtimes=shown)
        return self._reply(self._say(wording.RUNTIMES, runtimes=told), self._say(wording.LIST_ALL), solution=solution)

    def list(self, counts: Counts, first: Sequence[ToolManifest]) -> Reply:
        """The number of tools, the largest categories, and the `first` tools."""
        largest = sorted(counts.by_category.items(), key=lambda one: (-one[1], one[0]))
        told = self._list(
            [*(f"{name} ({count})" for name, count in largest[:_MOST_CATEGORIES]), *(["…"] if largest[_MOST_CATEGORIES:] else [])]
        )
        steps = map(self._say, (wording.LIST_ALL, wording.SEARCH))
        return self._reply(self._say(wording.LISTED, count=counts.total, categories=told), *steps, tools=_suggested(first))

    def task(self, task_id: str, task: ListedTask | None) -> Reply:
        if task is None and not is_making(task_id):
            return self._reply(self._say(wording.A_CALL, task_id=task_id), self._say(wording.GET_TASK, task_id=task_id))
        if task is None:
            return self._reply(self._say(wording.NO_TASK, task_id=task_id), self._say(wording.LIST_TASKS))
        progress = f": {task.progress}" if task.progress else ""
        stage = self._say(wording.AT_STAGE, stage=task.stage.value, progress=progress) if task.stage and not task.has_ended else ""
        reason = self._say(wording.REASON, reason=task.reason) if task.reason else ""
        told = self._say(wording.TASK, task_id=task_id, status=self._say(STATES[task.status]), stage=stage, reason=reason)
        after = (wording.GET_TASK,) if task.has_ended else (wording.FOLLOW, wording.CANCEL_IT)
        if task.status is TaskState.COMPLETED:
            after = (wording.CALL_IT,)
        steps = (self._say(step, task_id=task_id, tool_id=task.tool_id) for step in after)
        return self._reply(told, *steps).about_task(task_id, task.status)

    def tasks(self, tasks: Sequence[ListedTask]) -> Reply:
        told = self._list([f"{task.task_id} ({task.tool_id}, {self._say(STATES[task.status])})" for task in tasks])
        return self._reply(self._say(wording.TASKS if tasks else wording.NO_TASKS, tasks=told), self._say(wording.LIST_TASKS))

    def to_submit(self, task: TaskSpec, description: str, time: str | None, near: Sequence[ToolManifest] = ()) -> Reply:
        """`time` is an estimate; None: the task cannot succeed, because no model is set. The tools `near` may do it already."""
        text, hopeless = wording.SUBMITTED, wording.NOT_WRITTEN
        if isinstance(task, RepairTool):
            text, hopeless = wording.REPAIRING, wording.NOT_REPAIRED
        outlook = self._say(wording.TAKES if time else hopeless, time=time)
        after = (wording.FOLLOW_NEW, None if time else wording.SET_MODEL, wording.PERHAPS_THERE if near else None)
        steps = (self._say(step) for step in after if step)
        reply = self._reply(self._say(text, tool_id=subject_of(task), outlook=outlook), *steps, tools=_suggested(near))
        return reply.model_copy(update={"task": task, "description": description, "estimated_time": time})

    def not_clear(self) -> Reply:
        questions = {Intent.REPAIR: wording.WHICH_REPAIR, Intent.DETAILS: wording.WHICH_DETAILS}
        after = wording.LIST_ALL if self.intent is Intent.DETAILS else wording.SAY_WHAT
        return self._reply(self._say(questions.get(self.intent, wording.WHICH_TOOL)), self._say(after))

    def refused(self, reason: str) -> Reply:
        after = wording.LIST_TASKS if self.intent is Intent.REPAIR else wording.SAY_WHAT
        return self._reply(self._say(wording.NOT_SO, reason=reason), self._say(after))

    def undecided(self, wish: str) -> Reply:
        """No tool matches, but the message may be a need: the reply offers to make a tool, and adds the help."""
        nothing, helped = self.nothing_fits(wish), self.help()
        steps = tuple(dict.fromkeys((*nothing.next_steps, *helped.next_steps)))
        return nothing.model_copy(update={"reply": f"{nothing.reply} {helped.reply}", "next_steps": steps})

    def welcome(self) -> Reply:
        return self._reply(self._say(wording.WELCOME))

    def help(self) -> Reply:
        """What is understood, and that no model answers."""
        texts = (wording.BY_RULES,) if self.intent is Intent.UNDECIDED else (wording.HELP, wording.BY_RULES)
        return self._reply(" ".join(map(self._say, texts)), *map(self._say, (wording.EXAMPLES, wording.LIST_ALL)))

    def time(self, earlier: Sequence[ListedTask]) -> str:
        """The median time of earlier tasks of the kind that succeeded."""
        took = [(task.ended_at - task.started_at).total_seconds() for task in earlier if task.ended_at and task.started_at]
        if not took:
            return self._say(wording.DEFAULT_TIME)
        minutes = round(median(took) / 60)
        return self._say(wording.MINUTES if minutes > 1 else wording.UNDER_A_MINUTE, minutes=minutes)

    def _reason(self, words: Sequence[str], tool: ToolManifest) -> str:
        return self._say(wording.MATCHED, words=self._list(words), description=brief(tool)) if words else brief(tool)

    def _params(self, tool: ToolManifest) -> str:
        required = required_names(tool.input_schema)
        named = [
            self._say(
                wording.PARAM,
                name=name,
                type=type_label(property_schema(tool.input_schema, name)),
                required=self._say(wording.REQUIRED) if name in required else "",
            )
            for name in property_names(tool.input_schema)
        ]
        return self._list(named) or self._say(wording.NO_PARAMS)

    def _list(self, words: Sequence[str]) -> str:
        return listed(tuple(words), self.language)

    def _say(self, text: Text, **values: object) -> str:
        return text.said(self.language, **values)

    def _reply(self, reply: str, *steps: str, tools: tuple[SuggestedTool, ...] = (), solution: Solution | None = None) -> Reply:
        return Reply(
            reply=reply,
            tools=tools,
            solution=solution,
            next_steps=tuple(dict.fromkeys(steps)),
            intent=self.intent,
            language=self.language,
        )


def _suggested(tools: Sequence[ToolManifest]) -> tuple[SuggestedTool, ...]:
    return tuple(suggested(tool, brief(tool)) for tool in tools)
