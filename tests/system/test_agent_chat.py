"""Three conversations of an agent with the front door of a running service, and an answer to the call of a ComfyUI node by name."""

import pytest
from pydantic import JsonValue

from tests.system.service_process import ServiceProcess
from toolagent.contracts.agent_chat import AgentAnswer, CompositeWorkflow
from toolagent.contracts.matching import CompositeTool

pytestmark = pytest.mark.timeout(180)

_STEPS = ("launch_comfy_env", "runcomfy_workflow_executor", "runcomfy_stop_env")


def _said(service: ServiceProcess, message: str, **context: JsonValue) -> AgentAnswer:
    answer = service.http.post("/agent/chat", json={"message": message, "context": context})
    assert answer.status_code == 200, answer.text
    return AgentAnswer.model_validate_json(answer.content)


def test_tools_are_found_explained_and_made_in_plain_words(service: ServiceProcess) -> None:
    found = _said(service, "我需要处理图片的工具", task="批量压缩图片")
    assert found.tools[0].tool_id == "image_compress_api"
    explained = _said(service, "如何使用 ComfyUI 的 LoadImage 和 SaveImage 节点?")
    assert isinstance(explained.solution, CompositeWorkflow)
    assert explained.solution.base_tools == _STEPS
    made = _said(service, "帮我创建一个文本摘要工具", requirements="支持中英文,最大长度 500 字")
    assert made.tracking == f"使用 GET /tasks/{made.task_id} 查询进度"
    task = service.http.get(f"/tasks/{made.task_id}").raise_for_status().json()
    assert (task["task_id"], task["type"], task["tool_id"]) == (made.task_id, "build_tool", "wenben_zhaiyao")
    assert service.http.post(f"/tasks/{made.task_id}/cancel").is_success


@pytest.mark.parametrize("path", ["/run_tool", "/select_tool"])
def test_a_call_of_a_node_is_answered_with_the_tools_that_do_it(service: ServiceProcess, path: str) -> None:
    answer = service.http.post(path, json={"tool_id": "LoadImage", "params": {}})
    assert answer.status_code == 404
    details = answer.json()["error"]["details"]
    composite = CompositeTool.model_validate(details["composite"])
    assert tuple(tool.tool_id for tool in composite.base_tools) == _STEPS
    assert {*composite.workflow_example} == {"description", "steps", "workflow_json"}
    nothing = service.http.post(path, json={"tool_id": "zebra_counter", "params": {}}).json()["error"]["details"]
    assert (nothing["create_tool"], "composite" in nothing) == ({"method": "POST", "path": "/create_tool"}, False)
