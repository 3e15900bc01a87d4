"""Cloning over ssh from a real sshd: results, refusals with reasons, and no leftovers."""

import asyncio
import gc
import os
import socket
from collections.abc import Generator
from pathlib import Path

import pytest

from engine.making.repositories.addresses import CloneFailed, CloneFailure, RepositoryAddress
from engine.making.repositories.cloning import CloneLimits, Cloner
from engine.making.repositories.ssh import SshAccess, SshClient
from engine.network.ports import free_port
from engine.runtimes.environments.execution import Executor
from engine.runtimes.local.boxed_runs import Sandboxing
from engine.runtimes.process.box import Box
from engine.runtimes.process.processes import Launcher
from engine.runtimes.sandbox.socket_folder import SocketFolders
from tests.making.inspection.git import commit, git, repository
from tests.making.inspection.ssh_server import SshServer, ssh_server
from tests.parts import sandboxing
from tests.runtimes.conftest import leftovers
from toolagent.contracts.sandbox import SandboxLimits, SandboxPolicy

HOST = "repositories.test"
FILES = {"a.txt": "a", "it's! here/b.txt": "b"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[SshServer]:
    with ssh_server(tmp_path_factory.mktemp("sshd"), HOST) as one:
        yield one


@pytest.fixture(scope="module")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("origins") / "it's! one"
    repository(folder, FILES)
    return folder


async def resolve(_host: str, _port: int) -> list[str]:
    return ["127.0.0.1"]


def allowing(port: int, state: Path, launcher: Launcher) -> Sandboxing:
    """A host whose operator permits the server, although its address is private."""
    return sandboxing(state, launcher, state / "environments", SandboxPolicy(private_hosts=(f"{HOST}:{port}",)))


@pytest.fixture
def there(state: Path, launcher: Launcher, server: SshServer) -> Sandboxing:
    return allowing(server.port, state, launcher)


def cloner(launcher: Launcher, sandbox: Sandboxing, state: Path, access: SshAccess, limits: CloneLimits | None = None) -> Cloner:
    ssh = SshClient(launcher, SocketFolders(state, None), access, resolve=resolve)
    return Cloner(Executor(launcher, sandbox.sandbox), schemes=("ssh",), limits=limits, ssh=ssh)


def letting_in(server: SshServer) -> SshAccess:
    return SshAccess(server.key, server.known_hosts)


def address(server: SshServer, origin: Path | str) -> str:
    return f"ssh://{server.user}@{HOST}:{server.port}{origin}".replace(" ", "%20")


def exists(path: Path) -> bool:
    return path.exists()


async def failing(cloner: Cloner, url: str, into: Path, state: Path) -> CloneFailed:
    """The reason of a failed clone. Requires that nothing is left."""
    with pytest.raises(CloneFailed) as caught:
        await cloner.clone(url, into)
    assert not exists(into)
    assert leftovers(state) == []
    assert list((state / "run").glob("*")) == []
    return caught.value


async def test_a_repository_is_cloned_over_ssh_by_a_git_that_has_no_network(
    tmp_path: Path, state: Path, launcher: Launcher, there: Sandboxing, server: SshServer, origin: Path
) -> None:
    newest = git(origin, "rev-parse", "HEAD")
    clone = await cloner(launcher, there, state, letting_in(server)).clone(address(server, origin), tmp_path / "clone")
    files = {path.relative_to(clone.folder).as_posix(): path.read_text() for path in clone.folder.rglob("*") if path.is_file()}
    assert (clone.commit, files) == (newest, FILES)
    assert leftovers(state) == []


async def test_a_repository_of_several_megabytes_comes_whole(
    tmp_path: Path, state: Path, launcher: Launcher, there: Sandboxing, server: SshServer
) -> None:
    (tmp_path / "origin").mkdir()
    content = os.urandom(2_000_000)
    (tmp_path / "origin" / "large.bin").write_bytes(content)
    git(tmp_path / "origin", "init", "--quiet")
    commit(tmp_path / "origin", {})
    clone = await cloner(launcher, there, state, letting_in(server)).clone(address(server, tmp_path / "origin"), tmp_path / "clone")
    assert (clone.folder / "large.bin").read_bytes() == content
    small = cloner(launcher, there, state, letting_in(server), CloneLimits(max_bytes=1_000_000))
    assert (await failing(small, address(server, tmp_path / "origin"), tmp_path / "small", state)).kind is CloneFailure.TOO_LARGE


async def test_a_host_whose_key_is_unknown_or_another_is_not_trusted(
    tmp_path: Path, state: Path, launcher: Launcher, there: Sandboxing, server: SshServer, origin: Path
) -> None:
    (tmp_path / "none").touch()
    for known_hosts, said in ((tmp_path / "none", "is not known here"), (server.other_hosts, "another key than the known one")):
        access = SshAccess(server.key, known_hosts)
        failure = await failing(cloner(launcher, there, state, access), address(server, origin), tmp_path / "clone", state)
        assert (failure.kind, said in failure.message) == (CloneFailure.NOT_TRUSTED, True), failure.message
    assert (tmp_path / "none").read_text() == ""


async def test_a_key_that_is_not_let_in_is_denied(
    tmp_path: Path, state: Path, launcher: Launcher, there: Sandboxing, server: SshServer, origin: Path
) -> None:
    access = SshAccess(server.stranger, server.known_hosts)
    failure = await failing(cloner(launcher, there, state, access), address(server, origin), tmp_path / "clone", state)
    assert failure.kind is CloneFailure.DENIED


async def test_a_repository_that_is_not_there_is_not_found(
    tmp_path: Path, state: Path, launcher: Launcher, there: Sandboxing, server: SshServer
) -> None:
    failure = await failing(cloner(launcher, there, state, letting_in(server)), address(server, "/nowhere"), tmp_path / "clone", state)
    assert failure.kind is CloneFailure.NOT_FOUND


async def test_without_a_client_or_a_server_ssh_is_unavailable(
    tmp_path: Path, state: Path, launcher: Launcher, there: Sandboxing, server: SshServer, origin: Path
) -> None:
    without = cloner(launcher, there, state, SshAccess(server.key, server.known_hosts, path="/nonexistent"))
    assert (await failing(without, address(server, origin), tmp_path / "clone", state)).kind is CloneFailure.UNAVAILABLE
    port = free_port()
    nobody = cloner(launcher, allowing(port, state, launcher), state, letting_in(server))
    assert (await failing(nobody, f"ssh://{HOST}:{port}/x", tmp_path / "clone", state)).kind is CloneFailure.UNAVAILABLE


async def test_a_private_address_is_not_allowed_over_ssh_either(
    tmp_path: Path, state: Path, launcher: Launcher, sandbox: Sandboxing, server: SshServer, origin: Path
) -> None:
    failure = await failing(cloner(launcher, sandbox, state, letting_in(server)), address(server, origin), tmp_path / "clone", state)
    assert (failure.kind, "private_hosts" in failure.message) == (CloneFailure.NOT_ALLOWED, True)


async def test_a_server_that_says_nothing_ends_with_the_time_limit_and_a_cancelled_clone_leaves_nothing(
    tmp_path: Path, state: Path, launcher: Launcher, server: SshServer
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        mute.settimeout(20)
        port = mute.getsockname()[1]
        url, there = f"ssh://{HOST}:{port}/x", allowing(port, state, launcher)
        brief = cloner(launcher, there, state, letting_in(server), CloneLimits(wall_s=1.0))
        assert (await failing(brief, url, tmp_path / "clone", state)).kind is CloneFailure.TIMEOUT
        mute.accept()[0].close()
        cloning = asyncio.create_task(cloner(launcher, there, state, letting_in(server)).clone(url, tmp_path / "clone"))
        connection, _ = await asyncio.to_thread(mute.accept)
        cloning.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cloning
        connection.close()
    assert (exists(tmp_path / "clone"), leftovers(state)) == (False, [])


@pytest.mark.parametrize("steps", range(5))
async def test_a_connection_is_not_left_open_when_the_clone_ends_as_it_comes(state: Path, launcher: Launcher, steps: int) -> None:
    client = SshClient(launcher, SocketFolders(state, None), resolve=resolve)
    address, box = RepositoryAddress("ssh", f"ssh://{HOST}/one", "/one", HOST, 22), Box("ends", Path("/"), SandboxLimits())
    with socket.socket(socket.AF_UNIX) as git:
        async with client.open(address, box, (f"{HOST}:22",), state / "logs") as way:
            await asyncio.sleep(0)
            git.connect(str(Path(way.box.environment["GIT_SSH"]).with_name("ssh.sock")))
            for _ in range(steps):
                await asyncio.sleep(0)
    # An open one is found then, which fails the test.
    gc.collect()
