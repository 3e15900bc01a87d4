"""An agent of the OpenAI Agents SDK with two of Tool Agent's tools.

A class plays the model, so it runs without a key.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Tool, TResponseInputItem, Usage, set_tracing_disabled
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from toolagent import ToolAgentHttp
from toolagent.integrations.openai_agents import tools


class ScriptedModel(Model):
    """What a model might do: it writes broken JSON, and then what it meant."""

    async def get_response(
        self,
        system_instructions: str | None,  # noqa: ARG002 - the SDK's names
        input: str | list[TResponseInputItem],
        model_settings: Any,  # noqa: ARG002
        tools: list[Tool],
        *_: Any,
        **__: Any,
    ) -> ModelResponse:
        outputs = [item["output"] for item in input if isinstance(item, dict) and item.get("type") == "function_call_output"]
        match outputs:
            case []:
                show("offered", [tool.name for tool in tools])
                return use('{"expression": "6 * ', 1)
            case [fault]:
                show("told", fault)
                return use('{"expression": "6 * 7"}', 2)
            case [*_, done]:
                text = ResponseOutputText(text=f"It is {json.loads(str(done))['result']}.", type="output_text", annotations=[])
                said = ResponseOutputMessage(id="msg_1", role="assistant", status="completed", type="message", content=[text])
                return ModelResponse(output=[said], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError("This model does not stream.")


def use(arguments: str, number: int) -> ModelResponse:
    called = ResponseFunctionToolCall(call_id=f"call_{number}", name="calculator", arguments=arguments, type="function_call")
    return ModelResponse(output=[called], usage=Usage(), response_id=None)


def show(name: str, value: object) -> None:
    sys.stdout.write(f"{name}: {json.dumps(value)}\n")


async def main(url: str) -> None:
    set_tracing_disabled(disabled=True)
    with ToolAgentHttp(url) as service:
        # A model of yours: Agent(…, model="gpt-…").
        agent = Agent("Reckoner", model=ScriptedModel(), tools=[*tools(service, "calculator", "echo")])
        show("answer", (await Runner.run(agent, "What is 6 times 7?")).final_output)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8001"))
