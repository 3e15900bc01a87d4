"""Which tools a model can call through `run_openai` and `run_anthropic`."""

import json

import httpx
import pytest
from pydantic import JsonValue

from toolagent.client.http_formats import FormatRequests
from toolagent.contracts.calls import ToolCall, ToolResult
from toolagent.contracts.formats import FormattedTools

OFFERED, ALL = {"weather": "weather"}, {"weather": "weather", "shop__buy": "shop:buy"}


class Service(FormatRequests):
    """Two tools, one of them with the tag `safe`. `made` are the calls."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def _ask(
        self,
        method: str,
        path: str,
        body: dict[str, JsonValue] | None = None,
        *,
        unbounded: bool = False,
        headers: dict[str, str] | None = None,
    ) -> httpx.Response:
        assert (method, body, unbounded, headers) == ("GET", None, False, None)
        names = OFFERED if "tag=safe" in path else ALL
        return httpx.Response(200, text=FormattedTools(tools=(), names=names).model_dump_json())

    def run(self, call: ToolCall) -> ToolResult:
        self.made.append(call.tool_id)
        return ToolResult(status="success", result={}, call_id="call-12345678")


@pytest.mark.parametrize(("is_listed", "made"), [(True, ["weather"]), (False, ["shop:buy", "weather"])])
def test_a_model_calls_only_what_it_was_offered(*, is_listed: bool, made: list[str]) -> None:
    service = Service()
    if is_listed:
        service.tools_as("openai", tag="safe")
    uses: list[dict[str, JsonValue]] = [{"type": "tool_use", "id": "1", "name": name, "input": {}} for name in ("shop__buy", "weather")]
    answers = [service.run_anthropic(use) for use in uses]
    assert service.made == made
    assert [json.loads(str(answer["content"])).get("error", {}).get("type") for answer in answers] == [
        "tool_not_found" if is_listed else None,
        None,
    ]
