"""`mcp.json`: the servers of a client's own file."""

import json
from pathlib import Path

import pytest
from pydantic import JsonValue

from engine.registry.archives import ProjectArchives
from engine.registry.catalog import CatalogImport
from engine.registry.export import CatalogExport
from engine.registry.formats.mcp_json import server_name
from engine.store.content.folder import FolderContent
from engine.store.database import Database
from engine.store.files import FileStore
from engine.store.mcp_servers import McpServerRows
from toolagent.contracts.mcp_oauth import McpOAuth
from toolagent.contracts.mcp_servers import McpServer, McpServerSpec, McpTransport
from workers.state.secrets import SecretSource

TIME: dict[str, JsonValue] = {"command": "uvx", "args": ["mcp-server-time"]}


class Importing:
    def __init__(self, database: Database, folder: Path) -> None:
        self._folder = folder / "data"
        self._folder.mkdir()
        (self._folder / "registry.json").write_text('{"version": "2.0", "tools": []}')
        archives = ProjectArchives(FileStore(database, FolderContent(folder), folder, 1_000_000))
        self._import = CatalogImport(database, archives, SecretSource({}, folder / "secrets"), "host-1")
        self.rows, self.export = McpServerRows(database), CatalogExport(database)

    async def bring_in(self, servers: JsonValue, **beside: JsonValue) -> list[str]:
        """The faulty fields."""
        (self._folder / "mcp.json").write_text(json.dumps({"mcpServers": servers, **beside}))
        return [fault.field for fault in await self._import.run(self._folder, ())]

    async def names(self) -> list[str]:
        return [server.name for server in await self.rows.list_all()]


@pytest.fixture
def importing(database: Database, tmp_path: Path) -> Importing:
    return Importing(database, tmp_path)


async def test_servers_of_a_file_are_due_at_once_and_go_with_their_entries(importing: Importing) -> None:
    assert await importing.bring_in({"Time Server": TIME, "off": {**TIME, "disabled": True}}) == []
    servers = await importing.rows.list_all()
    assert [(server.name, server.from_file, server.attempted_at) for server in servers] == [("time_server", True, None)]
    assert servers[0].spec == McpServerSpec(type=McpTransport.STDIO, command="uvx", args=("mcp-server-time",))
    assert await importing.bring_in({}) == []
    assert await importing.names() == []


async def test_a_changed_entry_is_due_again_and_an_unchanged_one_is_not(importing: Importing) -> None:
    await importing.bring_in({"a": TIME, "b": TIME})
    for server in await importing.rows.list_all():
        await importing.rows.note(server, attempted_at=server.registered_at)
    await importing.bring_in({"a": TIME, "b": {"command": "uvx", "args": ["other"]}})
    assert [(server.name, server.attempted_at is None) for server in await importing.rows.list_all()] == [("a", False), ("b", True)]


async def test_an_entry_that_cannot_be_used_is_told_and_stops_no_other(importing: Importing) -> None:
    servers: JsonValue = {"a": {**TIME, "url": "https://a.example"}, "b": {"arg": []}, "9": TIME, "c": 5, "ok": TIME, "OK": TIME}
    assert await importing.bring_in(servers) == [
        "$.mcpServers.a.command",
        "$.mcpServers.b.url",
        "$.mcpServers.9",
        "$.mcpServers.c",
        "$.mcpServers.OK",
    ]
    assert await importing.names() == ["ok"]


async def test_keys_are_moved_and_told(importing: Importing, tmp_path: Path) -> None:
    env: JsonValue = {"GITHUB_TOKEN": "abc", "DSN": "postgres://me:pass@db/x", "OTHER": "sk-0123456789abcdefghij", "PLAIN": "x"}
    faults = await importing.bring_in({"a": {**TIME, "env": env}})
    assert faults == ["$.mcpServers.a.env.GITHUB_TOKEN", "$.mcpServers.a.env.DSN", "$.mcpServers.a.env.OTHER"]
    given = (await importing.rows.list_all())[0].spec.env
    assert [name for name, value in given.items() if value.startswith("secret:MCP_A_ENV_")] == ["GITHUB_TOKEN", "DSN", "OTHER"]
    assert len((tmp_path / "secrets").read_text().splitlines()) == 3


async def test_the_keys_of_a_server_that_is_changed_or_leaves_the_file_go(importing: Importing, tmp_path: Path) -> None:
    await importing.bring_in({"a": {**TIME, "env": {"API_KEY": "first-key-of-a"}}, "b": {**TIME, "env": {"API_KEY": "the-key-of-b"}}})
    await importing.bring_in({"a": {**TIME, "env": {"API_KEY": "second-key-of-a"}}, "b": {**TIME, "env": {"API_KEY": "the-key-of-b"}}})
    kept = [line.partition("=")[2] for line in (tmp_path / "secrets").read_text().splitlines()]
    assert sorted(kept) == ["second-key-of-a", "the-key-of-b"]
    await importing.bring_in({"b": {**TIME, "env": {"API_KEY": "the-key-of-b"}}})
    assert [line.partition("=")[2] for line in (tmp_path / "secrets").read_text().splitlines()] == ["the-key-of-b"]


async def test_secrets_are_named_but_for_the_key_of_the_service(importing: Importing) -> None:
    env: JsonValue = {"GITHUB_TOKEN": "secret:GITHUB", "DSN": "secret:DSN"}
    assert await importing.bring_in({"a": {**TIME, "env": env}, "b": {**TIME, "env": {"X": "secret:MCP_STATE_KEY"}}}) == [
        "$.mcpServers.b.env"
    ]
    assert [server.spec.env for server in await importing.rows.list_all()] == [env]


async def test_a_secret_is_named_after_a_scheme_too_and_a_client_names_its_own(importing: Importing, tmp_path: Path) -> None:
    headers: JsonValue = {"Authorization": "Bearer secret:TICKETS", "X-Key": "Token secret:OTHER"}
    oauth: JsonValue = {"client_id": "us", "client_secret": "secret:CLIENT"}
    servers: dict[str, JsonValue] = {
        "a": {"url": "https://a.example/mcp", "headers": headers},
        "b": {"url": "https://b.example/mcp", "oauth": oauth},
        "c": {"url": "https://c.example/mcp", "headers": {"X-Key": "Bearer secret:lower"}},
        "d": {"url": "http://d.example/mcp", "headers": headers},
        "e": {"url": "https://e.example/mcp", "headers": {"Authorization": "Bearer secret:MCP_STATE_KEY"}},
    }
    faults = await importing.bring_in(servers)
    assert faults == ["$.mcpServers.c.headers", "$.mcpServers.d.url", "$.mcpServers.e.headers"]
    a, b = await importing.rows.list_all()
    assert (a.spec.headers, b.spec.oauth) == (headers, McpOAuth(client_id="us", client_secret="secret:CLIENT"))  # noqa: S106 - a name
    assert not (tmp_path / "secrets").exists()


async def test_a_server_that_was_registered_stays(importing: Importing, database: Database) -> None:
    await importing.bring_in({"a": TIME})
    server: McpServer = (await importing.rows.list_all())[0]
    await importing.rows.note(server, from_file=False)
    assert await importing.bring_in({"a": {"command": "other"}}) == ["$.mcpServers.a"]
    assert await importing.bring_in({}) == []
    assert (await importing.rows.list_all())[0].spec == server.spec


async def test_the_file_is_written_again(importing: Importing) -> None:
    await importing.bring_in({"a": {**TIME, "prefix": ""}, "b": {"url": "https://b.example/mcp"}}, inputs=[])
    document = (await importing.export.documents())["mcp.json"]
    assert document == {
        "inputs": [],
        "mcpServers": {
            "a": {"type": "stdio", "command": "uvx", "args": ["mcp-server-time"], "prefix": ""},
            "b": {"type": "streamable_http", "url": "https://b.example/mcp"},
        },
    }


def test_names_become_such_that_a_group_may_have() -> None:
    assert [*map(server_name, ("GitHub Server", "a.b/c", "9x", "天气", "x" * 70))] == ["github_server", "a_b_c", "x", "", "x" * 64]
