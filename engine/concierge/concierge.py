"""Answers what agents ask in plain words: by rules, from the tools, groups and tasks that there are."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue

from engine.concierge import chinese, english
from engine.concierge.answers import Answers
from engine.concierge.recognising import Wish, recognised, repository_in
from engine.concierge.solutions import composite_workflow
from engine.registry.matching.evidence import words_in_common
from engine.registry.matching.matching import Matching, Need
from engine.registry.matching.texts import Filters
from engine.registry.matching.words import is_empty, telling_words
from engine.store.groups import GroupTable
from engine.store.tasks import TaskTable
from engine.store.tools import ToolTable
from toolagent.contracts.agent_chat import CompositeWorkflow, Proposal
from toolagent.contracts.groups import ToolGroup
from toolagent.contracts.making import Stage
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.matching import MatchKind
from toolagent.contracts.task_specs import BuildTool, GithubDeploy, RepairTool, TaskSpec, is_making
from toolagent.contracts.tasks import TaskState
from toolagent.core.suggestions import nearest
from toolagent.core.task_requests import SpecError, prose_spec, read_spec, tool_name_from
from toolagent.validation.tool_names import tool_name_for
from toolagent_service.contracts.concierge import Earlier, Intent, Language, Reply
from toolagent_service.making.mendable import unmendable

_SHOWN = 10
_OTHERS = 3
_TASKS = 5
_TIMED = 20
_MOST_NAMES = 20
_ID = re.compile(r"[A-Za-z][A-Za-z0-9_:-]*")
_LONGEST = 500
_OF_A_NEED = 2
"""Words that say something: one alone, such as `great`, asks for nothing."""
_MOST_LETTERS = 128
_MOST_PARTS = 4
_PRONOUN = 4
"""Letters of `it`, `this`, `that`: the id of a tool is longer."""

Recall = Callable[[], Awaitable[Earlier]]
"""What the conversation came to before the message; asked only where the message refers to it."""

_NO_NAME = re.compile(r"tool_[0-9a-f]{8}")

_ENGLISH = """tool tools api apis service services something anything everything any all available find finding look looking search
 searching recommend suggest offer offering category thing stuff way able help provide hello hi hey thanks thank using related build
 create write develop implement"""
_CHINESE = """工具 接口 服务 程序 功能 推荐 推荐一下 搜索 搜 找 找找 查找 查询一下 提供 有关 相关 关于 请问 贵方 是否 哪些 有哪些
 有什么 能否 可不可以 想要 类别 分类 谢谢 你好 您好 创建 制作 开发 编写 个工具 东西"""
_ASKING = frozenset((*_ENGLISH.split(), *_CHINESE.split()))
_LONGEST_NEED = 500
"""Characters of a need: more words find nothing else, but take time."""


async def _nothing() -> Earlier:
    return Earlier()


class Concierge:
    """Reads, and changes nothing: a task that it would have done is in its reply. All raise StoreUnavailableError."""

    def __init__(self, matching: Matching, tools: ToolTable, groups: GroupTable, tasks: TaskTable, *, has_model: bool) -> None:
        """`has_model`: one is set that writes tools."""
        self._matching, self._tools, self._groups, self._tasks, self._has_model = matching, tools, groups, tasks, has_model

    async def answer(self, message: str, context: Mapping[str, JsonValue] | None = None, recall: Recall = _nothing) -> Reply:
        """Of the context, the texts `task` and `requirements` are read. `recall`: of a message of a conversation."""
        wish, more = recognised(message), _Context.of(context or {})
        answers = Answers(wish.intent, wish.language)
        match wish.intent:
            case Intent.HELP | Intent.THANKS:
                return answers.help() if wish.intent is Intent.HELP else answers.welcome()
            case Intent.LIST | Intent.RUNTIMES | Intent.GROUPS:
                return await self._state(wish, answers)
            case Intent.STATUS:
                return await self._status(wish, answers, recall)
            case Intent.DETAILS | Intent.AGREE:
                return await self._told_of(wish, answers, message, recall)
            case Intent.MAKE:
                return await self._make(wish, answers, more.description(message))
            case Intent.REPAIR:
                return await self._repair(wish, answers, message)
            case Intent.DISCOVER | Intent.UNDECIDED:
                return await self._discover(wish, answers, message, more)

    async def usual_time(self, task: TaskSpec, language: Language) -> str | None:
        """How long such a task takes; None where only a model could do it, and none is set. Many repositories need none."""
        if not (self._has_model or isinstance(task, GithubDeploy)):
            return None
        # One that ended while it was looked into, a build or a repair, has made nothing, and does not say how long that takes.
        earlier = await self._tasks.page(status=TaskState.COMPLETED, spec_type=task.type, not_at=Stage.INSPECT, limit=_TIMED)
        return Answers(Intent.MAKE, language).time(earlier)

    async def _state(self, wish: Wish, answers: Answers) -> Reply:
        """What there is at the moment."""
        match wish.intent:
            case Intent.LIST:
                first = await self._matching.search_tools(limit=_SHOWN)
                return answers.list(await self._matching.counts(), [entry.manifest for entry in first])
            case Intent.RUNTIMES:
                return answers.runtimes(await self._matching.counts())
            case _:
                return await self._groups_for(wish, answers)

    async def _discover(self, wish: Wish, answers: Answers, message: str, context: "_Context") -> Reply:
        """By an id or a name, else by a group that is named, else by words and meanings.

        What was undecided stays so where no id or name decides it: a word in common is not a wish.
        """
        need = " ".join(telling(f"{message[:_LONGEST]} {context.task}"))
        wanted = Need(need if need != wish.category else "", wish.category)
        match = await self._matching.match(message[:_LONGEST], wanted, _ids_in(message, sure=True)[:_MOST_NAMES])
        if match.kind is MatchKind.DIRECT:
            (tool,) = match.tools
            return await self._explained(tool, Answers(Intent.DETAILS, wish.language), await self._others(tool, message))
        if match.composite is not None and (group := await self._groups.get(match.composite.group_id)):
            reply = answers.composite(group, await self._matching.get_base_tools(group.group_id))
            return await self._with_parts(reply, answers, message)
        is_need = bool(need or wish.category)
        if is_need and (wish.intent is Intent.DISCOVER or any(words_in_common(need, tool) for tool in match.tools)):
            return await self._with_parts(answers.tools_found(need, match.tools, context.description(message)), answers, message)
        return answers.undecided(context.description(message)) if len(need.split()) >= _OF_A_NEED else answers.help()

    async def _with_parts(self, reply: Reply, answers: Answers, message: str) -> Reply:
        """One search finds what the whole says most of; of several needs each is to have its tool, or it is said that there is none."""
        split = (chinese if answers.language == "zh" else english).AND_THEN.split(message[:_LONGEST]) if reply.tools else []
        parts = [(part, need) for part in split if len(need := telling(part)) >= _OF_A_NEED]
        for part, need in parts[:_MOST_PARTS] if len(parts) > 1 else ():
            found = await self._found(" ".join(need))
            said = [len(words_in_common(" ".join(need), tool)) for tool in found]
            most = max(said, default=0)
            fitting = [tool for tool, words in zip(found, said, strict=True) if words == most and 2 * most >= len(need)]
            if not any(tool.tool_id in reply.tool_ids for tool in fitting):
                reply = answers.with_part(reply, part.strip(), fitting[0] if fitting else None)
        return reply

    async def _details(self, wish: Wish, answers: Answers, message: str) -> Reply:
        ids = (*_ids_in(wish.about), *_ids_in(message, sure=True))
        if tool := await self._named(wish.about[:_LONGEST], ids=ids):
            return await self._explained(tool, answers, await self._others(tool, message))
        if group := await self._group(wish.about):
            return answers.group(group, await self._matching.get_base_tools(group.group_id))
        if reply := await self._composite(message, answers):
            return reply
        need = " ".join(telling(wish.about))
        found = [tool for tool in await self._found(need) if words_in_common(need, tool)] if need else []
        if not found:
            return answers.no_such_tool(wish.about, await self._nearest(wish.about))
        return await self._explained(found[0], answers, found[1:_OTHERS], asked=wish.about)

    async def _told_of(self, wish: Wish, answers: Answers, message: str, recall: Recall) -> Reply:
        """What the message refers to, or names."""
        if wish.intent is Intent.AGREE:
            return await self._agreed(wish, recall)
        return await (self._spoken_of(wish.place, answers, recall) if wish.place else self._details(wish, answers, message))

    async def _agreed(self, wish: Wish, recall: Recall) -> Reply:
        """What was said before is answered anew: what that offers is made."""
        before = (await recall()).message
        offered = (await self.answer(before)).solution if before else None
        answers = Answers(Intent.MAKE, wish.language)
        if not isinstance(offered, Proposal):
            return answers.not_clear()
        description = str(offered.body["description"])
        return await self._make(replace(wish, about=" ".join(telling(description))), answers, description)

    async def _spoken_of(self, place: int, answers: Answers, recall: Recall) -> Reply:
        earlier = await recall()
        tools = earlier.tools if place == 1 or len(earlier.tools) > 1 else earlier.listed
        found = await self._tools.list_some(tools[place - 1 : place] if place > 0 else tools[place:])
        return await self._explained(found[0].manifest, answers) if found else answers.not_clear()

    async def _explained(self, tool: ToolManifest, answers: Answers, others: Sequence[ToolManifest] = (), asked: str = "") -> Reply:
        return answers.details(tool, others, await self._session_of(tool), asked)

    async def _session_of(self, tool: ToolManifest) -> CompositeWorkflow | None:
        for group in await self._groups.with_lifecycle():
            if tool.tool_id in group.all_tool_ids:
                return composite_workflow(group, await self._matching.get_base_tools(group.group_id))
        return None

    async def _composite(self, message: str, answers: Answers) -> Reply | None:
        found = await self._matching.detect_composite_tool(message[:_LONGEST])
        group = await self._groups.get(found.group_id) if found else None
        return answers.composite(group, await self._matching.get_base_tools(group.group_id)) if group else None

    async def _groups_for(self, wish: Wish, answers: Answers) -> Reply:
        if group := await self._group(wish.about):
            return answers.group(group, await self._matching.get_base_tools(group.group_id))
        groups = await self._groups.list_all()
        match [group for group in groups if not {*group.all_tool_ids}.isdisjoint(_ids_in(wish.about, sure=True))]:
            case [group]:
                return answers.group(group, await self._matching.get_base_tools(group.group_id))
            case around:
                return answers.groups(around or groups)

    async def _group(self, group_id: str) -> ToolGroup | None:
        return await self._groups.get(group_id) if _ID.fullmatch(group_id) else None

    async def _status(self, wish: Wish, answers: Answers, recall: Recall) -> Reply:
        """Of the task that is named, else of those of the tool that is named, else of those of the conversation, else of the newest."""
        if re.fullmatch(r"(create|repair)_.*|(call|batch)-.*", wish.about):
            return answers.task(wish.about, await self._tasks.listed(wish.about) if is_making(wish.about) else None)
        tool_id = next(iter(_ids_in(wish.about, sure=True)), None)
        if tool_id and (tasks := await self._tasks.page(tool_id=tool_id, limit=_TASKS)):
            return answers.tasks(tasks)
        begun = [await self._tasks.listed(task_id) for task_id in (await recall()).task_ids[:_TASKS]]
        match [task for task in begun if task is not None]:
            case [task]:
                return answers.task(task.task_id, task)
            case tasks:
                return answers.tasks(tasks or await self._tasks.page(limit=_TASKS))

    async def _make(self, wish: Wish, answers: Answers, description: str) -> Reply:
        try:
            task = task_book(wish, description)
        except SpecError as error:
            return answers.refused(str(error))
        if task is None:
            return answers.not_clear()
        need = " ".join(telling(wish.about))
        near = [tool for tool in await self._found(need) if len(words_in_common(need, tool)) == len(need.split())] if need else []
        return answers.to_submit(task, description, await self.usual_time(task, answers.language), near[:_OTHERS])

    async def _repair(self, wish: Wish, answers: Answers, message: str) -> Reply:
        tool = await self._named(wish.about[:_LONGEST], ids=_ids_in(wish.about))
        if tool is None:
            is_id = _ID.fullmatch(wish.about) and len(wish.about) > _PRONOUN
            return answers.no_such_tool(wish.about, await self._nearest(wish.about)) if is_id else answers.not_clear()
        (entry,) = await self._tools.list_some((tool.tool_id,))
        try:
            task = repair_book(tool.tool_id, message)
        except SpecError as error:
            return answers.refused(str(error))
        why_not = unmendable(entry)
        return answers.refused(why_not) if why_not else answers.to_submit(task, message, await self.usual_time(task, answers.language))

    async def _named(self, name: str, ids: Sequence[str]) -> ToolManifest | None:
        """The tool of that name, or the first of these ids that is one."""
        if tool := await self._matching.match_tool(name):
            return tool
        found = await self._tools.list_some([*dict.fromkeys(ids)][:_MOST_NAMES])
        return found[0].manifest if found else None

    async def _others(self, tool: ToolManifest, message: str) -> list[ToolManifest]:
        """Those that the message names besides."""
        found = await self._tools.list_some([*dict.fromkeys(_ids_in(message, sure=True))][:_MOST_NAMES])
        return [entry.manifest for entry in found if entry.manifest.tool_id != tool.tool_id][:_OTHERS]

    async def _nearest(self, name: str) -> tuple[str, ...]:
        return nearest(name[:_MOST_LETTERS], await self._tools.list_ids())

    async def _found(self, need: str, category: str | None = None) -> list[ToolManifest]:
        found, _ = await self._matching.search(need, Filters(category=category), _SHOWN)
        return [entry.manifest for entry in found]


@dataclass(frozen=True, slots=True)
class _Context:
    task: str
    requirements: str

    @classmethod
    def of(cls, given: Mapping[str, JsonValue]) -> "_Context":
        task, requirements = given.get("task"), given.get("requirements")
        return cls(task if isinstance(task, str) else "", requirements if isinstance(requirements, str) else "")

    def description(self, message: str) -> str:
        """The whole wish."""
        return "\n\n".join(part.strip() for part in (message, self.task, self.requirements) if part.strip())


def _ids_in(text: str, *, sure: bool = False) -> tuple[str, ...]:
    """Words that may be ids of tools; `sure`: only those that can be nothing else."""
    found = (word.strip(":_-").lower() for word in _ID.findall(text[:_LONGEST]))
    return tuple(word for word in found if not sure or "_" in word or ":" in word)


def task_book(wish: Wish, description: str) -> BuildTool | GithubDeploy | RepairTool | None:
    """None when it is not clear what is to be made. Raises SpecError when it is clear and cannot be."""
    if url := repository_in(wish.about):
        name = tool_name_from(url.removesuffix("/").removesuffix(".git").rpartition("/")[2]) or tool_name_for(url)
        return read_spec({"type": "github_deploy", "repo_url": url, "tool_name": name}, description)
    name = tool_name_for(wish.about) if telling(wish.about) else ""
    if not name or _NO_NAME.fullmatch(name):
        return None
    return prose_spec("", description, name)


def repair_book(tool_id: str, error: str) -> BuildTool | GithubDeploy | RepairTool:
    """Raises SpecError."""
    return read_spec({"type": "repair_tool", "tool_id": tool_id, "error": error})


def telling(message: str) -> list[str]:
    """The words that say what is needed, without those that only ask; empty where there are none."""
    return [word for word in telling_words(message[:_LONGEST_NEED]) if word not in _ASKING and not is_empty(word) and not _is_letter(word)]


def _is_letter(word: str) -> bool:
    return len(word) == 1 and word.isascii()
