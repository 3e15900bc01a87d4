"""The HTTP client, for other programs: what it returns and what it raises."""

import socket
import threading
from typing import TYPE_CHECKING

import pytest

from toolagent.client.http import Refused, ToolAgentHttp, UnexpectedAnswer, Unreachable
from toolagent.client.http_calls import HttpCalls
from toolagent.contracts.calls import CallMode, ErrorType, ToolCall, ToolResult
from toolagent.contracts.http import TaskAccepted
from toolagent.contracts.routes import RunState

if TYPE_CHECKING:
    from tests.cli.conftest import Service


def test_a_synchronous_call_returns_its_result_and_an_asynchronous_one_its_task(service: "Service") -> None:
    with ToolAgentHttp(service.url) as client:
        result = client.run(ToolCall(tool_id="echo", params={"text": "x"}))
        accepted = client.run(ToolCall(tool_id="echo", params={"text": "x"}, mode=CallMode.ASYNC))
    assert isinstance(result, ToolResult)
    assert result.result == {"text": "x"}
    assert isinstance(accepted, TaskAccepted)


def test_what_a_tool_got_wrong_is_returned_not_raised(service: "Service") -> None:
    with ToolAgentHttp(service.url) as client:
        result = client.run(ToolCall(tool_id="refuser"))
    assert isinstance(result, ToolResult)
    assert result.error_type is ErrorType.VALIDATION_ERROR


def test_a_tool_can_be_started_and_destroyed(service: "Service") -> None:
    with ToolAgentHttp(service.url) as client:
        assert client.start("echo").state is RunState.RUNNING
        client.destroy("echo")


def test_what_the_service_refuses_is_raised_with_its_problem(service: "Service") -> None:
    with ToolAgentHttp(service.url) as client, pytest.raises(Refused) as raised:
        client.task("call-none")
    assert raised.value.problem.status == 404


def test_an_answer_of_another_protocol_is_raised_as_such(service: "Service") -> None:
    with ToolAgentHttp(f"{service.url}/elsewhere") as client, pytest.raises(UnexpectedAnswer):
        client.health()


async def test_to_a_sub_agent_an_answer_of_another_protocol_is_a_result_with_unknown_outcome(service: "Service") -> None:
    with ToolAgentHttp(f"{service.url}/elsewhere") as client:
        result = await HttpCalls(client).run(ToolCall(tool_id="echo"))
    assert result.error is not None
    assert (result.error.type, result.error.details) == (ErrorType.UNAVAILABLE, {"outcome": "unknown"})


def test_nobody_there_means_the_request_was_not_sent() -> None:
    with ToolAgentHttp("http://127.0.0.1:1") as client, pytest.raises(Unreachable) as raised:
        client.health()
    assert not raised.value.sent


def test_a_connection_that_breaks_may_have_carried_the_request() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def hang_up() -> None:
            connection, _ = listener.accept()
            connection.recv(65536)
            connection.close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        with ToolAgentHttp(f"http://127.0.0.1:{listener.getsockname()[1]}") as client, pytest.raises(Unreachable) as raised:
            client.run(ToolCall(tool_id="echo"))
        thread.join(10)
    assert raised.value.sent


def test_a_proxy_of_the_environment_does_not_stand_before_this_machine(service: "Service", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    with ToolAgentHttp(service.url) as client:
        assert client.health().status == "ok"
