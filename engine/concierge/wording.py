"""Texts of the concierge, in both languages."""

from typing import NamedTuple

from toolagent.contracts.backend_runtimes import BackendRuntime
from toolagent.contracts.tasks import TaskState
from toolagent_service.contracts.concierge import Language


class Text(NamedTuple):
    en: str
    zh: str

    def said(self, language: Language, **values: object) -> str:
        return (self.zh if language == "zh" else self.en).format(**values)


BY_RULES = Text(
    "I answer by rules, without a model: I recognise questions about tools, groups, runtimes and tasks, and wishes for new tools.",
    "我按规则回答,没有使用模型:能识别关于工具、工具组、运行环境、任务的问题,以及创建工具的请求。",
)
FOUND = Text("Found {count} tools, the best is {best}", "找到 {count} 个相关工具,推荐使用 {best}")
FOUND_ONE = Text("Found one tool: {best}", "找到 1 个相关工具:{best}")
NEAREST = Text("No tool is a sure match. The nearest: {tools}", "没有完全匹配的工具,最接近的是:{tools}")
NONE = Text("There is no tool for this yet.", "目前没有符合需求的工具。")
NO_SUCH_TOOL = Text("There is no tool {name!r}.{hint}", "没有名为 {name!r} 的工具。{hint}")
DID_YOU_MEAN = Text(" Did you mean {near}?", "您是指 {near} 吗?")
CLOSEST = Text("No tool is called {name!r}. The closest is {tool}. ", "没有名为 {name!r} 的工具,最接近的是 {tool}。")
DETAILS = Text("{tool_id} ({name}): {description} Params: {params}.", "{tool_id}({name}):{description} 参数:{params}。")
PARAM = Text("{name} ({type}{required})", "{name}({type}{required})")
REQUIRED = Text(", required", ",必填")
NO_PARAMS = Text("none", "无")
IN_SESSION = Text("It is used in a session of the group {group}.", "它需要在工具组 {group} 的会话中使用。")
COMPOSITE = Text(
    "The tools of the group {group} do this together, in {count} steps",
    "已通过工具组 {group} 接入,需要{count}步操作",
)
GROUP = Text("{group}: {description} Order: {order}.", "{group}:{description} 使用顺序:{order}。")
GROUPS = Text("There are {count} groups: {groups}.", "共有 {count} 个工具组:{groups}。")
NO_GROUPS = Text("There are no groups.", "目前没有工具组。")
RUNTIMES = Text("Tools run in: {runtimes}.", "工具的后端运行环境有:{runtimes}。")
LISTED = Text("There are {count} tools: {categories}.", "共有 {count} 个工具:{categories}。")
TASK = Text("Task {task_id} is {status}{stage}.{reason}", "任务 {task_id} 的状态:{status}{stage}。{reason}")
REASON = Text(" {reason}", "详情(英文原文):{reason}")
AT_STAGE = Text(" (stage {stage}{progress})", "(阶段 {stage}{progress})")
NO_TASK = Text("There is no task {task_id}.", "没有任务 {task_id}。")
A_CALL = Text("{task_id} is a call or a batch.", "{task_id} 是一次调用或一批调用。")
TASKS = Text("The newest tasks: {tasks}.", "最近的任务:{tasks}。")
NO_TASKS = Text("No tool was asked for yet.", "目前没有创建工具的任务。")
SUBMITTED = Text("A task that creates the tool is submitted; {outlook}", "已提交工具创建任务,{outlook}")
REPAIRING = Text("A task that repairs {tool_id} is submitted; {outlook}", "已提交修复 {tool_id} 的任务,{outlook}")
TAKES = Text("it takes about {time}", "预计 {time}完成")
NOT_WRITTEN = Text(
    "no model is set that could write it, so it fails unless a tool does it already",
    "但没有设置可以编写工具的模型:除非已有工具能满足需求,否则任务会失败",
)
NOT_REPAIRED = Text("no model is set that could do it, so it fails", "但没有设置可以修复工具的模型,任务会失败")
WHICH_TOOL = Text(
    "What is the tool to do? Say it in a sentence, or name a repository.", "需要什么样的工具?请用一句话说明它的功能,或给出仓库地址。"
)
NOT_SO = Text("This cannot be begun: {reason}", "无法开始:{reason}")
WHICH_DETAILS = Text("Which tool do you mean? Name its id, or say what it is to do.", "您指的是哪个工具?请给出它的 id,或说明需求。")
WHICH_REPAIR = Text("Which tool is to be repaired? Name its id.", "要修复哪个工具?请给出它的 id。")
HELP = Text(
    "I find tools for a need, explain how they are used, name groups and runtimes, tell how far a task is, and have tools made and "
    "repaired.",
    "我可以按需求查找工具、说明用法、介绍工具组和运行环境、查询任务进度,也可以创建和修复工具。",
)

WELCOME = Text("You are welcome.", "不客气。")

ALSO = Text(" For “{part}”: {tool}.", "“{part}”可以用 {tool}。")
NOT_ALSO = Text(" No tool is known for “{part}”.", "“{part}”目前没有合适的工具。")

DEFAULT_TIME = Text("2-3 minutes", "2-3 分钟")
UNDER_A_MINUTE = Text("a minute", "1 分钟")
MINUTES = Text("{minutes} minutes", "{minutes} 分钟")

CALL_IT = Text("POST /select_tool calls {tool_id}", "调用 /select_tool 使用 {tool_id}")
SEE_IT = Text("GET /tools/{tool_id} shows its schemas", "GET /tools/{tool_id} 查看完整参数")
REPAIR_IT = Text("POST /tools/{tool_id}/repair has it repaired if it is broken", "如果工具有故障,POST /tools/{tool_id}/repair 可以修复")
SEARCH = Text("POST /search_tools finds tools by other words", "换一种说法,用 POST /search_tools 搜索")
HAVE_IT_MADE = Text(
    "POST /create_tool has a tool made: `solution` is the request, or say “make a tool that …”",
    "用 POST /create_tool 创建工具:`solution` 就是请求,或者直接说“帮我创建一个……工具”",
)
SAY_WHAT = Text("Say “make a tool that …”, or “deploy https://github.com/…”", "请说“帮我创建一个……工具”,或“部署 https://github.com/……”")
LIST_ALL = Text("GET /tools lists all", "GET /tools 列出全部工具")
OPEN_SESSION = Text(
    "{request} opens a session, which stops by itself what it launched", "{request} 打开会话,会话结束时自动清理所启动的环境"
)
CALL_STEPS = Text("Call the steps in their order with /select_tool", "按顺序用 /select_tool 调用各步骤")
ASK_DETAILS = Text("Ask “how do I use {tool_id}”", "可以问“{tool_id} 怎么用”")
FOLLOW = Text("GET /tasks/{task_id}/events follows it", "GET /tasks/{task_id}/events 实时查看进展")
CANCEL_IT = Text("POST /tasks/{task_id}/cancel cancels it", "POST /tasks/{task_id}/cancel 取消任务")
SET_MODEL = Text(
    "Set TOOL_AGENT_MODEL and TOOL_AGENT_MODEL_API_KEY (or TOOL_AGENT_MODEL_BASE_URL), start the service again, and ask again",
    "设置 TOOL_AGENT_MODEL 和 TOOL_AGENT_MODEL_API_KEY(或 TOOL_AGENT_MODEL_BASE_URL),重启服务后再次提出请求",
)
FOLLOW_NEW = Text("GET the address in `tracking` until the task has ended", "按 `tracking` 查询,直到任务结束")
PERHAPS_THERE = Text("One of the tools named here may do it already", "这里列出的工具可能已能满足需求")
LIST_TASKS = Text("GET /tasks lists the tasks", "GET /tasks 列出任务")
GET_TASK = Text("GET /tasks/{task_id} shows its state and result", "GET /tasks/{task_id} 查看状态和结果")
EXAMPLES = Text(
    "Ask for example: “which tools can compress pictures?”, “how do I use image_stitcher?”, “how far is create_a1b2c3d4?”",
    "例如:“有哪些图片处理工具?”“image_stitcher 怎么用?”“create_a1b2c3d4 进度怎么样?”",
)
MATCHED = Text("{words}: {description}", "{words}:{description}")

RUNTIME_NAMES = {
    BackendRuntime.LOCAL: Text("local Python", "本地 Python 运行时"),
    BackendRuntime.DOCKER: Text("Docker containers", "Docker 容器运行时"),
    BackendRuntime.REMOTE: Text("remote API", "远程 API / 云端服务"),
}
STATES = {
    TaskState.PENDING: Text("pending", "等待中"),
    TaskState.RUNNING: Text("running", "进行中"),
    TaskState.COMPLETED: Text("completed", "已完成"),
    TaskState.FAILED: Text("failed", "失败"),
    TaskState.CANCELLED: Text("cancelled", "已取消"),
}
NUMERALS = "零一二三四五六七八九十"


def counted(count: int, language: Language) -> str:
    """`三` or `3`."""
    return NUMERALS[count] if language == "zh" and count < len(NUMERALS) else str(count)


def listed(words: list[str] | tuple[str, ...], language: Language) -> str:
    return ("、" if language == "zh" else ", ").join(words)
