"""Executing workflows on a server: pictures in and out, and everything that may fail meanwhile."""

import asyncio
import base64
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from pydantic import JsonValue, ValidationError

from engine.runtimes.builtin.runcomfy.execute import Arguments
from engine.runtimes.runtime import NO_FOLDER
from tests.runcomfy.conftest import PICTURE, SAVED, Tools, failure_of, tools_of
from toolagent.contracts.calls import ErrorType
from toolagent.testing.servers.runcomfy_ledger import Fault
from toolagent.testing.servers.runcomfy_server import RunComfyServer

IN_BASE64: list[JsonValue] = [{"name": "input.png", "base64": base64.b64encode(PICTURE).decode()}]


async def test_a_picture_goes_through_a_workflow(tools: Tools) -> None:
    launched = await tools.launch()
    result = await tools.execute(launched.server_id, images=IN_BASE64)
    (made,) = result.files
    assert (made.node, made.kind, made.name) == ("2", "images", "ComfyUI_00001_.png")
    assert tools.content(result) == {"2": PICTURE}
    assert Path(made.file).is_relative_to(tools.folder)
    assert "node 1 (LoadImage)" in tools.told
    # It is looked at now and then: how far the last node is may be over before.
    assert any(told.startswith("node 2 (SaveImage)") for told in tools.told)


async def test_a_tool_whose_schemas_speak_of_no_files_runs_nothing(tools: Tools) -> None:
    arguments = Arguments.model_validate({"server_id": (await tools.launch()).server_id, "workflow": SAVED, "images": IN_BASE64})
    told = [*tools.told]
    failure = await failure_of(tools.executing(arguments, "call-execute", NO_FOLDER))
    assert (failure.error_type, "file-path" in failure.message, tools.told) == (ErrorType.REJECTED, True, told)


async def test_a_server_that_was_found_before_it_is_ready_is_waited_for(tmp_path: Path) -> None:
    with RunComfyServer(start_s=0.3, node_s=0.01) as server:
        tools = tools_of(server, tmp_path)
        launching = asyncio.create_task(tools.launch(call_id="call-number-1"))
        await tools.heard("server ")
        server.fail(Fault(kind="429", at="status", after=2))
        found = await tools.launch(launched_by="call-number-1")
        assert (found.status, tools.content(await tools.execute(found.server_id, images=IN_BASE64))) == ("Starting", {"2": PICTURE})
        await launching


async def test_a_server_that_will_not_be_ready_runs_nothing(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.runtimes.builtin.runcomfy.execute.START_S", 0.2)
    tools.server.fail(Fault(kind="never_ready"))
    launching = asyncio.create_task(tools.launch(call_id="call-number-1"))
    await tools.heard("server ")
    failure = await failure_of(tools.execute(tools.running()[0], images=IN_BASE64))
    assert (failure.error_type, failure.details["status"]) == (ErrorType.REJECTED, "Starting")
    launching.cancel()
    with suppress(asyncio.CancelledError):
        await launching


async def test_a_file_and_a_data_url_are_taken(tools: Tools, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_bytes(b"another picture")
    workflow: dict[str, JsonValue] = {
        "1": {"class_type": "LoadImage", "inputs": {"image": "a.png"}},
        "2": {"class_type": "LoadImage", "inputs": {"image": "b.png"}},
        "3": {"class_type": "SaveImage", "inputs": {"images": ["1", 0], "filename_prefix": "album/one"}},
        "4": {"class_type": "PreviewImage", "inputs": {"images": ["2", 0]}},
    }
    data_url = "data:image/png;base64," + base64.b64encode(PICTURE).decode()
    images: list[JsonValue] = [{"name": "a.png", "file": str(kept)}, {"name": "b.png", "base64": data_url}]
    result = await tools.execute((await tools.launch()).server_id, workflow, images=images)
    assert tools.content(result) == {"3": b"another picture", "4": PICTURE}
    assert result.files[0].name == "one_00001_.png"


async def test_models_are_uploaded(tools: Tools) -> None:
    workflow: dict[str, JsonValue] = {
        "nodes": [
            *_nodes(),
            {"id": 3, "type": "CheckpointLoaderSimple", "inputs": {"ckpt_name": "own.ckpt"}},
            {"id": 4, "type": "LoraLoader", "inputs": {"model": ["3", 0], "clip": ["3", 1], "lora_name": "style.safetensors"}},
        ]
    }
    launched = await tools.launch()
    files: dict[str, list[JsonValue]] = {
        "checkpoints": [{"name": "own.ckpt", "base64": "YQ=="}],
        "loras": [{"name": "style.safetensors", "base64": "YQ=="}],
    }
    await tools.execute(launched.server_id, workflow, images=IN_BASE64, **files)
    async with httpx.AsyncClient() as http:
        assert (await http.get(f"{launched.url}/models/loras")).json() == ["style.safetensors"]
        assert "own.ckpt" in (await http.get(f"{launched.url}/models/checkpoints")).json()


async def test_two_runs_at_once_keep_their_pictures_apart(tools: Tools) -> None:
    launched = await tools.launch()
    contents = [f"picture {number}".encode() for number in range(3)]

    async def executed(number: int, content: bytes) -> dict[str, bytes]:
        images: list[JsonValue] = [{"name": "input.png", "base64": base64.b64encode(content).decode()}]
        arguments = Arguments.model_validate({"server_id": launched.server_id, "workflow": SAVED, "images": images})
        return tools.content(await tools.executing(arguments, f"call-{number}", tools.folder / str(number)))

    made = await asyncio.gather(*(executed(number, content) for number, content in enumerate(contents)))
    assert made == [{"2": content} for content in contents]


async def test_what_comfyui_finds_wrong_is_told_by_node(tools: Tools) -> None:
    failure = await failure_of(tools.execute((await tools.launch()).server_id))
    assert failure.error_type is ErrorType.VALIDATION_ERROR
    assert "node 1" in failure.message
    assert isinstance(failure.details["node_errors"], dict)
    assert list(failure.details["node_errors"]) == ["1"]


async def test_outputs_that_comfyui_leaves_out_are_told(tools: Tools) -> None:
    others: list[JsonValue] = [
        {"id": 3, "type": "LoadImage", "inputs": {"image": "nowhere.png"}},
        {"id": 4, "type": "PreviewImage", "inputs": {"images": ["3", 0]}},
    ]
    result = await tools.execute((await tools.launch()).server_id, {"nodes": [*_nodes(), *others]}, images=IN_BASE64)
    assert ([one.node for one in result.files], list(result.node_errors)) == (["2"], ["3"])


async def test_a_history_with_what_json_has_not_ends_the_call(tools: Tools) -> None:
    """It does not change: asking again would pay for the server until the time of the call is over."""
    tools.server.fail(Fault(kind="nan", at="history", times=1000))
    async with asyncio.timeout(5):
        failure = await failure_of(tools.execute((await tools.launch()).server_id, images=IN_BASE64))
    assert failure.error_type is ErrorType.OUTPUT_VALIDATION_ERROR


async def test_a_file_that_is_too_large_for_comfyui_is_the_callers_fault(tools: Tools) -> None:
    tools.server.fail(Fault(kind="413", at="upload"))
    failure = await failure_of(tools.execute((await tools.launch()).server_id, images=IN_BASE64))
    assert (failure.error_type, failure.details["file"]) == (ErrorType.VALIDATION_ERROR, "input.png")


async def test_a_node_that_fails_is_named(tools: Tools) -> None:
    tools.server.fail(Fault(kind="run_error"))
    failure = await failure_of(tools.execute((await tools.launch()).server_id, images=IN_BASE64))
    assert (failure.error_type, failure.outcome, failure.details["node_type"]) == (ErrorType.EXECUTION_ERROR, "failed", "LoadImage")
    assert "out of memory" in failure.message


async def test_a_server_that_vanishes_meanwhile_is_told(tools: Tools) -> None:
    tools.server.fail(Fault(kind="vanish"))
    launched = await tools.launch()
    failure = await failure_of(tools.execute(launched.server_id, images=IN_BASE64))
    assert (failure.error_type, failure.details["cause"]) == (ErrorType.EXECUTION_ERROR, "server_gone")
    assert (await tools.stop(launched.server_id)).already_gone


async def test_a_prompt_that_comfyui_forgot_is_told(tools: Tools) -> None:
    tools.server.fail(Fault(kind="forget"))
    failure = await failure_of(tools.execute((await tools.launch()).server_id, images=IN_BASE64))
    assert (failure.error_type, failure.outcome, failure.details["cause"]) == (ErrorType.EXECUTION_ERROR, "failed", "prompt_lost")


async def test_prompts_wait_for_each_other(tools: Tools) -> None:
    launched = await tools.launch()
    every = await asyncio.gather(*(tools.execute(launched.server_id, images=IN_BASE64) for _ in range(4)))
    assert len({one.prompt_id for one in every}) == 4


async def test_a_lost_websocket_loses_no_result(tools: Tools) -> None:
    tools.server.fail(Fault(kind="ws_drop"))
    result = await tools.execute((await tools.launch()).server_id, images=IN_BASE64)
    assert tools.content(result) == {"2": PICTURE}


@pytest.mark.parametrize("kind", ["500", "garbage", "lost_answer"])
async def test_a_history_that_cannot_be_had_for_a_while_is_asked_for_again(tools: Tools, kind: str) -> None:
    tools.server.fail(Fault.model_validate({"kind": kind, "at": "history", "times": 2}))
    assert (await tools.execute((await tools.launch()).server_id, images=IN_BASE64)).files


async def test_a_prompt_whose_answer_is_lost_is_not_sent_again(tools: Tools) -> None:
    tools.server.fail(Fault(kind="lost_answer", at="prompt"))
    failure = await failure_of(tools.execute((await tools.launch()).server_id, images=IN_BASE64))
    assert (failure.error_type, failure.outcome) == (ErrorType.EXECUTION_ERROR, "unknown")


@pytest.mark.parametrize("at", ["upload", "view"])
async def test_a_file_that_does_not_go_over_is_told(tools: Tools, at: str) -> None:
    tools.server.fail(Fault.model_validate({"kind": "500", "at": at}))
    failure = await failure_of(tools.execute((await tools.launch()).server_id, images=IN_BASE64))
    assert (failure.error_type, failure.details["cause"]) == (ErrorType.EXECUTION_ERROR, "no_answer")


async def test_a_run_that_is_cancelled_is_interrupted_on_its_server(tmp_path: Path) -> None:
    with RunComfyServer(start_s=0.01, node_s=30) as server:
        await _interrupted(tools_of(server, tmp_path))


async def _interrupted(tools: Tools) -> None:
    launched = await tools.launch()
    running = asyncio.create_task(tools.execute(launched.server_id, images=IN_BASE64))
    queued = await tools.heard("queued as ")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    prompt_id = queued.removeprefix("queued as ")
    async with httpx.AsyncClient() as http:
        history = (await http.get(f"{launched.url}/history/{prompt_id}")).json()
    assert history[prompt_id]["status"]["status_str"] == "error"


async def test_no_run_without_a_server(tools: Tools) -> None:
    launched = await tools.launch()
    await tools.stop(launched.server_id)
    for server_id in (launched.server_id, "never-launched"):
        failure = await failure_of(tools.execute(server_id, images=IN_BASE64))
        assert (failure.error_type, failure.details["cause"]) == (ErrorType.REJECTED, "server_gone")


async def test_content_that_is_no_base64_is_refused(tools: Tools) -> None:
    failure = await failure_of(tools.execute((await tools.launch()).server_id, images=[{"name": "input.png", "base64": "no!"}]))
    assert failure.error_type is ErrorType.VALIDATION_ERROR


async def test_an_output_that_is_too_large_is_refused(tools: Tools) -> None:
    large = base64.b64encode(bytes(tools.service.max_file_bytes + 1)).decode()
    failure = await failure_of(tools.execute((await tools.launch()).server_id, images=[{"name": "input.png", "base64": large}]))
    assert failure.error_type is ErrorType.OUTPUT_VALIDATION_ERROR


@pytest.mark.parametrize(
    "params",
    [
        {"workflow": SAVED},
        {"server_id": "one", "container_id": "two", "workflow": SAVED},
        {"server_id": "../servers/one", "workflow": SAVED},
        {"server_id": "one", "workflow": {"nodes": [{"id": 1}]}},
        {"server_id": "one", "workflow": SAVED, "images": [{"name": "a.png"}]},
        {"server_id": "one", "workflow": SAVED, "images": [{"name": "a.png", "file": "x", "base64": "YQ=="}]},
        {"server_id": "one", "workflow": SAVED, "images": [{"name": "../a.png", "base64": "YQ=="}]},
        {"server_id": "one", "workflow": SAVED, "images": [{"name": "..", "base64": "YQ=="}]},
    ],
)
def test_bad_parameters_are_refused(params: dict[str, JsonValue]) -> None:
    with pytest.raises(ValidationError):
        Arguments.model_validate(params)


def test_a_container_is_a_server() -> None:
    assert Arguments.model_validate({"container_id": "one", "workflow": SAVED}).server == "one"


def _nodes() -> list[dict[str, JsonValue]]:
    nodes = SAVED["nodes"]
    return [node for node in nodes if isinstance(node, dict)] if isinstance(nodes, list) else []
