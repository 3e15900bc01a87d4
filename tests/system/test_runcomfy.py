"""The RunComfy tools at a real service with a test server: a picture is uploaded to a rented server, and the result fetched."""

import io
from collections import Counter
from collections.abc import Generator
from pathlib import Path

import httpx
import pytest
from PIL import Image
from pydantic import JsonValue

from tests.system.service_process import ServiceProcess, run_tool
from toolagent.contracts.calls import ErrorType
from toolagent.testing.servers.runcomfy_ledger import Fault
from toolagent.testing.servers.runcomfy_server import RunComfyServer

IDS = {"launch_comfy_env", "runcomfy_workflow_executor", "runcomfy_stop_env"}
SAVED: JsonValue = {
    "nodes": [
        {"id": 1, "type": "LoadImage", "inputs": {"image": "input.png"}},
        {"id": 2, "type": "SaveImage", "inputs": {"images": ["1", 0]}},
    ]
}


@pytest.fixture(scope="module")
def runcomfy() -> Generator[RunComfyServer]:
    with RunComfyServer(start_s=0.5) as server:
        yield server


@pytest.fixture(scope="module")
def service(catalog: Path, runcomfy: RunComfyServer, tmp_path_factory: pytest.TempPathFactory) -> Generator[ServiceProcess]:
    account = runcomfy.account
    settings = {"SECRET_RUNCOMFY_USER_ID": account.user_id, "SECRET_RUNCOMFY_API_KEY": account.key}
    service = ServiceProcess(tmp_path_factory.mktemp("runcomfy"), catalog, RUNCOMFY_URL=runcomfy.api_url, **settings)
    service.start()
    yield service
    service.end()
    service.wait_until_nothing_is_left()


def _counts(runcomfy: RunComfyServer) -> Counter[str]:
    """How many servers were launched and stopped since the provider began."""
    return Counter({name: int(str(runcomfy.ledger()[name])) for name in ("launched", "stopped")})


def _picture() -> bytes:
    content = io.BytesIO()
    Image.effect_noise((60, 40), 50).save(content, "PNG")
    return content.getvalue()


def test_a_picture_comes_back_from_a_rented_server(service: ServiceProcess, runcomfy: RunComfyServer) -> None:
    picture, before = _picture(), _counts(runcomfy)
    uploaded = service.http.post("/files", files={"file": ("input.png", picture, "image/png")}).json()["file_id"]
    _, launched = run_tool(service.http, "launch_comfy_env", {}, key="one-launch")
    assert isinstance(launched.result, dict), launched.error
    server_id = launched.result["server_id"]

    again = run_tool(service.http, "launch_comfy_env", {}, key="one-launch")[1]
    assert again.result == launched.result

    params: dict[str, JsonValue] = {"server_id": server_id, "workflow": SAVED, "images": [{"name": "input.png", "file": uploaded}]}
    call_id = service.begin("runcomfy_workflow_executor", params)
    executed = service.ended_task(call_id).result
    assert executed is not None
    assert isinstance(executed.result, dict), executed.error
    made = executed.result["files"]
    assert isinstance(made, list)
    assert isinstance(made[0], dict)
    assert service.http.get(f"/files/{made[0]['file']}").raise_for_status().content == picture

    # The session that the launch began answers the second one as it was stopped, until it has ended.
    stops = [run_tool(service.http, "runcomfy_stop_env", {"server_id": server_id})[1] for _ in range(2)]
    assert [one.status for one in stops] == ["success"] * 2
    assert isinstance(stops[0].result, dict)
    assert stops[0].result["already_gone"] is False
    assert (_counts(runcomfy) - before, runcomfy.ledger()["running"]) == (Counter(launched=1, stopped=1), [])


def test_other_names_are_taken_and_not_listed(service: ServiceProcess, runcomfy: RunComfyServer) -> None:
    _, launched = run_tool(service.http, "runcomfy_launch_env", {})
    assert isinstance(launched.result, dict), launched.error
    assert launched.tool_id == "launch_comfy_env"
    server_id = launched.result["server_id"]
    status, refused = run_tool(service.http, "runcomfy_run_only", {"container_id": server_id, "workflow": SAVED})
    assert (status, refused.error_type) == (422, ErrorType.VALIDATION_ERROR)
    assert run_tool(service.http, "runcomfy_stop_env", {"container_id": server_id})[0] == 200
    assert runcomfy.ledger()["running"] == []
    assert service.http.get("/tools/runcomfy_launch_env").raise_for_status().json()["tool_id"] == "launch_comfy_env"
    action = {"text": "<ACTION><tool_id>runcomfy_run_only</tool_id></ACTION>"}
    said = service.http.post("/agent/action", json=action).raise_for_status().json()["observation"]["content"]
    assert "required" in said, said  # its inputs are judged, so it was found

    tools = service.http.get("/tools").json()
    assert {tool["tool_id"] for tool in tools["tools"] if tool["backend_runtime"] == "remote"} == IDS | {"runcomfy_list_envs"}
    (group,) = [one for one in tools["groups"] if one["group_id"] == "runcomfy_lifecycle"]
    assert set(group["tool_ids"]) == IDS
    assert tools["catalog_faults"] == []


def test_what_the_provider_says_becomes_the_error_of_the_call(service: ServiceProcess, runcomfy: RunComfyServer) -> None:
    before = _counts(runcomfy)
    runcomfy.fail(Fault(kind="402", at="launch"))
    _, refused = run_tool(service.http, "launch_comfy_env", {})
    assert refused.error_type is ErrorType.BUDGET_EXCEEDED
    runcomfy.fail(Fault(kind="never_ready"))
    answer = service.http.post("/run_tool", json={"tool_id": "launch_comfy_env", "params": {}, "timeout_s": 2}, timeout=httpx.Timeout(60))
    assert answer.json()["error_type"] == ErrorType.TIMEOUT
    assert (_counts(runcomfy) - before, runcomfy.ledger()["running"]) == (Counter(launched=1, stopped=1), [])
