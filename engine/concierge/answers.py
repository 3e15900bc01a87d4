"""The answers that follow from what was read: tools, groups, tasks in, a reply out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeAlias

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
from toolagent_service.contracts.concierge import Intent, Language, Reply

_Said: TypeAlias = tuple[Text, Mapping[str, object]]

_MOST_FOUND, _MOST_NEAR = 5, 3
_MOST_CATEGORIES = 12


@dataclass(frozen=True, slots=True)
class Answers:
    """In one language, to one intent."""

    intent: Intent
    language: Language

    def tools_found(self, need: str, tools: Sequence[ToolManifest], wish: str) -> Reply:
        """The best first: those that say half of the words of the need; else the nearest, and that they are no more than near.

        Of `wish`, which is the whole of it, a tool may be made.
        """
        words = {tool.tool_id: words_in_common(need, tool) for tool in tools}
        most = max(map(len, words.values()), default=0)
        fitting = [tool for tool in tools if 2 * len(words[tool.tool_id]) >= most][:_MOST_FOUND]
        if not fitting or 2 * most < len(need.split()):
            # What is first by its meaning may say it in other words.
            near = [*tools[:1], *(tool for tool in fitting if tool is not tools[0])] if most else tools
            return self.nothing_fits(wish, near[:_MOST_NEAR])
        best = fitting[0].tool_id
        reasons = [self._reason(words[tool.tool_id], tool) for tool in fitting]
        return self._reply(
            (wording.FOUND if len(fitting) > 1 else wording.FOUND_ONE, {"count": len(fitting), "best": best}),
            tools=tuple(map(suggested, fitting, reasons)),
            solution=single_call(fitting[0]),
            next_steps=self._steps((wording.CALL_IT, {"tool_id": best}), (wording.SEE_IT, {"tool_id": best})),
        )

    def with_part(self, reply: Reply, part: str, tool: ToolManifest | None) -> Reply:
        """Of a message with several needs one that the answer does not meet; `tool` does."""
        said = (wording.ALSO if tool else wording.NOT_ALSO).said(self.language, part=part[:128], tool=tool.tool_id if tool else "")
        more = (suggested(tool, brief(tool)),) if tool else ()
        ended = reply.reply.rstrip(".。") + ("。" if self.language == "zh" else ".")
        return reply.model_copy(update={"reply": f"{ended}{said}", "tools": (*reply.tools, *more)})

    def nothing_fits(self, need: str, near: Sequence[ToolManifest] = ()) -> Reply:
        names = self._list([tool.tool_id for tool in near])
        return self._reply(
            (wording.NEAREST if near else wording.NONE, {"tools": names}),
            tools=tuple(suggested(tool, brief(tool)) for tool in near),
            solution=making_of(need),
            next_steps=self._steps(
                *((wording.SEE_IT, {"tool_id": tool.tool_id}) for tool in near[:1]),
                (wording.HAVE_IT_MADE, {}),
                (wording.SEARCH, {}),
                (wording.LIST_ALL, {}),
            ),
        )

    def details(self, tool: ToolManifest, others: Sequence[ToolManifest], group: CompositeWorkflow | None, asked: str = "") -> Reply:
        """`group`: in whose sessions it is used. `asked` is what was asked for, when that is not the tool's own name."""
        described = {"tool_id": tool.tool_id, "name": tool.name, "description": tool.description, "params": self._params(tool)}
        before = wording.CLOSEST.said(self.language, name=asked[:128], tool=tool.tool_id) if asked else ""
        after = f" {wording.IN_SESSION.said(self.language, group=group.group_id)}" if group else ""
        used: _Said = (wording.OPEN_SESSION, {"request": group.session}) if group else (wording.CALL_IT, {"tool_id": tool.tool_id})
        reply = self._reply(
            (wording.DETAILS, described),
            tools=tuple(suggested(one, brief(one)) for one in (tool, *others)),
            solution=group or single_call(tool),
            next_steps=self._steps(used, (wording.SEE_IT, {"tool_id": tool.tool_id}), (wording.REPAIR_IT, {"tool_id": tool.tool_id})),
        )
        return reply.model_copy(update={"reply": f"{before}{reply.reply}{after}"})

    def no_such_tool(self, name: str, near: Sequence[str]) -> Reply:
        hint = wording.DID_YOU_MEAN.said(self.language, near=self._list(near)) if near else ""
        return self._reply(
            (wording.NO_SUCH_TOOL, {"name": name[:128], "hint": hint}),
            next_steps=self._steps((wording.SEARCH, {}), (wording.LIST_ALL, {}), (wording.SAY_WHAT, {})),
        )

    def composite(self, group: ToolGroup, tools: Sequence[ToolManifest]) -> Reply:
        solution = composite_workflow(group, tools)
        used: _Said = (wording.OPEN_SESSION, {"request": solution.session}) if solution.session else (wording.CALL_STEPS, {})
        usages = {step.tool_id: step.usage for step in group.steps}
        return self._reply(
            (wording.COMPOSITE, {"group": group.group_id, "count": counted(len(solution.steps), self.language)}),
            tools=tuple(suggested(tool, usages.get(tool.tool_id) or brief(tool)) for tool in tools if tool.tool_id in solution.base_tools),
            solution=solution,
            next_steps=self._steps(used, (wording.CALL_STEPS, {})),
        )

    def group(self, group: ToolGroup, tools: Sequence[ToolManifest]) -> Reply:
        told = {"group": group.group_id, "description": group.description, "order": " → ".join(steps_of(group))}
        return self.composite(group, tools).model_copy(update={"reply": wording.GROUP.said(self.language, **told)})

    def groups(self, groups: Sequence[ToolGroup]) -> Reply:
        names = self._list([f"{group.group_id} ({' → '.join(steps_of(group))})" for group in groups])
        shown = tuple(
            GroupOverview(group_id=one.group_id, name=one.name, description=one.description, usage_order=steps_of(one)) for one in groups
        )
        return self._reply(
            (wording.GROUPS if groups else wording.NO_GROUPS, {"count": len(groups), "groups": names}),
            solution=GroupsOverview(groups=shown),
            next_steps=self._steps(*((wording.ASK_DETAILS, {"tool_id": one.group_id}) for one in groups[:1])),
        )

    def runtimes(self, counts: Counts) -> Reply:
        shown = tuple(
            RuntimeOverview(backend_runtime=one, name=name.said(self.language), tool_count=counts.by_backend.get(one, 0))
            for one, name in RUNTIME_NAMES.items()
        )
        told = self._list([f"{one.backend_runtime} ({one.name}, {one.tool_count})" for one in shown])
        return self._reply(
            (wording.RUNTIMES, {"runtimes": told}),
            solution=RuntimesOverview(backend_runtimes=shown),
            next_steps=self._steps((wording.LIST_ALL, {})),
        )

    def list(self, counts: Counts, first: Sequence[ToolManifest]) -> Reply:
        """How many tools there are, and some of them."""
        largest = sorted(counts.by_category.items(), key=lambda one: (-one[1], one[0]))
        told = self._list(
            [*(f"{name} ({count})" for name, count in largest[:_MOST_CATEGORIES]), *(["…"] if largest[_MOST_CATEGORIES:] else [])]
        )
        return self._reply(
            (wording.LISTED, {"count": counts.total, "categories": told}),
            tools=tuple(suggested(tool, brief(tool)) for tool in first),
            next_steps=self._steps((wording.LIST_ALL, {}), (wording.SEARCH, {})),
        )

    def task(self, task_id: str, task: ListedTask | None) -> Reply:
        if task is None and not is_making(task_id):
            return self._reply((wording.A_CALL, {"task_id": task_id}), next_steps=self._steps((wording.GET_TASK, {"task_id": task_id})))
        if task is None:
            return self._reply((wording.NO_TASK, {"task_id": task_id}), next_steps=self._steps((wording.LIST_TASKS, {})))
        progress = f": {task.progress}" if task.progress else ""
        stage = wording.AT_STAGE.said(self.language, stage=task.stage.value, progress=progress) if task.stage and not task.has_ended else ""
        reason = wording.REASON.said(self.language, reason=task.reason) if task.reason else ""
        told = {"task_id": task_id, "status": STATES[task.status].said(self.language), "stage": stage, "reason": reason}
        named = {"task_id": task_id}
        after: tuple[_Said, ...] = ((wording.GET_TASK, named),) if task.has_ended else ((wording.FOLLOW, named), (wording.CANCEL_IT, named))
        if task.status is TaskState.COMPLETED:
            after = ((wording.CALL_IT, {"tool_id": task.tool_id}),)
        return self._reply((wording.TASK, told), next_steps=self._steps(*after)).about_task(task_id, task.status)

    def tasks(self, tasks: Sequence[ListedTask]) -> Reply:
        told = self._list([f"{task.task_id} ({task.tool_id}, {STATES[task.status].said(self.language)})" for task in tasks])
        return self._reply(
            (wording.TASKS if tasks else wording.NO_TASKS, {"tasks": told}), next_steps=self._steps((wording.LIST_TASKS, {}))
        )

    def to_submit(self, task: TaskSpec, description: str, time: str | None, near: Sequence[ToolManifest] = ()) -> Reply:
        """`time`: how long it takes; None where it cannot be done, as no model is set. `near` may do it already."""
        text, told, hopeless = wording.SUBMITTED, dict[str, object](), wording.NOT_WRITTEN
        if isinstance(task, RepairTool):
            text, told, hopeless = wording.REPAIRING, {"tool_id": task.tool_id}, wording.NOT_REPAIRED
        told["outlook"] = (wording.TAKES if time else hopeless).said(self.language, time=time)
        after: list[_Said] = [(wording.FOLLOW_NEW, {}), *([] if time else [(wording.SET_MODEL, {})])]
        if near:
            after.append((wording.PERHAPS_THERE, {}))
        reply = self._reply(
            (text, told),
            tools=tuple(suggested(tool, brief(tool)) for tool in near),
            next_steps=self._steps(*after),
        )
        return reply.model_copy(update={"task": task, "description": description, "estimated_time": time})

    def not_clear(self) -> Reply:
        questions = {Intent.REPAIR: wording.WHICH_REPAIR, Intent.DETAILS: wording.WHICH_DETAILS}
        after = wording.LIST_ALL if self.intent is Intent.DETAILS else wording.SAY_WHAT
        return self._reply((questions.get(self.intent, wording.WHICH_TOOL), {}), next_steps=self._steps((after, {})))

    def refused(self, reason: str) -> Reply:
        after = wording.LIST_TASKS if self.intent is Intent.REPAIR else wording.SAY_WHAT
        return self._reply((wording.NOT_SO, {"reason": reason}), next_steps=self._steps((after, {})))

    def undecided(self, wish: str) -> Reply:
        """No tool says a word of it; a need it may be all the same. So what is understood is said too."""
        nothing, helped = self.nothing_fits(wish), self.help()
        steps = tuple(dict.fromkeys((*nothing.next_steps, *helped.next_steps)))
        return nothing.model_copy(update={"reply": f"{nothing.reply} {helped.reply}", "next_steps": steps})

    def welcome(self) -> Reply:
        return self._reply((wording.WELCOME, {}))

    def help(self) -> Reply:
        """What is understood, and that no model answers."""
        text = wording.BY_RULES if self.intent is Intent.UNDECIDED else wording.HELP
        reply = self._reply((text, {}), next_steps=self._steps((wording.EXAMPLES, {}), (wording.LIST_ALL, {})))
        whole = f"{reply.reply} {wording.BY_RULES.said(self.language)}" if self.intent is not Intent.UNDECIDED else reply.reply
        return reply.model_copy(update={"reply": whole})

    def time(self, earlier: Sequence[ListedTask]) -> str:
        """By tasks of the kind that made something."""
        took = [(task.ended_at - task.started_at).total_seconds() for task in earlier if task.ended_at and task.started_at]
        if not took:
            return wording.DEFAULT_TIME.said(self.language)
        minutes = round(median(took) / 60)
        return (wording.MINUTES if minutes > 1 else wording.UNDER_A_MINUTE).said(self.language, minutes=minutes)

    def _reason(self, words: Sequence[str], tool: ToolManifest) -> str:
        return wording.MATCHED.said(self.language, words=self._list(words), description=brief(tool)) if words else brief(tool)

    def _params(self, tool: ToolManifest) -> str:
        required = required_names(tool.input_schema)
        named = [
            wording.PARAM.said(
                self.language,
                name=name,
                type=type_label(property_schema(tool.input_schema, name)),
                required=wording.REQUIRED.said(self.language) if name in required else "",
            )
            for name in property_names(tool.input_schema)
        ]
        return self._list(named) or wording.NO_PARAMS.said(self.language)

    def _list(self, words: Sequence[str]) -> str:
        return listed(tuple(words), self.language)

    def _steps(self, *texts: _Said) -> tuple[str, ...]:
        return tuple(dict.fromkeys(text.said(self.language, **values) for text, values in texts))

    def _reply(
        self,
        said: _Said,
        *,
        tools: tuple[SuggestedTool, ...] = (),
        solution: Solution | None = None,
        next_steps: tuple[str, ...] = (),
    ) -> Reply:
        text, values = said
        return Reply(
            reply=text.said(self.language, **values),
            tools=tools,
            solution=solution,
            next_steps=next_steps,
            intent=self.intent,
            language=self.language,
        )
