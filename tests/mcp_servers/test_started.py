"""Servers that are started here: their lists, failed starts, and packages of the indexes."""

import asyncio
import shutil
from collections.abc import Generator
from pathlib import Path

import pytest

from engine.making.node_projects.npm_runs import NpmRuns
from engine.making.uv.locking import ProjectLocks
from engine.making.uv.runs import UvRuns
from engine.mcp_servers.looking import ServerLooks
from engine.mcp_servers.preparing import PackageParts, PackageServers
from engine.network.ports import LOOPBACK, free_port
from engine.registry.archives import ProjectArchives
from engine.registry.stored_archives import StoredArchives
from engine.runtimes.environments.execution import Executor
from engine.runtimes.environments.indexes import Index, Installer
from engine.runtimes.http.exchange import HttpExchange
from engine.runtimes.local.boxed_runs import LocalSettings
from engine.runtimes.mcp.runtime import McpRuntime
from engine.runtimes.projects import Projects
from engine.store.content.folder import FolderContent
from engine.store.database import Database
from engine.store.files import FileStore
from tests.parts import installer_of, launching, machine_indexes, sandboxing
from toolagent.contracts.mcp_servers import McpServerSpec
from toolagent.contracts.sources import ScriptLanguage
from toolagent.core.failures import McpServerNotReachedError, McpServerNotStartedError, McpServerRefusedError
from toolagent.core.mcp_specs import settled_spec

LISTS = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    about = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "near", "version": "1"}}
    tools = {"tools": [{"name": "act", "inputSchema": {"type": "object"}}]}
    result = {"initialize": about, "tools/list": tools}.get(asked["method"], {})
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""
FLOODS = "import sys\nwhile True:\n    sys.stderr.write('x' * 100_000)\n    sys.stderr.flush()\n"


@pytest.fixture
def start_timeout_s() -> float:
    return 20.0


@pytest.fixture
def npm_index() -> tuple[Index, float] | None:
    """The index of npm, and its time limit in seconds; None for that of this machine."""
    return None


@pytest.fixture
def looks(database: Database, tmp_path: Path, start_timeout_s: float, npm_index: tuple[Index, float] | None) -> Generator[ServerLooks]:
    state = tmp_path / "state"
    state.mkdir()
    with launching(state) as launcher:
        sandbox = sandboxing(state, launcher, tmp_path / "environments")
        programs = sandbox.environments.programs
        executor, installer = Executor(launcher, sandbox.sandbox), installer_of(machine_indexes(programs), sandbox.egress)
        files = FileStore(database, FolderContent(tmp_path / "files"), tmp_path / "files", 64 * 1_048_576)
        archives = ProjectArchives(files)
        settings = LocalSettings(data=tmp_path, state=state, calls=state / "calls", start_timeout_s=start_timeout_s, stop_grace_s=2.0)
        projects = Projects(state / "projects", StoredArchives(files, archives))
        runtime = McpRuntime(settings, launcher, sandbox, HttpExchange(), lambda _: None, projects)
        locks = ProjectLocks(UvRuns(executor, programs, installer))
        npm = NpmRuns(executor, programs, installer if npm_index is None else at_index(*npm_index))
        yield ServerLooks(runtime, PackageServers(PackageParts(tmp_path / "work", locks, npm, sandbox.environments, archives)))


def at_index(index: Index, timeout_s: float) -> Installer:
    async def told(_: ScriptLanguage) -> Index:
        return index

    return Installer(told, timeout_s=timeout_s)


def npm_at(address: str, retries: int = 0) -> Index:
    return Index((), {"npm_config_registry": address, "npm_config_fetch_retries": str(retries)})


def python(program: str) -> McpServerSpec:
    return settled_spec(McpServerSpec(command="python3", args=("-c", program)))


async def test_a_program_of_the_machine_is_asked_in_the_sandbox(looks: ServerLooks) -> None:
    look = await looks.look("near", python(LISTS))
    assert [*look.found.by_id] == ["near_act"]
    assert (look.found.source.process, look.found.source.server, look.left_out) == ("near", "near", ())


def folders(state: Path) -> list[Path]:
    return [folder for kind in ("tools", "calls") for folder in (state / kind).iterdir()]


@pytest.mark.parametrize("program", [LISTS, "import sys; sys.exit('no configuration')"], ids=["lists", "refused"])
async def test_a_look_leaves_no_folder(looks: ServerLooks, tmp_path: Path, program: str) -> None:
    await asyncio.gather(*[looks.look("near", python(program)) for _ in range(2)], return_exceptions=True)
    assert folders(tmp_path / "state") == []


@pytest.mark.parametrize("start_timeout_s", [3.0])
@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import sys; sys.exit('no configuration')", "It said last: no configuration"),
        ("print('garbage')", "exited with code 0"),
        (FLOODS, "did not answer `initialize`"),
    ],
)
async def test_a_server_that_does_not_come_up_says_why(looks: ServerLooks, program: str, said: str) -> None:
    with pytest.raises(McpServerNotReachedError, match=said):
        await looks.look("near", python(program))


async def test_a_program_that_is_not_there_is_named(looks: ServerLooks) -> None:
    with pytest.raises(McpServerRefusedError, match=r"There is no program 'uvx\.exe' in the sandbox"):
        await looks.look("near", settled_spec(McpServerSpec(command="uvx.exe")))


@pytest.mark.parametrize("right", ["read", "write"])
async def test_a_folder_that_the_policy_does_not_give_is_named_with_what_to_add(looks: ServerLooks, right: str) -> None:
    spec = python(LISTS).model_copy(update={f"allow_{right}": ("/srv/models", "/srv/notes")})
    with pytest.raises(McpServerRefusedError, match=rf'{right}: \["/srv/models", "/srv/notes"\]') as refused:
        await looks.look("near", spec)
    assert (refused.value.field, "TOOL_AGENT_SANDBOX_POLICY" in str(refused.value)) == (f"allow_{right}", True)


@pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not on this machine.")
@pytest.mark.parametrize(
    ("npm_index", "said"),
    [
        ((npm_at(f"http://{LOOPBACK}:{free_port()}/"), 60.0), "ECONNREFUSED"),
        ((npm_at("http://me:secret@registry.invalid/"), 60.0), "holds a password"),
        ((npm_at(f"http://{LOOPBACK}:{free_port()}/", retries=5), 3.0), "took too long"),
    ],
    ids=["away", "password", "late"],
)
async def test_a_package_that_cannot_be_had_for_what_is_ours_is_no_fault_of_its_arguments(looks: ServerLooks, said: str) -> None:
    with pytest.raises(McpServerNotStartedError, match=said) as failed:
        await looks.look("near", settled_spec(McpServerSpec(command="npx", args=("-y", "some-server"))))
    assert "secret" not in str(failed.value)


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "tool"),
    [
        ("uvx mcp-server-time", "near_get_current_time"),
        ("uvx mcp-server-sqlite", "near_list_tables"),
        ("npx -y @modelcontextprotocol/server-everything", "near_echo"),
    ],
)
async def test_a_package_is_locked_once_and_the_same_is_started_again(looks: ServerLooks, command: str, tool: str) -> None:
    """The second package needs an older SDK than the newest of the index."""
    first, *args = command.split()
    spec = settled_spec(McpServerSpec(command=first, args=tuple(args)))
    look = await looks.look("near", spec)
    assert tool in look.found.by_id
    assert look.found.source.content is not None
    again = await looks.look("near", spec, look.found.source)
    assert again.found.by_id == look.found.by_id


@pytest.mark.long
async def test_a_package_that_is_not_there_or_has_no_such_program_is_told(looks: ServerLooks) -> None:
    cases = (
        ("uvx", ("no-such-package-of-anybody-1",), "cannot be locked"),
        ("npx", ("-y", "no-such-package-of-anybody-1"), "no-such-package-of-anybody-1"),
        ("uvx", ("packaging",), "has no program of that name"),
    )
    for command, args, said in cases:
        with pytest.raises(McpServerRefusedError, match=said) as refused:
            await looks.look("near", settled_spec(McpServerSpec(command=command, args=args)))
        assert refused.value.field == "args"
        assert "log of this run" not in str(refused.value)
