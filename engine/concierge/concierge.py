"""Answers requests in plain words by rules, from the tools, groups and tasks of the service."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from pydantic import JsonValue

from engine.concierge import chinese, english
from engine.concierge.answers import Answers
from engine.concierge.recognising import Wish, recognised, repository_in
from engine.concierge.solutions import composite_workflow
from engine.registry.matching.evidence import words_in_common
from engine.registry.matching.matching import Matching, Need
from engine.registry.matching.words import is_empty, telling_words
from engine.store.groups import GroupTable
from engine.store.tasks import TaskTable
from engine.store.tools import ToolTable
from toolagent.contracts.agent_chat import Proposal
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
"""A message with fewer telling words, such as `great`, is no need."""
_MOST_LETTERS = 128
_MOST_PARTS = 4
_PRONOUN = 4
"""Letters of the longest pronoun (`this`, `that`): the id of a tool is longer."""

Recall = Callable[[], Awaitable[Earlier]]
"""The conversation before the message. It is read only if the message refers to it."""

_NO_NAME = re.compile(r"tool_[0-9a-f]{8}")

_ENGLISH = """tool tools api apis service services something anything everything any all available find finding look looking search
 searching recommend suggest offer offering category thing stuff way able help provide hello hi hey thanks thank using related build
 create write develop implement"""
_CHINESE = """工具 接口 服务 程序 功能 推荐 推荐一下 搜索 搜 找 找找 查找 查询一下 提供 有关 相关 关于 请问 贵方 是否 哪些 有哪些
 有什么 能否 可不可以 想要 类别 分类 谢谢 你好 您好 创建 制作 开发 编写 个工具 东西"""
_ASKING = frozenset((*_ENGLISH.split(), *_CHINESE.split()))
_LONGEST_NEED = 500
"""Characters of a need that are read: more words find nothing else, but take time."""


async def _nothing() -> Earlier:
    return Earlier()


class Concierge:
    """Reads only: a task that it proposes is in its reply. All methods raise StoreUnavailableError."""

    def __init__(self, matching: Matching, tools: ToolTable, groups: GroupTable, tasks: TaskTable, *, has_model: bool) -> None:
        """`has_model`: a model is set that writes tools."""
        self._matching, self._tools, self._groups, self._tasks, self._has_model = matching, tools, groups, tasks, has_model

    async def answer(self, message: str, context: Mapping[str, JsonValue] | None = None, recall: Recall = _nothing) -> Reply:
        """Reads the texts `task` and `requirements` of the context. `recall` gives the conversation of the message."""
        wish, texts = recognised(message), [(context or {}).get(name) for name in ("task", "requirements")]
        task, requirements = (text if isinstance(text, str) else "" for text in texts)
        description = "\n\n".join(part.strip() for part in (message, task, requirements) if part.strip())
        answers = Answers(wish.intent, wish.language)
        match wish.intent:
            case Intent.HELP | Intent.THANKS | Intent.LIST | Intent.RUNTIMES | Intent.GROUPS:
                return await self._state(wish, answers)
            case Intent.STATUS:
                return await self._status(wish, answers, recall)
            case Intent.AGREE:
                return await self._agreed(wish, recall)
            case Intent.DETAILS:
                return await (self._spoken_of(wish.place, answers, recall) if wish.place else self._details(wish, answers, message))
            case Intent.MAKE:
                return await self._make(wish, answers, description)
            case Intent.REPAIR:
                return await self._repair(wish, answers, message)
            case Intent.DISCOVER | Intent.UNDECIDED:
                return await self._discover(wish, answers, message, task, description)

    async def usual_time(self, task: TaskSpec, language: Language) -> str | None:
        """How long such a task takes; None if it needs a model, and none is set. Many repositories need none."""
        if not (self._has_model or isinstance(task, GithubDeploy)):
            return None
        # A task that ended at its inspection made nothing, so its time says nothing.
        earlier = await self._tasks.page(status=TaskState.COMPLETED, spec_type=task.type, not_at=Stage.INSPECT, limit=_TIMED)
        return Answers(Intent.MAKE, language).time(earlier)

    async def _state(self, wish: Wish, answers: Answers) -> Reply:
        """Answers about the service itself: its help, tools, runtimes or groups."""
        match wish.intent:
            case Intent.HELP:
                return answers.help()
            case Intent.THANKS:
                return answers.welcome()
            case Intent.LIST:
                first = await self._matching.search_tools(limit=_SHOWN)
                return answers.list(await self._matching.counts(), [entry.manifest for entry in first])
            case Intent.RUNTIMES:
                return answers.runtimes(await self._matching.counts())
            case _:
                return await self._groups_for(wish, answers)

    async def _discover(self, wish: Wish, answers: Answers, message: str, task: str, description: str) -> Reply:
        """Finds tools by an id or a name, else by a named group, else by words and meanings.

        An undecided message needs an id, a name or a word in common: else it is answered as undecided.
        """
        need = " ".join(telling(f"{message[:_LONGEST]} {task}"))
        wanted = Need(need if need != wish.category else "", wish.category)
        match = await self._matching.match(message[:_LONGEST], wanted, _ids_in(message, sure=True)[:_MOST_NAMES])
        if match.kind is MatchKind.DIRECT:
            (tool,) = match.tools
            return await self._explained(tool, Answers(Intent.DETAILS, wish.language), await self._others(tool, message))
        if match.composite is not None and (group := await self._groups.get(match.composite.group_id)):
            return await self._with_parts(answers.composite(group, await self._tools_of(group)), answers, message)
        is_need = bool(need or wish.category)
        if is_need and (wish.intent is Intent.DISCOVER or any(words_in_common(need, tool) for tool in match.tools)):
            return await self._with_parts(answers.tools_found(need, match.tools, description), answers, message)
        return answers.undecided(description) if len(need.split()) >= _OF_A_NEED else answers.help()

    async def _with_parts(self, reply: Reply, answers: Answers, message: str) -> Reply:
        """Adds the needs of the message that the reply misses: a search for the whole finds what most of its words are about."""
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
            return answers.group(group, await self._tools_of(group))
        composite = await self._matching.detect_composite_tool(message[:_LONGEST])
        if composite and (group := await self._groups.get(composite.group_id)):
            return answers.composite(group, await self._tools_of(group))
        need = " ".join(telling(wish.about))
        found = [tool for tool in await self._found(need) if words_in_common(need, tool)] if need else []
        if not found:
            return answers.no_such_tool(wish.about, await self._nearest(wish.about))
        return await self._explained(found[0], answers, found[1:_OTHERS], asked=wish.about)

    async def _agreed(self, wish: Wish, recall: Recall) -> Reply:
        """Answers the message before anew, and has the tool made that this offers."""
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
        group = next((group for group in await self._groups.with_lifecycle() if tool.tool_id in group.all_tool_ids), None)
        return answers.details(tool, others, composite_workflow(group, await self._tools_of(group)) if group else None, asked)

    async def _groups_for(self, wish: Wish, answers: Answers) -> Reply:
        if group := await self._group(wish.about):
            return answers.group(group, await self._tools_of(group))
        groups = await self._groups.list_all()
        match [group for group in groups if not group.all_tool_ids.isdisjoint(_ids_in(wish.about, sure=True))]:
            case [group]:
                return answers.group(group, await self._tools_of(group))
            case around:
                return answers.groups(around or groups)

    async def _tools_of(self, group: ToolGroup) -> Sequence[ToolManifest]:
        return await self._matching.get_base_tools(group.group_id)

    async def _group(self, group_id: str) -> ToolGroup | None:
        return await self._groups.get(group_id) if _ID.fullmatch(group_id) else None

    async def _status(self, wish: Wish, answers: Answers, recall: Recall) -> Reply:
        """The status of the named task, else of the tasks of the named tool, else of those of the conversation, else of the newest."""
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
            task = _spec_of(wish, description)
        except SpecError as error:
            return answers.refused(str(error))
        if task is None:
            return answers.not_clear()
        # The words of an address say nothing of what its repository does.
        need = " ".join(telling(wish.about)) if isinstance(task, BuildTool) else ""
        near = [tool for tool in await self._found(need) if len(words_in_common(need, tool)) == len(need.split())] if need else []
        return answers.to_submit(task, description, await self.usual_time(task, answers.language), near[:_OTHERS])

    async def _repair(self, wish: Wish, answers: Answers, message: str) -> Reply:
        tool = await self._named(wish.about[:_LONGEST], ids=_ids_in(wish.about))
        if tool is None:
            is_id = _ID.fullmatch(wish.about) and len(wish.about) > _PRONOUN
            return answers.no_such_tool(wish.about, await self._nearest(wish.about)) if is_id else answers.not_clear()
        (entry,) = await self._tools.list_some((tool.tool_id,))
        try:
            task = read_spec({"type": "repair_tool", "tool_id": tool.tool_id, "error": message})
        except SpecError as error:
            return answers.refused(str(error))
        why_not = unmendable(entry)
        return answers.refused(why_not) if why_not else answers.to_submit(task, message, await self.usual_time(task, answers.language))

    async def _named(self, name: str, ids: Sequence[str]) -> ToolManifest | None:
        """The tool of that name, or the first of these ids that names one."""
        if tool := await self._matching.match_tool(name):
            return tool
        return next(iter(await self._listed(ids)), None)

    async def _others(self, tool: ToolManifest, message: str) -> list[ToolManifest]:
        """Other tools that the message names."""
        return [one for one in await self._listed(_ids_in(message, sure=True)) if one.tool_id != tool.tool_id][:_OTHERS]

    async def _listed(self, ids: Sequence[str]) -> list[ToolManifest]:
        return [entry.manifest for entry in await self._tools.list_some([*dict.fromkeys(ids)][:_MOST_NAMES])]

    async def _nearest(self, name: str) -> tuple[str, ...]:
        return nearest(name[:_MOST_LETTERS], await self._tools.list_ids())

    async def _found(self, need: str) -> list[ToolManifest]:
        return [entry.manifest for entry in await self._matching.search_tools(need, limit=_SHOWN)]


def _ids_in(text: str, *, sure: bool = False) -> tuple[str, ...]:
    """Words that may be ids of tools; `sure`: only words that can be nothing else."""
    found = (word.strip(":_-").lower() for word in _ID.findall(text[:_LONGEST]))
    return tuple(word for word in found if not sure or "_" in word or ":" in word)


def _spec_of(wish: Wish, description: str) -> BuildTool | GithubDeploy | RepairTool | None:
    """The task that makes the tool; None if the tool is unclear. Raises SpecError if it is clear but impossible."""
    if url := repository_in(wish.about):
        name = tool_name_from(url.removesuffix("/").removesuffix(".git").rpartition("/")[2]) or tool_name_for(url)
        return read_spec({"type": "github_deploy", "repo_url": url, "tool_name": name}, description)
    name = tool_name_for(wish.about) if telling(wish.about) else ""
    if not name or _NO_NAME.fullmatch(name):
        return None
    return prose_spec("", description, name)


def telling(message: str) -> list[str]:
    """The words that say what is needed, without words that only ask and without single letters."""
    words = telling_words(message[:_LONGEST_NEED])
    return [word for word in words if word not in _ASKING and not is_empty(word) and not (len(word) == 1 and word.isascii())]
