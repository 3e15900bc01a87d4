"""Tools over HTTP: listed, shown, started and stopped."""

import pytest

from tests.api.conftest import COMPRESS, COMPRESS_SOURCE, WEATHER_SOURCE, House
from toolagent.contracts.calls import ErrorType, ToolError
from toolagent.contracts.manifest import ToolGroup
from toolagent.contracts.records import CatalogFault
from toolagent.contracts.routes import ControlAction, RunState, ToolControl, ToolRoute

RUNNING = ToolRoute(
    tool_id="image_compress_api",
    sources=(COMPRESS_SOURCE,),
    state=RunState.RUNNING,
    host="host-2",
    endpoint="http://127.0.0.1:52341",
    pid=12345,
    port=52341,
)


async def test_the_list_has_the_specified_shape(stocked: House) -> None:
    group = ToolGroup(group_id="pictures", name="图片", tool_ids=("image_compress_api",), usage_order=("image_compress_api",))
    fault = CatalogFault(file="registry.json", field="$.tools[3]", reason="It is no object.")
    await stocked.groups.replace([group])
    await stocked.faults.replace([fault])
    await stocked.routes.save(RUNNING, "1.0.0")
    listing = (await stocked.http.get("/tools")).json()
    assert listing["backend_runtimes"] == [
        {"backend_runtime": "local", "name": "本地 Python 运行时", "tool_count": 2},
        {"backend_runtime": "docker", "name": "Docker 容器运行时", "tool_count": 0},
        {"backend_runtime": "remote", "name": "远程 API / 云端服务", "tool_count": 1},
    ]
    assert listing["groups"] == [group.model_dump(mode="json")]
    assert listing["catalog_faults"] == [fault.model_dump(mode="json")]
    assert [(tool["tool_id"], tool["state"]) for tool in listing["tools"]] == [
        ("echo", "stopped"),
        ("image_compress_api", "running"),
        ("weather", "stopped"),
    ]
    assert listing["tools"][1] == {
        "tool_id": "image_compress_api",
        "name": "图片压缩 API",
        "description": "基于 PIL 的图片压缩",
        "category": "cv",
        "backend_runtime": "local",
        "group_ids": [],
        "state": "running",
        "status": "active",
        "version": "1.0.0",
        "tags": ["图片"],
        "external_source": None,
    }


async def test_a_vendor_is_given_the_tools_that_can_be_called_in_its_form(stocked: House) -> None:
    listed = (await stocked.http.get("/tools", params={"format": "openai", "tag": "图片"})).json()
    assert listed["names"] == {"image_compress_api": "image_compress_api"}
    assert [(tool["type"], tool["function"]["name"]) for tool in listed["tools"]] == [("function", "image_compress_api")]
    every = (await stocked.http.get("/tools?format=mcp")).json()
    assert ([*every["names"]], every["left_out"]) == (["echo", "image_compress_api", "weather"], {})


async def test_an_unknown_format_is_a_problem_that_names_the_choices(stocked: House) -> None:
    answer = await stocked.http.get("/tools?format=x")
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["field"]) == (422, "format")
    assert "'openai', 'openai_responses', 'anthropic' or 'mcp'" in error["message"]


async def test_a_running_route_counts_more_than_one_heard_of_later(stocked: House) -> None:
    await stocked.routes.save(RUNNING, "1.0.0")
    await stocked.routes.save(ToolRoute(tool_id="image_compress_api", state=RunState.ERROR, host="host-3", last_error="x"), "1.0.0")
    states = {tool["tool_id"]: tool["state"] for tool in (await stocked.http.get("/tools")).json()["tools"]}
    assert states["image_compress_api"] == "running"


async def test_the_states_name_every_tool_with_its_sources(stocked: House) -> None:
    await stocked.routes.save(RUNNING, "1.0.0")
    await stocked.routes.save(ToolRoute(tool_id="weather", state=RunState.ERROR, host="host-1", last_error="refused"), "1.0.0")
    states = [ToolRoute.model_validate(tool) for tool in (await stocked.http.get("/tools/status")).json()["tools"]]
    assert [(route.tool_id, route.state, len(route.sources)) for route in states] == [
        ("echo", RunState.STOPPED, 1),
        ("image_compress_api", RunState.RUNNING, 1),
        ("weather", RunState.ERROR, 1),
    ]
    assert states[1] == RUNNING
    assert states[2].last_error == "refused"


async def test_one_tool_is_its_manifest_with_sources_and_route(stocked: House) -> None:
    detail = (await stocked.http.get("/tools/weather")).json()
    assert detail["sources"] == [WEATHER_SOURCE.model_dump(mode="json")]
    assert detail["sources"][0]["remote_api_key"] == "secret:WEATHER_KEY"
    assert (detail["backend_runtime"], detail["route"]["state"], detail["route"]["sources"]) == ("remote", "stopped", detail["sources"])
    detail = (await stocked.http.get("/tools/image_compress_api")).json()
    assert detail["input_schema"] == COMPRESS.input_schema


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/tools/wether"), ("POST", "/tools/wether/start"), ("POST", "/tools/wether/stop"), ("DELETE", "/tools/wether")],
)
async def test_an_unknown_tool_is_a_problem_that_names_the_nearest(stocked: House, method: str, path: str) -> None:
    answer = await stocked.http.request(method, path)
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")
    assert (answer.json()["type"], answer.json()["details"]) == ("tool_not_found", {"nearest": ["weather"]})
    assert stocked.client.controls == []


@pytest.mark.parametrize("tool_id", ["No-Id", "a%00b", "%ff", "weather%0A", "x" * 5000, "..", "%F0%9F%92%A9"])
async def test_what_is_no_id_is_no_tool(stocked: House, tool_id: str) -> None:
    assert (await stocked.http.get(f"/tools/{tool_id}")).status_code == 404
    assert (await stocked.http.post(f"/tools/{tool_id}/start")).status_code == 404


async def test_starting_answers_where_the_tool_runs(stocked: House) -> None:
    answer = await stocked.http.post("/tools/weather/start")
    assert answer.json() == {"tool_id": "weather", "state": "running", "port": 52341, "pid": 12345, "endpoint": "http://127.0.0.1:52341"}
    assert stocked.client.controls == [ToolControl(tool_id="weather", action=ControlAction.START, host="host-1")]


async def test_a_tool_is_stopped_where_it_runs(stocked: House) -> None:
    await stocked.routes.save(RUNNING, "1.0.0")
    answer = await stocked.http.post("/tools/image_compress_api/stop")
    assert answer.json() == {"tool_id": "image_compress_api", "state": "stopped"}
    assert stocked.client.controls == [ToolControl(tool_id="image_compress_api", action=ControlAction.STOP, host="host-2")]


async def test_destroying_says_so(stocked: House) -> None:
    answer = await stocked.http.delete("/tools/weather")
    assert answer.json() == {"tool_id": "weather", "state": "stopped", "destroyed": True}
    assert stocked.client.controls == [ToolControl(tool_id="weather", action=ControlAction.DESTROY, host="host-1")]


@pytest.mark.parametrize(
    ("error_type", "status"), [(ErrorType.EXECUTION_ERROR, 502), (ErrorType.TIMEOUT, 504), (ErrorType.UNAVAILABLE, 503)]
)
async def test_a_tool_that_cannot_be_started_is_a_problem_of_the_cause(stocked: House, error_type: ErrorType, status: int) -> None:
    stocked.client.control_error = ToolError(type=error_type, message="It ended: exit code 1.", details={"exit_code": 1})
    answer = await stocked.http.post("/tools/weather/start")
    problem = answer.json()
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    assert (problem["type"], problem["detail"], problem["details"]) == (error_type, "It ended: exit code 1.", {"exit_code": 1})


async def test_a_search_has_the_specified_shape(stocked: House) -> None:
    await stocked.routes.save(RUNNING, "1.0.0")
    answer = await stocked.http.post("/search_tools", json={"keyword": "图片", "category": "cv"})
    assert answer.json() == {
        "tools": [
            {
                "tool_id": "image_compress_api",
                "name": "图片压缩 API",
                "category": "cv",
                "description": "基于 PIL 的图片压缩",
                "params": [
                    {"name": "image_path", "type": "string", "description": "图片路径", "required": True},
                    {"name": "quality", "type": "integer | null", "description": "", "required": False},
                    {"name": "anything", "type": "any", "description": "", "required": False},
                ],
                "required_params": ["image_path"],
                "input_schema": COMPRESS.input_schema,
                "output_schema": {},
                "backend_runtime": "local",
                "host_dir": "tools/local/image_compress_api",
                "endpoint_path": "/compress",
                "http_method": "POST",
                "state": "running",
                "port": 52341,
                "pid": 12345,
                "version": "1.0.0",
                "endpoint": "http://127.0.0.1:52341",
                "external_source": None,
            }
        ],
        "total": 1,
    }


async def test_a_search_without_words_finds_all_and_shows_what_sources_have(stocked: House) -> None:
    found = (await stocked.http.post("/search_tools", json={})).json()
    assert found["total"] == 3
    assert [(tool["tool_id"], tool["host_dir"], tool["http_method"]) for tool in found["tools"]] == [
        ("echo", None, None),
        ("image_compress_api", "tools/local/image_compress_api", "POST"),
        ("weather", None, "POST"),
    ]


async def test_a_search_may_find_nothing(stocked: House) -> None:
    assert (await stocked.http.post("/search_tools", json={"keyword": "图片", "category": None})).json()["total"] == 1
    assert (await stocked.http.post("/search_tools", json={"keyword": "zebra"})).json() == {"tools": [], "total": 0}
    assert (await stocked.http.post("/search_tools", json={"category": "a\u0000"})).status_code == 422


@pytest.mark.parametrize("tool_id", ["wether", "Not%20An%20Id", "a%00b"])
@pytest.mark.parametrize(("method", "action"), [("POST", "/start"), ("POST", "/stop"), ("DELETE", "")])
async def test_what_is_not_there_cannot_be_started_stopped_or_destroyed(stocked: House, tool_id: str, method: str, action: str) -> None:
    answer = await stocked.http.request(method, f"/tools/{tool_id}{action}")
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")
    assert answer.json()["type"] == "tool_not_found"
    assert stocked.client.controls == []


async def test_an_empty_wish_of_a_search_is_no_wish(stocked: House) -> None:
    wishes = {"keyword": "", "category": "", "tag": ""}
    found = (await stocked.http.post("/search_tools", json=wishes)).json()
    assert (found["total"], {tool["version"] for tool in found["tools"]}) == (3, {"1.0.0"})


async def test_a_sandboxed_tool_has_an_endpoint_and_no_port(stocked: House) -> None:
    inside = RUNNING.model_copy(update={"endpoint": "unix:/run/tool.sock", "port": 8000})
    await stocked.routes.save(inside, "1.0.0")
    found = (await stocked.http.post("/search_tools", json={"keyword": "图片"})).json()["tools"][0]
    detail = (await stocked.http.get("/tools/image_compress_api")).json()["route"]
    states = (await stocked.http.get("/tools/status")).json()["tools"][1]
    assert [(one["endpoint"], one["port"]) for one in (found, detail, states)] == [("unix:/run/tool.sock", None)] * 3
