"""A loop of LangChain with two of Tool Agent's tools.

LangChain's own fake plays the model, so it runs without a key.
"""

import json
import sys
from collections.abc import Sequence
from typing import Any

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolCall
from langchain_core.tools import BaseTool

from toolagent import ToolAgentHttp
from toolagent.integrations.langchain import tools


class FakeModel(GenericFakeChatModel):
    """Says what it was given to say; a real one has `bind_tools` of its own."""

    def bind_tools(self, tools: Sequence[BaseTool], **_: Any) -> "FakeModel":
        show("offered", [tool.name for tool in tools])
        return self


def called(params: dict[str, Any], number: int) -> AIMessage:
    return AIMessage("", tool_calls=[ToolCall(name="calculator", args=params, id=f"call_{number}")])


# It gets its arguments wrong, and then right.
MODEL = FakeModel(messages=iter([called({"formula": "6 * 7"}, 1), called({"expression": "6 * 7"}, 2), AIMessage("It is 42.")]))


def show(name: str, value: object) -> None:
    sys.stdout.write(f"{name}: {json.dumps(value)}\n")


def main(url: str) -> None:
    with ToolAgentHttp(url) as service:
        offered = {tool.name: tool for tool in tools(service, "calculator", "echo")}
        # A model of yours: ChatAnthropic(model="claude-…").bind_tools(…).
        model = MODEL.bind_tools([*offered.values()])
        messages: list[AnyMessage] = [HumanMessage("What is 6 times 7?")]
        while (answer := model.invoke(messages)).tool_calls:
            told = [offered[use["name"]].invoke({**use, "type": "tool_call"}) for use in answer.tool_calls]
            show("told", [(message.status, [*json.loads(message.content)]) for message in told])
            messages += [answer, *told]
        show("answer", answer.content)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8001")
