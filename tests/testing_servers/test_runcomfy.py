"""The RunComfy test server: both of its APIs as clients see them, its ledger, and its faults."""

from collections.abc import Iterator

import httpx
import pytest
from pydantic import JsonValue

from tests.testing_servers.test_command_line import refused, running
from toolagent.testing.servers.runcomfy_ledger import FAULTS, Fault
from toolagent.testing.servers.runcomfy_server import Account, RunComfyServer

ORDER = {"workflow_version_id": "version-1", "server_type": "medium", "estimated_duration": 600}
LOAD: JsonValue = {"class_type": "LoadImage", "inputs": {"image": "input.png"}}
SAVE: JsonValue = {"class_type": "SaveImage", "inputs": {"images": ["1", 0], "filename_prefix": "saved"}}


@pytest.fixture
def server() -> Iterator[RunComfyServer]:
    with RunComfyServer(account=Account("me", "key"), start_s=0, node_s=0) as found:
        yield found


@pytest.fixture
def cloud(server: RunComfyServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{server.api_url}/users/me", headers={"Authorization": "Bearer key"}) as client:
        yield client


def launched(cloud: httpx.Client) -> dict[str, str]:
    return cloud.post("/servers", json=ORDER).raise_for_status().json()


def test_the_ledger_tells_stops_that_were_needed_from_others(server: RunComfyServer, cloud: httpx.Client) -> None:
    one = launched(cloud)["server_id"]
    server.fail(Fault(kind="lost_answer", at="stop"))
    with pytest.raises(httpx.TransportError):
        cloud.delete(f"/servers/{one}")
    assert cloud.delete(f"/servers/{one}").status_code == 404
    (told,) = httpx.get(f"{server.url}/control/ledger").json()["servers"]
    assert (told["stops_unanswered"], told["stops_again"]) == (1, 1)


def test_a_server_is_listed_while_it_is_there(server: RunComfyServer, cloud: httpx.Client) -> None:
    one = launched(cloud)["server_id"]
    (shown,) = cloud.get("/servers").json()
    assert (shown["server_id"], shown["current_status"], shown["main_service_url"]) == (one, "Ready", f"{server.url}/comfy/{one}")
    assert cloud.get(f"/servers/{one}").json() == shown
    assert cloud.delete(f"/servers/{one}").json()["current_status"] == "Deleting"
    assert [cloud.get(f"/servers/{one}").status_code, cloud.delete(f"/servers/{one}").status_code] == [404, 404]
    assert cloud.get("/servers").json() == []
    ledger = httpx.get(f"{server.url}/control/ledger").json()
    assert (ledger["launched"], ledger["stopped"], ledger["running"], ledger["stops_of_none"]) == (1, 1, [], 1)


@pytest.mark.parametrize(
    ("path", "key", "status"),
    [("/users/me/servers", "other", 401), ("/users/you/servers", "key", 403), ("/users/me/servers/x", "key", 404)],
)
def test_only_the_account_gets_answers(server: RunComfyServer, path: str, key: str, status: int) -> None:
    assert httpx.get(server.api_url + path, headers={"Authorization": f"Bearer {key}"}).status_code == status


@pytest.mark.parametrize("wrong", [{"server_type": "tiny"}, {"workflow_version_id": "none"}, {"estimated_duration": "long"}])
def test_an_order_that_is_wrong_is_refused(cloud: httpx.Client, wrong: dict[str, str]) -> None:
    assert cloud.post("/servers", json={**ORDER, **wrong}).status_code == 400


@pytest.mark.parametrize(
    ("prompt", "kind"),
    [
        ({}, "prompt_no_outputs"),
        ({"1": LOAD}, "prompt_no_outputs"),
        ({"1": {"inputs": {}}}, "invalid_prompt"),
        ({"1": {"class_type": "NoSuchNode", "inputs": {}}}, "invalid_prompt"),
        ("x", "no_prompt"),
    ],
)
def test_a_prompt_that_cannot_be_executed_is_refused(cloud: httpx.Client, prompt: JsonValue, kind: str) -> None:
    answer = httpx.post(f"{url_of(cloud)}/prompt", json={"prompt": prompt})
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, kind)


@pytest.mark.parametrize(
    ("prompt", "node", "kind"),
    [
        ({"1": LOAD, "2": SAVE}, "1", "custom_validation_failed"),
        ({"2": SAVE}, "2", "exception_during_validation"),
        ({"1": LOAD, "2": {"class_type": "SaveImage", "inputs": {"images": ["1", 0]}}}, "2", "required_input_missing"),
        ({"2": {"class_type": "PreviewImage", "inputs": {"images": "x"}}}, "2", "bad_linked_input"),
        ({"1": LOAD, "2": {"class_type": "PreviewImage", "inputs": {"images": ["1", 7]}}}, "2", "return_type_mismatch"),
    ],
)
def test_a_node_that_is_wrong_is_told(cloud: httpx.Client, prompt: JsonValue, node: str, kind: str) -> None:
    answer = httpx.post(f"{url_of(cloud)}/prompt", json={"prompt": prompt})
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "prompt_outputs_failed_validation")
    assert answer.json()["node_errors"][node]["errors"][0]["type"] == kind


def test_a_circle_of_nodes_is_refused(cloud: httpx.Client) -> None:
    url = url_of(cloud)
    circle: JsonValue = {"class_type": "LoraLoader", "inputs": {"model": ["3", 0], "clip": ["3", 1], "lora_name": "own"}}
    save: JsonValue = {"class_type": "PreviewImage", "inputs": {"images": ["1", 0], "after": ["3", 0]}}
    answer = httpx.post(f"{url}/prompt", json={"prompt": {"1": LOAD, "2": save, "3": circle}})
    assert (answer.status_code, answer.json()["error"]["type"]) == (400, "prompt_outputs_failed_validation")


def test_a_file_of_the_same_name_gets_another_unless_it_overwrites(cloud: httpx.Client) -> None:
    url = url_of(cloud)
    names = [httpx.post(f"{url}/upload/image", files={"image": ("a.png", b"x")}).json()["name"] for _ in range(2)]
    over = httpx.post(f"{url}/upload/image", files={"image": ("a.png", b"y")}, data={"overwrite": "true"}).json()
    assert (names, over) == (["a.png", "a (1).png"], {"name": "a.png", "subfolder": "", "type": "input"})
    assert httpx.get(f"{url}/view", params={"filename": "a.png", "type": "input"}).content == b"y"
    assert httpx.post(f"{url}/upload/image", files={"image": ("a.png", b"x")}, data={"subfolder": "../.."}).status_code == 400


def test_a_fault_is_used_up(server: RunComfyServer, cloud: httpx.Client) -> None:
    server.fail(Fault(kind="429", times=2, after=1, retry_after=3))
    answers = [cloud.get("/servers") for _ in range(4)]
    assert [one.status_code for one in answers] == [200, 429, 429, 200]
    assert answers[1].headers["retry-after"] == "3"


def test_a_lost_answer_is_carried_out(server: RunComfyServer, cloud: httpx.Client) -> None:
    server.fail(Fault(kind="lost_answer", at="launch"))
    with pytest.raises(httpx.RemoteProtocolError):
        cloud.post("/servers", json=ORDER)
    assert server.ledger()["launched"] == 1


def test_it_runs_alone_and_takes_faults_over_http() -> None:
    with running("runcomfy", "--user", "me", "--key", "key", "--start", "0", "--fault", "402") as (url, _):
        api, headers = f"{url}/prod/api/users/me/servers", {"Authorization": "Bearer key"}
        assert [httpx.get(api, headers=headers).status_code for _ in range(2)] == [402, 200]
        told = [httpx.post(f"{url}/control/faults", json={"kind": kind}).status_code for kind in ("500", "no such fault")]
        assert (told, httpx.get(api, headers=headers).status_code) == ([204, 400], 500)
        httpx.post(f"{url}/control/faults", json={"kind": "500", "times": 9})
        httpx.delete(f"{url}/control/faults")
        assert httpx.get(api, headers=headers).status_code == 200


def test_a_fault_that_there_is_not_is_refused_with_those_there_are() -> None:
    code, said = refused("runcomfy", "--fault", "flood")
    assert code == 2
    assert "never_ready" in said


def test_every_fault_is_described() -> None:
    assert all(Fault.model_validate({"kind": kind}) for kind in FAULTS)


def url_of(cloud: httpx.Client) -> str:
    """The URL of a ComfyUI that is ready."""
    server = launched(cloud)["server_id"]
    return cloud.get(f"/servers/{server}").json()["main_service_url"]
