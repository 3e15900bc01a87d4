"""An agent of Pydantic AI with two of Tool Agent's tools.

A function plays the model, so it runs without a key.
"""

import json
import sys

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from toolagent import ToolAgentHttp
from toolagent.integrations.pydantic_ai import tools


def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """What a model might do: it gets its arguments wrong, and then right."""
    match messages[-1].parts[-1]:
        case ToolReturnPart(content={"error": error}):
            show("told", error["message"])
            return ModelResponse(parts=[ToolCallPart("calculator", {"expression": "6 * 7"})])
        case ToolReturnPart(content={"result": result}):
            return ModelResponse(parts=[TextPart(f"It is {result}.")])
        case _:
            show("offered", [tool.name for tool in info.function_tools])
            return ModelResponse(parts=[ToolCallPart("calculator", {"formula": "6 * 7"})])


def show(name: str, value: object) -> None:
    sys.stdout.write(f"{name}: {json.dumps(value)}\n")


def main(url: str) -> None:
    with ToolAgentHttp(url) as service:
        # A model of yours: Agent("anthropic:claude-…", tools=…).
        agent = Agent(FunctionModel(model), tools=tools(service, "calculator", "echo"))
        show("answer", agent.run_sync("What is 6 times 7?").output)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8001")
