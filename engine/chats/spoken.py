"""A reply by rules as text, for chats, which show only text."""

import json
from collections.abc import Iterator

from toolagent.contracts.agent_chat import CompositeWorkflow, Proposal, SingleCall, Solution
from toolagent_service.contracts.concierge import Intent, Language, Reply

_BY_RULES: dict[Language, str] = {"en": "(By rules, without a model.)", "zh": "(按规则回答,没有使用模型。)"}
_NOT_BEGUN: dict[Language, str] = {"en": "This cannot be begun: ", "zh": "无法开始:"}
_AGREE: dict[Language, str] = {
    "en": "- “yes, build it” has it made by a task of this chat",
    "zh": "- 回复“好的,就这样做”,即由本对话提交创建任务",
}
_SAYS_SO = frozenset({Intent.HELP, Intent.THANKS, Intent.UNDECIDED})
"""Replies that say themselves that no model answers, or that answer nothing."""


def spoken(reply: Reply) -> str:
    """The reply, its tools, the requests of its solution, the next steps, and a note that rules answered."""
    tools = "\n".join(_tools(reply))
    requests = "\n".join(_requests(reply.solution))
    # A chat has no field `tracking`, so the text contains its content.
    steps = (step for step in reply.next_steps if "`tracking`" not in step)
    after = "\n".join(f"- {step}" for step in (reply.tracking, *steps) if step)
    if isinstance(reply.solution, Proposal):
        after = "\n".join((_AGREE[reply.language], after))
    by_rules = "" if reply.intent in _SAYS_SO else _BY_RULES[reply.language]
    return "\n\n".join(part for part in (reply.reply, tools, requests, after, by_rules) if part)


def not_begun(reason: str, language: Language) -> str:
    """The reply if the task cannot be begun."""
    return f"{_NOT_BEGUN[language]}{reason}\n\n{_BY_RULES[language]}"


def _tools(reply: Reply) -> Iterator[str]:
    """One line a tool: the reply itself names at most one. The tools of a group stand with their requests."""
    if isinstance(reply.solution, CompositeWorkflow):
        return
    first = 1 if reply.intent is Intent.DETAILS else 0
    for tool in reply.tools[first:]:
        yield f"- {tool.tool_id}: {tool.reason}"


def _requests(solution: Solution | None) -> Iterator[str]:
    match solution:
        case SingleCall(tool_id=tool_id, params=params):
            yield f"POST /select_tool {_json({'tool_id': tool_id, 'params': params})}"
        case Proposal(method=method, path=path, body=body):
            yield f"solution: {method} {path} {_json(body)}"
        case CompositeWorkflow(steps=steps):
            for step in steps:
                returns = f" → {step.returns}" if step.returns else ""
                yield f"{step.step}. {step.tool} {_json(step.params)}{returns}"
        case _:
            pass


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
