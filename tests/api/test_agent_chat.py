"""`POST /agent/chat`: rules answer messages in plain words, and a clear request becomes a task."""

import dataclasses
from collections.abc import Mapping

import pytest
import pytest_asyncio
from pydantic import JsonValue

from tests.api.conftest import House, browse, with_doors
from tests.api.shipped import stock
from toolagent.contracts.agent_chat import AgentAnswer, CompositeWorkflow, Proposal, SingleCall
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import LocalSource
from toolagent.contracts.task_specs import BuildTool, GithubDeploy, RepairTool
from toolagent.contracts.tasks import TaskState

SEARCHED: dict[str, JsonValue] = {"message": "我需要处理图片的工具", "context": {"task": "批量压缩图片"}}
NODES: dict[str, JsonValue] = {"message": "如何使用 ComfyUI 的 LoadImage 和 SaveImage 节点?"}
WANTED: dict[str, JsonValue] = {"message": "帮我创建一个文本摘要工具", "context": {"requirements": "支持中英文,最大长度 500 字"}}


@pytest_asyncio.fixture
async def shop(house: House) -> House:
    await stock(house)
    return house


async def said(house: House, message: str | Mapping[str, JsonValue], **headers: str) -> AgentAnswer:
    body = {"message": message} if isinstance(message, str) else message
    answer = await house.http.post("/agent/chat", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    return AgentAnswer.model_validate_json(answer.content)


async def test_a_need_is_answered_with_tools_and_why(shop: House) -> None:
    answer = (await shop.http.post("/agent/chat", json=SEARCHED)).json()
    assert answer["tools"][0]["tool_id"] == "image_compress_api"
    assert {*answer["tools"][0]} == {"tool_id", "name", "reason", "usage_example"}
    assert answer["tools"][0]["reason"].startswith("图片、压缩:基于 PIL 的图片压缩")
    assert "image_path" in answer["tools"][0]["usage_example"]["params"]
    assert answer["next_steps"][0] == "调用 /select_tool 使用 image_compress_api"
    assert answer["reply"].endswith("推荐使用 image_compress_api")
    assert (answer["task_id"], answer["status"], answer["answered_by"]) == (None, None, "rules")


async def test_nodes_of_a_group_are_answered_with_its_steps(shop: House) -> None:
    answer = await said(shop, NODES)
    assert answer.reply == "已通过工具组 runcomfy_lifecycle 接入,需要三步操作"
    assert isinstance(answer.solution, CompositeWorkflow)
    assert answer.solution.base_tools == ("launch_comfy_env", "runcomfy_workflow_executor", "runcomfy_stop_env")
    launch, run, stop = answer.solution.steps
    assert (launch.step, launch.tool, launch.params, launch.returns) == (1, "launch_comfy_env", {}, "server_id")
    nodes = [
        {"id": 1, "type": "LoadImage", "inputs": {"image": "input.png"}},
        {"id": 2, "type": "SaveImage", "inputs": {"images": ["1", 0]}},
    ]
    assert run.params == {"server_id": "<from_step_1>", "workflow": {"nodes": nodes}}
    assert (stop.step, stop.params, stop.returns) == (3, {"server_id": "<from_step_1>"}, None)
    assert answer.solution.session == "POST /groups/runcomfy_lifecycle/sessions"


async def test_a_clear_wish_is_a_task_that_can_be_followed(shop: House) -> None:
    answer = await said(shop, WANTED)
    assert answer.reply == "已提交工具创建任务,预计 2-3 分钟完成"
    assert (answer.status, answer.estimated_time) == (TaskState.PENDING, "2-3 分钟")
    assert answer.tracking == f"使用 GET /tasks/{answer.task_id} 查询进度"
    assert [tool.tool_id for tool in answer.tools] == ["text_summarizer_api"], "it may do already"
    task = (await shop.http.get(f"/tasks/{answer.task_id}")).json()
    assert BuildTool.model_validate(task["task_spec"]) == BuildTool(
        tool_name="wenben_zhaiyao", description="帮我创建一个文本摘要工具\n\n支持中英文,最大长度 500 字"
    )
    followed = await said(shop, f"{answer.task_id} 进度怎么样?")
    assert (followed.task_id, followed.status, followed.tracking) == (answer.task_id, TaskState.PENDING, answer.tracking)
    assert str(answer.task_id) in (await said(shop, "How is my task going?")).reply


async def test_a_wish_under_one_key_is_one_task(shop: House) -> None:
    key = {"Idempotency-Key": "wish-1"}
    first = await said(shop, WANTED, **key)
    assert await said(shop, WANTED, **key) == first
    other = await shop.http.post("/agent/chat", json={"message": "create a QR code generator"}, headers=key)
    assert (other.status_code, other.json()["type"]) == (409, "idempotency_conflict")


async def test_a_repository_is_deployed_and_a_tool_is_repaired(shop: House) -> None:
    answer = await said(shop, "turn github.com/user/my-project into a tool")
    task = await shop.tasks.get(answer.task_id or "")
    assert task is not None
    assert (task.spec.type, task.tool_id) == ("github_deploy", "my_project")
    assert isinstance(task.spec, GithubDeploy)
    assert task.spec.repo_url == "https://github.com/user/my-project"
    await shop.registry.register(ToolManifest(tool_id="broken_one", name="B"), (LocalSource(host_dir="tools/b", content="file_1"),))
    broken = {"message": "broken_one answers HTTP 503, please fix it"}
    task = await shop.tasks.get((await said(shop, broken)).task_id or "")
    assert task is not None
    assert task.spec == RepairTool(tool_id="broken_one", error=str(broken["message"]))
    again = await shop.http.post("/agent/chat", json=broken)
    assert (again.status_code, again.json()["details"]) == (409, {"task_id": task.task_id})


NOT_BEGUN = {
    "make me a tool": "What is the tool to do?",
    "帮我做个工具": "需要什么样的工具?",
    "repair it for me": "Which tool is to be repaired?",
    "repair no_such_tool": "There is no tool 'no_such_tool'.",
    "repair calculator": "This cannot be begun: The tool 'calculator'",
    "deploy https://me:secret@github.com/a/b.git as a tool": "This cannot be begun: task_spec.repo_url:",
}


@pytest.mark.promise("only-clear-wishes-are-tasks")
async def test_what_is_not_clear_or_cannot_be_is_no_task(shop: House) -> None:
    for message, reply in NOT_BEGUN.items():
        answer = await said(shop, message)
        assert (answer.reply[: len(reply)], answer.task_id, bool(answer.next_steps)) == (reply, None, True)
    assert await shop.tasks.page() == ()


async def test_a_need_without_a_tool_is_answered_with_what_to_do(shop: House) -> None:
    answer = await said(shop, "有没有区块链工具?")
    assert (answer.tools, answer.reply) == ((), "目前没有符合需求的工具。")
    assert isinstance(answer.solution, Proposal)
    assert answer.solution == Proposal(method="POST", path="/create_tool", body={"description": "有没有区块链工具?"})
    assert answer.next_steps
    assert (await shop.http.post("/create_tool", json=answer.solution.body)).status_code == 202


async def test_a_tool_is_explained_with_a_call_that_can_be_sent(shop: House) -> None:
    answer = await said(shop, "what does calculator do?")
    assert answer.reply == (
        "calculator (Calculator): Works out an arithmetic expression. Integers are exact up to 4096 bits. "
        "计算算术表达式:加减乘除、取余、乘方和函数。 "
        "Params: expression (string, required)."
    )
    assert isinstance(answer.solution, SingleCall)
    body = answer.solution.model_dump(exclude={"type"})
    assert (await shop.http.post("/select_tool", json=body)).status_code == 200
    inside = await said(shop, "browser_screenshot 怎么用")
    assert isinstance(inside.solution, CompositeWorkflow), "it is used in a session"
    assert inside.solution.group_id == "browser_session"


async def test_groups_runtimes_and_tools_are_listed(shop: House) -> None:
    groups = (await said(shop, "有哪些工具组?")).model_dump(mode="json")["solution"]["groups"]
    assert [group["group_id"] for group in groups] == ["browser_session", "image_pipeline", "runcomfy_lifecycle"]
    assert groups[2]["usage_order"] == ["launch_comfy_env", "runcomfy_workflow_executor", "runcomfy_stop_env"]
    runtimes = (await said(shop, "Which backend runtimes are there?")).model_dump(mode="json")["solution"]["backend_runtimes"]
    total = (await shop.http.post("/search_tools", json={"limit": 1})).json()["total"]
    assert [(one["backend_runtime"], one["tool_count"]) for one in runtimes] == [("local", total), ("docker", 0), ("remote", 0)]
    assert (await said(shop, "list all tools")).reply.startswith(f"There are {total} tools: web (9)")


@pytest.mark.promise("rules-answer-without-a-model")
@pytest.mark.parametrize(
    "message", ["what's the difference between image_stitcher and image_compress_api", "image_stitcher 和 image_compress_api 有什么区别"]
)
async def test_each_tool_that_is_named_is_told(shop: House, message: str) -> None:
    assert [tool.tool_id for tool in (await said(shop, message)).tools] == ["image_stitcher", "image_compress_api"]


@pytest.mark.parametrize("message", ["does image_stitcher belong to a group?", "image_stitcher 属于哪个工具组"])
async def test_the_group_of_a_tool_is_told(shop: House, message: str) -> None:
    solution = (await said(shop, message)).solution
    assert isinstance(solution, CompositeWorkflow)
    assert solution.group_id == "image_pipeline"


@pytest.mark.parametrize(
    ("message", "tools", "told"),
    [
        ("I want to take a screenshot of a website and also compress the picture", {"image_compress_api", "browser_screenshot"}, ""),
        ("先把网页截图再压缩一下图片", {"image_compress_api", "browser_screenshot"}, ""),
        ("compress a picture and then email it to my boss", {"image_compress_api"}, "No tool is known for “email it to my boss”."),
    ],
)
async def test_each_of_several_needs_has_its_tool_or_is_told_to_have_none(shop: House, message: str, tools: set[str], told: str) -> None:
    answer = await said(shop, message)
    assert tools <= {tool.tool_id for tool in answer.tools}
    assert answer.reply.endswith(told)


@pytest.mark.parametrize(
    "message",
    [
        "ok then, find me a tool that compresses a picture",
        "Well then find me a tool that compresses a picture",
        "I'd rather have it quick then, compress a picture for me",
        "我想找一个压缩图片的工具,同时支持蓝色和红色",
    ],
)
async def test_a_message_of_one_need_is_not_taken_apart(shop: House, message: str) -> None:
    answer = await said(shop, message)
    assert "image_compress_api" in {tool.tool_id for tool in answer.tools}
    assert "No tool is known for" not in answer.reply
    assert "目前没有合适的工具" not in answer.reply


@pytest.mark.parametrize("message", ["cool, thanks a lot!", "不用了"])
async def test_no_tool_is_recommended_for_what_says_nothing_of_one(shop: House, message: str) -> None:
    answer = await said(shop, message)
    assert "推荐" not in answer.reply
    assert not isinstance(answer.solution, SingleCall)
    assert answer.tools == ()


async def test_it_says_that_rules_answer(shop: House) -> None:
    assert "without a model" in (await said(shop, "Hello!")).reply
    assert "没有使用模型" in (await said(shop, "你能做什么?")).reply
    assert "without a model" in (await said(shop, "The sky is blue.")).reply


async def test_a_model_is_asked_for_what_rules_do_not_decide_and_for_nothing_else(shop: House) -> None:
    async with browse(with_doors(shop, has_model=True)) as http:
        asked = [{"message": "The sky is blue.", "context": {"task": "weather", "requirements": "short", "trace": "t-1"}}] * 2 + [
            {"message": "list all tools"}
        ]
        answers = [(await http.post("/agent/chat", json=one, headers={"Idempotency-Key": "k"})).json() for one in asked]
    assert answers[0] == answers[1]
    assert answers[0]["reply"] == "You said: The sky is blue.\n\nweather\n\nshort"
    (message,) = shop.client.chats.said.values()
    assert message.chat_id in answers[0]["next_steps"][0]
    assert answers[2]["reply"].startswith("There are")


async def test_a_task_that_the_model_has_begun_is_told_as_one_of_the_rules_is(shop: House) -> None:
    begun = await said(shop, WANTED)
    shop.client.chats.task_ids = (begun.task_id or "",)
    async with browse(with_doors(shop, has_model=True)) as http:
        answer = AgentAnswer.model_validate_json((await http.post("/agent/chat", json={"message": "天空是蓝色的。"})).content)
    assert (answer.answered_by, answer.task_id, answer.status) == ("rules", begun.task_id, TaskState.PENDING)
    assert (answer.tracking, answer.estimated_time) == (begun.tracking, begun.estimated_time)


@pytest.mark.parametrize(("message", "task", "named"), [("x" * 100, "y" * 100, "context"), ("x" * 200, "", "message")])
async def test_what_is_too_large_for_a_model_names_what_makes_it_so(shop: House, message: str, task: str, named: str) -> None:
    doors = with_doors(shop, has_model=True)
    limits = dataclasses.replace(doors.limits, max_message_bytes=150)
    async with browse(dataclasses.replace(doors, limits=limits)) as http:
        answer = await http.post("/agent/chat", json={"message": f"The sky is {message}.", "context": {"task": task}})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (413, named)
    assert shop.client.chats.said == {}


@pytest.mark.parametrize(
    ("body", "field_name"),
    [
        ({}, "message"),
        ({"message": ""}, "message"),
        ({"message": " \n"}, "message"),
        ({"message": "x" * 8_001}, "message"),
        ({"message": 7}, "message"),
        ({"message": "hi", "context": []}, "context"),
        ({"message": "hi", "chat_id": "a"}, "chat_id"),
    ],
)
async def test_a_body_that_says_nothing_is_refused_with_its_field(house: House, body: dict[str, JsonValue], field_name: str) -> None:
    answer = await house.http.post("/agent/chat", json=body)
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field_name)


async def test_an_empty_catalog_and_a_huge_body_are_answered(house: House) -> None:
    assert (await said(house, "which tools are there?")).tools == ()
    assert (await house.http.post("/agent/chat", json={"message": "x" * 1_000_000})).status_code == 413
