"""The functions of agents for the windows of the IM client, over HTTP."""

from pathlib import Path

from pydantic import JsonValue

from engine.im.tools import ImFunctions
from tests.api.conftest import House, browse, with_doors
from tests.disks import file_size_limit
from tests.im.people import Chats, person, running_client
from toolagent.contracts.im import ImType
from toolagent.testing.servers.im_server import ImServer
from toolagent.validation.schemas import schema_faults


async def test_an_agent_lists_reads_and_sends(house: House, tmp_path: Path) -> None:
    with ImServer() as server:
        async with (
            running_client(server, tmp_path, Chats()) as client,
            person(server) as alice,
            browse(with_doors(house, im_functions=ImFunctions(client))) as http,
        ):

            async def used(name: str, given: dict[str, JsonValue], key: str = "use") -> tuple[int, dict[str, JsonValue]]:
                answer = await http.post(f"/im/functions/{name}", json={"arguments": given}, headers={"Idempotency-Key": key})
                return answer.status_code, answer.json()

            offers = (await http.get("/im/functions")).json()["functions"]
            assert [offer["name"] for offer in offers] == ["list_windows", "read_messages", "send_message"]
            assert [schema_faults(offer["input_schema"]) for offer in offers] == [()] * 3
            await alice.send("hello", "w1", message_id="1")
            await alice.next(ImType.REPLY)
            assert await used("list_windows", {}) == (200, {"connected": True, "windows": [{"chat_id": "w1", "waiting": 0}]})
            given: dict[str, JsonValue] = {"chat_id": "w1", "content": "one more thing"}
            assert [(await used("send_message", given, "once"))[1] for _ in range(2)] == [{"status": "sent"}, {"status": "sent before"}]
            assert (await alice.next(ImType.NOTICE)).content == "one more thing"
            status, problem = await used("send_message", {**given, "content": "something else"}, "once")
            assert (status, problem["type"]) == (409, "idempotency_conflict"), "it would be lost without a word"
            (_, read) = await used("read_messages", {"chat_id": "w1", "limit": 2})
            assert [message["content"] for message in read["messages"]] == ["w1: hello", "one more thing"]  # pyright: ignore
            wrong = {"no window": ("send_message", {**given, "chat_id": "w2"}), "content:": ("send_message", {"chat_id": "w1"})}
            wrong["at most 32768"] = ("send_message", {**given, "content": "x" * 32_769})
            with file_size_limit(16_000):
                status, problem = await used("send_message", {**given, "content": "x" * 30_000}, "large")
            assert (status, problem["details"]) == (503, {"cause": "cannot_write"})
            for told, (name, of_it) in {**wrong, "no function 'dance'": ("dance", {})}.items():
                status, problem = await used(name, {**of_it})
                assert (status, told in str(problem["detail"])) == (422, True), problem


async def test_a_process_without_the_connection_has_none_and_says_so(house: House) -> None:
    assert (await house.http.get("/im/functions")).json() == {"functions": []}
    refused = await house.http.post("/im/functions/list_windows", json={"arguments": {}})
    assert (refused.status_code, refused.json()["type"]) == (503, "unavailable")
    assert "TOOL_AGENT_IM_URL" in refused.json()["detail"]
