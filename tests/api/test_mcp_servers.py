"""MCP servers at the front door: registered, pinned, refreshed, removed; and hostile ones."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import httpx
import pytest
import pytest_asyncio
from pydantic import JsonValue
from starlette.responses import RedirectResponse, Response

from engine.store.database import Database
from engine.store.mcp_servers import BroughtIn, McpServerRows
from tests.api.conftest import ECHO, House, registered_servers, with_doors
from tests.api.serving import reached
from tests.mcp_servers.site import Site, served, tool
from toolagent.contracts.manifest import PermissionClass, ToolStatus
from toolagent.contracts.mcp_servers import McpServer, McpServerSpec, McpTransport
from toolagent.contracts.sources import BuiltinSource, McpSource
from toolagent.core.failures import McpServerRefusedError


@pytest_asyncio.fixture
async def site() -> AsyncGenerator[Site]:
    async with served() as site:
        yield site


async def register(house: House, name: str, **told: JsonValue) -> httpx.Response:
    return await house.http.post("/mcp_servers", json={"name": name, **told})


async def refreshed(house: House, name: str) -> McpServer:
    return McpServer.model_validate_json((await house.http.post(f"/mcp_servers/{name}/refresh")).content)


def refused(answer: httpx.Response) -> tuple[int, str, str]:
    """The status, the type of the problem, and the field."""
    problem = answer.json()
    errors = problem.get("errors")
    return answer.status_code, problem["type"], errors[0]["field"] if errors else ""


async def secrets_in(folder: Path) -> str:
    file = folder / "secrets"
    return await asyncio.to_thread(file.read_text) if await asyncio.to_thread(file.exists) else ""


async def test_the_tools_of_a_server_are_found_in_its_group_and_the_rest_is_told(house: House, site: Site) -> None:
    site.tools = [
        tool("Look Up", title="Look it up", annotations={"readOnlyHint": True}),
        tool("liar", inputSchema={"type": "nonsense"}),
        tool("twice"),
        tool("twice", "again"),
        tool(""),
        {"description": "no name"},
        "no tool",
    ]
    server = McpServer.model_validate_json((await register(house, "far", url=site.url)).content)
    assert server.tool_ids == ("far_look_up", "far_twice")
    assert [one.entry for one in server.left_out] == ["liar", "twice", '""', "null", "null"]
    entry = await house.registry.entry("far_look_up")
    assert entry is not None
    assert (entry.manifest.name, entry.manifest.permission_class, entry.manifest.repeatable) == (
        "Look it up",
        PermissionClass.EXTERNAL,
        False,
    )
    source = entry.sources[0]
    assert isinstance(source, McpSource)
    assert (source.tool_name, source.server, source.process, source.traits.only_public) == ("Look Up", "far", "far", True)
    group = await house.groups.get("far")
    assert group is not None
    assert group.tool_ids == server.tool_ids
    assert (await house.http.get("/mcp_servers")).json()["servers"] == [(await house.http.get("/mcp_servers/far")).json()]


async def test_the_prefix_may_be_another_or_none_and_a_trusted_server_is_believed(house: House, site: Site) -> None:
    site.tools = [tool("look", annotations={"readOnlyHint": True, "openWorldHint": False})]
    assert (await register(house, "a", url=site.url, prefix="b", trusted=True)).json()["tool_ids"] == ["b_look"]
    assert (await register(house, "c", url=site.url, prefix="")).json()["tool_ids"] == ["look"]
    manifest = await house.registry.get("b_look")
    assert manifest is not None
    assert (manifest.permission_class, manifest.repeatable) == (PermissionClass.READ, True)


async def test_keys_become_secrets_which_the_server_is_shown_and_that_go_with_it(house: House, site: Site, tmp_path: Path) -> None:
    headers: JsonValue = {"Authorization": "Bearer the-long-key", "X-Team": "blue"}
    answer = await register(house, "far", url=site.url, headers=headers)
    named = answer.json()["spec"]["headers"]
    assert named["X-Team"] == "blue"
    assert "the-long-key" not in answer.text
    assert (site.shown[-1]["authorization"], site.shown[-1]["x-team"]) == ("Bearer the-long-key", "blue")
    assert await secrets_in(tmp_path) == f"{named['Authorization'].removeprefix('secret:')}=Bearer the-long-key\n"
    assert (await house.http.delete("/mcp_servers/far")).json() == {"name": "far", "tools": 1}
    assert await secrets_in(tmp_path) == ""
    assert (await house.registry.list_ids(), await house.groups.get("far")) == ((), None)


async def test_a_caller_chooses_no_secret_and_an_operators_stays(house: House, site: Site, database: Database, tmp_path: Path) -> None:
    (tmp_path / "secrets").write_text("MCP_FAR_TOKEN=of-the-operator\n")
    (tmp_path / "secrets").chmod(0o600)
    oauth: JsonValue = {"client_id": "us", "client_secret": "secret:MCP_FAR_TOKEN"}
    assert refused(await register(house, "far", url=site.url, oauth=oauth)) == (422, "invalid_request", "oauth")
    for name in ("MCP_FAR_TOKEN", "MCP_STATE_KEY"):
        assert refused(await register(house, "far", url=site.url, headers={"X-Key": f"secret:{name}"})) == (
            422,
            "invalid_request",
            "headers",
        )
        assert refused(await register(house, "far", url=f"{site.url}?key=secret:{name}")) == (422, "invalid_request", "url")
    headers = {"X-Key": "secret:MCP_FAR_TOKEN", "X-Token": "Token secret:MCP_FAR_TOKEN"}
    spec = McpServerSpec(type=McpTransport.STREAMABLE_HTTP, url=site.url, headers=headers)
    await McpServerRows(database).bring_in({"far": spec}, ())
    assert (await refreshed(house, "far")).error == ""
    assert (site.shown[-1]["x-key"], site.shown[-1]["x-token"]) == ("of-the-operator", "Token of-the-operator")
    await house.http.delete("/mcp_servers/far")
    assert await secrets_in(tmp_path) == "MCP_FAR_TOKEN=of-the-operator\n"


async def test_a_second_registration_at_the_same_time_takes_no_key_away(house: House, site: Site, tmp_path: Path) -> None:
    headers: JsonValue = {"Authorization": "Bearer the-long-key"}
    answers = await asyncio.gather(*(register(house, "far", url=site.url, headers=headers) for _ in range(3)))
    assert sorted(answer.status_code for answer in answers) == [200, 409, 409]
    assert "the-long-key" in await secrets_in(tmp_path)
    assert (await refreshed(house, "far")).error == ""


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1", "2130706433", "[::ffff:127.0.0.1]", "localhost", "0.0.0.0"])  # noqa: S104 - an address
async def test_the_service_itself_is_none_of_its_servers(site: Site, database: Database, tmp_path: Path, host: str) -> None:
    port = httpx.URL(site.url).port or 0
    with pytest.raises(McpServerRefusedError, match="the service itself"):
        await registered_servers(database, tmp_path, own_port=port).register(
            "far", McpServerSpec(url=f"http://{host}:{port}/mcp"), "http://127.0.0.1:8001/oauth/callback"
        )


@pytest.mark.promise("definitions-are-pinned")
async def test_a_changed_definition_waits_until_it_is_activated(house: House, site: Site) -> None:
    await register(house, "far", url=site.url)
    site.tools = [tool("act", "Acts, and tells everybody.")]
    server = await refreshed(house, "far")
    assert [(one.tool_id, one.version) for one in server.waiting] == [("far_act", "1.1.0")]
    before = await house.registry.get("far_act")
    await house.http.post("/tools/far_act/versions/1.1.0/activate")
    after = await house.registry.get("far_act")
    assert before is not None
    assert after is not None
    assert (before.description, after.description) == ("Acts.", "Acts, and tells everybody.")
    assert (await refreshed(house, "far")).waiting == ()


@pytest.mark.promise("definitions-are-pinned")
async def test_a_tool_of_another_name_waits_until_it_is_activated(house: House, site: Site) -> None:
    await register(house, "far", url=site.url)
    site.tools = [tool("act"), tool("act_now", "Acts, and tells everybody.")]
    server = await refreshed(house, "far")
    assert [(one.tool_id, one.version, one.is_new) for one in server.waiting] == [("far_act_now", "1.0.0", True)]
    before = await house.registry.get("far_act_now")
    await house.http.post("/tools/far_act_now/versions/1.0.0/activate")
    after = await house.registry.get("far_act_now")
    assert before is not None
    assert after is not None
    assert (before.status, after.status) == (ToolStatus.INACTIVE, ToolStatus.ACTIVE)
    assert (await refreshed(house, "far")).waiting == ()


async def test_a_tool_that_vanished_is_unavailable_and_comes_back(house: House, site: Site) -> None:
    site.tools = [tool("act"), tool("other")]
    await register(house, "far", url=site.url)
    site.tools = [tool("other")]
    server = await refreshed(house, "far")
    assert (server.tool_ids, server.gone) == (("far_other",), ("far_act",))
    away = await house.registry.get("far_act")
    site.tools = [tool("act"), tool("other")]
    assert (await refreshed(house, "far")).gone == ()
    back = await house.registry.get("far_act")
    assert away is not None
    assert back is not None
    assert (away.status, back.status) == (ToolStatus.UNAVAILABLE, ToolStatus.ACTIVE)


async def test_nothing_is_gone_where_the_listing_ended_early_and_a_tool_that_lies_now_stays_as_it_was(
    house: House, site: Site, database: Database, tmp_path: Path
) -> None:
    site.tools = [tool("act"), tool("liar")]
    await register(house, "far", url=site.url)
    site.tools = [tool("liar", inputSchema={"type": "nonsense"}), *(tool(f"t{number}") for number in range(1_100))]
    server = await registered_servers(database, tmp_path, patience_s=60.0).refresh("far")
    assert (server.gone, [one for one in server.waiting if not one.is_new], server.left_out_total) == ((), [], 2)
    assert (len(server.tool_ids), {"far_act", "far_liar"} - {*server.tool_ids}) == (1001, set())


async def test_what_was_decided_here_stays(house: House, site: Site) -> None:
    site.tools = [tool("shut"), tool("removed")]
    await register(house, "far", url=site.url)
    await house.registry.deactivate("far_shut", "1.0.0")
    await house.registry.destroy("far_removed")
    assert (await refreshed(house, "far")).tool_ids == ("far_shut",)
    manifest = await house.registry.get("far_shut")
    assert manifest is not None
    assert manifest.status is ToolStatus.INACTIVE


async def test_a_refresh_that_fails_keeps_the_tools_and_says_so(house: House, site: Site) -> None:
    before = (await register(house, "far", url=site.url)).json()
    site.instead = lambda: Response("oops", 500)
    after = await refreshed(house, "far")
    assert (after.error != "", after.tool_ids) == (True, ("far_act",))
    assert after.model_dump(mode="json")["refreshed_at"] == before["refreshed_at"]


async def test_names_that_are_taken_are_409_and_ids_that_are_left_out(house: House, site: Site) -> None:
    await house.registry.register(ECHO.model_copy(update={"tool_id": "far_act"}), (BuiltinSource(handler="echo"),))
    server = (await register(house, "far", url=site.url)).json()
    assert (server["tool_ids"], [one["entry"] for one in server["left_out"]]) == ([], ["far_act"])
    assert refused(await register(house, "far", url=site.url)) == (409, "server_exists", "name")


async def test_a_private_address_is_403(house: House) -> None:
    for url in ("http://10.0.0.1/mcp", "http://[::1]:1/mcp", "https://169.254.169.254/sse"):
        assert refused(await register(house, "x", url=url)) == (403, "security_error", "url")


BAD: dict[str, Callable[[], Response]] = {
    "away": lambda: RedirectResponse("http://169.254.169.254/mcp"),
    "broken": lambda: Response("oops", 500),
    "forbidden": lambda: Response("", 401),
    "garbage": lambda: Response("<html>", media_type="text/html"),
    "no-json": lambda: Response("{]", media_type="application/json"),
    "huge": lambda: Response(b'{"a": "' + b"x" * 10_000_000 + b'"}', media_type="application/json"),
    "other": lambda: Response(json.dumps({"jsonrpc": "2.0", "id": 0, "result": {"hello": 1}}), media_type="application/json"),
}


SAID = {"broken": "status 500", "forbidden": "status 401: give it another key in `headers`"}


@pytest.mark.parametrize("server_patience_s", [2.0])
@pytest.mark.parametrize("how", [*BAD, "slow"])
async def test_a_server_that_cannot_be_used_is_502_and_leaves_nothing(house: House, site: Site, how: str, tmp_path: Path) -> None:
    site.instead = BAD.get(how)
    url = site.url.replace("/mcp", "/slow") if how == "slow" else site.url
    try:
        answer = await register(house, "x", url=url, headers={"Authorization": "Bearer the-long-key"})
    finally:
        site.hanging.set()
    assert refused(answer) == (502, "server_not_reached", "")
    assert SAID.get(how, "") in answer.json()["detail"]
    assert ((await house.http.get("/mcp_servers")).json()["servers"], await secrets_in(tmp_path)) == ([], "")
    assert (await house.registry.list_ids(), await house.groups.get("x")) == ((), None)


async def test_a_host_that_is_nowhere_is_a_fault_of_the_url_and_one_that_nobody_knows_now_is_none(house: House) -> None:
    assert refused(await register(house, "x", url="https://nowhere.example/mcp")) == (422, "invalid_request", "url")
    assert refused(await register(house, "x", url="https://later.example/mcp")) == (502, "server_not_reached", "")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"name": "Not A Name", "url": "https://a.example"}, "name"),
        ({"name": "x"}, "url"),
        ({"name": "x", "url": "https://a.example", "command": "y"}, "command"),
        ({"name": "x", "url": "https://a.example", "key": "k"}, "key"),
        ({"name": "x", "url": "https://a.example", "prefix": "No Id"}, "prefix"),
        ({"name": "x", "url": "http://a.example/mcp", "headers": {"Authorization": "Bearer the-long-key"}}, "url"),
        ({"name": "x", "command": "docker", "args": ["run", "y"]}, "command"),
        ({"name": "x", "command": "y", "args": ["\ud800"]}, "args.0"),
    ],
)
async def test_a_registration_of_the_wrong_form_names_the_field(house: House, body: JsonValue, field: str, tmp_path: Path) -> None:
    text = json.dumps(body)
    answer = await house.http.post("/mcp_servers", content=text, headers={"Content-Type": "application/json"})
    assert (answer.status_code // 100, answer.json()["type"] != "internal_error") == (4, True)
    if answer.status_code == 422:
        assert refused(answer)[2] == field
    assert await secrets_in(tmp_path) == ""


async def test_a_front_door_alone_starts_no_servers(house: House) -> None:
    assert refused(await register(house, "time", command="uvx", args=["mcp-server-time"])) == (503, "unavailable", "")


async def test_servers_that_say_nothing_hold_up_no_others_until_there_are_sixteen(
    house: House, site: Site, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("engine.mcp_servers.looking._PATIENCE_S", 0.1)
    mute, patient = site.url.replace("/mcp", "/slow"), registered_servers(database, tmp_path, patience_s=60)
    async with reached(with_doors(house, mcp_servers=patient)) as http:

        async def wait_for(count: int) -> None:
            while site.paths.count("/slow") < count:  # noqa: ASYNC110 - another thread notes them
                await asyncio.sleep(0.01)

        async def register(name: str, url: str) -> httpx.Response:
            return await http.post("/mcp_servers", json={"name": name, "url": url})

        waiting = [asyncio.create_task(register(f"mute-{number}", mute)) for number in range(15)]
        async with asyncio.timeout(15):
            await wait_for(15)
            assert (await register("good", site.url)).status_code == 200
            waiting.append(asyncio.create_task(register("mute-15", mute)))
            await wait_for(16)
            answer = await register("another", site.url)
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "30")
        site.hanging.set()
        # A request wakes the thread of the site.
        async with httpx.AsyncClient() as web:
            await web.get(site.url)
        await asyncio.gather(*waiting)


async def test_there_is_no_other(house: House) -> None:
    for ask in (house.http.get("/mcp_servers/x"), house.http.post("/mcp_servers/x/refresh"), house.http.delete("/mcp_servers/x")):
        assert refused(await ask) == (404, "server_not_found", "")


async def test_servers_are_asked_again_when_they_are_due(house: House, site: Site, database: Database, tmp_path: Path) -> None:
    await register(house, "far", url=site.url)
    fresh, stale = registered_servers(database, tmp_path), registered_servers(database, tmp_path, every_s=0)
    assert (await fresh.refresh_due(), await fresh.look_at_due()) == ((), ())
    assert await stale.refresh_due() == ("MCP server far: to be asked again",)
    assert await stale.look_at_due() == ("MCP server far: 1 tools",)


async def test_servers_of_a_file_are_looked_at_beside_everything_else(house: House, site: Site, database: Database, tmp_path: Path) -> None:
    rows, servers = McpServerRows(database), registered_servers(database, tmp_path)
    specs = {"far": McpServerSpec(type=McpTransport.STREAMABLE_HTTP, url=site.url), "away": McpServerSpec(url="http://127.0.0.1:9/mcp")}
    assert await rows.bring_in(specs, ()) == BroughtIn()
    watching = asyncio.create_task(servers.watch())
    try:
        async with asyncio.timeout(20):
            while None in {server.attempted_at for server in await rows.list_all()}:  # noqa: ASYNC110 - the database has no event
                await asyncio.sleep(0.02)
    finally:
        watching.cancel()
    away, far = await rows.list_all()
    assert (far.tool_ids, far.error, away.tool_ids, away.error != "") == (("far_act",), "", (), True)
