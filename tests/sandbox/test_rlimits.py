"""The level `rlimits`: dropped rights, mapped paths and ports, and its declared gaps."""

import asyncio
import contextlib
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Coroutine, Generator
from pathlib import Path

import httpx
import pytest

from engine.network.ports import free_port
from engine.runtimes.environments.execution import Execution, Executor, Order
from engine.runtimes.process.box import Box, LevelUnavailable, Mount
from engine.runtimes.process.guardian import Guardian
from engine.runtimes.process.ownership import Owner
from engine.runtimes.process.processes import Launcher
from engine.runtimes.sandbox.egress import Egress, Opening
from engine.runtimes.sandbox.identities import Identities
from engine.runtimes.sandbox.levels import confine
from engine.runtimes.sandbox.levels.cgroups import Cgroups
from engine.runtimes.sandbox.levels.rlimits import RLimits
from engine.runtimes.sandbox.sandbox import Sandbox, run_name
from tests.machine import lacking
from toolagent.contracts.sandbox import SandboxLimits, SandboxPolicy

LIMITS = SandboxPolicy().defaults
PYTHON = str(Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}"))

Ran = Callable[..., Coroutine[None, None, Execution]]


@pytest.fixture
def owner(tmp_path: Path) -> Owner:
    return Owner.of_this_process(tmp_path)


@pytest.fixture
def launcher(owner: Owner) -> Generator[Launcher]:
    with Guardian(owner) as guardian:
        yield Launcher(owner, guardian, {}, shutil.which("setpriv"))


@pytest.fixture
def run(launcher: Launcher, owner: Owner, tmp_path: Path) -> Ran:
    async def ran(
        *argv: str,
        mounts: tuple[Mount, ...] = (),
        folder: Path = Path("/tmp"),  # noqa: S108 - the run's own
        limits: SandboxLimits = LIMITS,
        ports: tuple[int, ...] = (),
        abi: int | None = None,
        **environment: str,
    ) -> Execution:
        level = RLimits(tmp_path / "rlimits", owner, Cgroups(owner), None, abi=abi)
        box = Box(run_name("test"), folder, limits, mounts, {"PATH": "/usr/bin:/bin", **environment}, ports)
        executor = Executor(launcher, Sandbox(level, SandboxPolicy()))
        return await executor.run(Order(argv, box, 20, tmp_path / "logs"))

    return ran


def landlock(version: int) -> None:
    if confine.abi() < version:
        lacking(f"This kernel's Landlock is older than version {version}.")


async def test_streams_codes_and_signals_are_those_of_the_program(run: Ran) -> None:
    ended = await run("/bin/sh", "-c", "echo out; echo err >&2; exit 7")
    assert (ended.code, ended.stdout, ended.stderr) == (7, b"out\n", b"err\n")
    assert (await run("/bin/sh", "-c", "kill -9 $$")).code == 128 + 9


async def test_a_program_that_is_not_there_is_told(run: Ran) -> None:
    ended = await run("/usr/bin/not-there")
    assert (ended.code, b"/usr/bin/not-there" in ended.stderr) == (126, True)


async def test_it_has_its_own_environment_and_descriptors_alone(run: Ran) -> None:
    ended = await run("/usr/bin/env", X="1")
    names = {line.split("=")[0] for line in ended.stdout.decode().splitlines()}
    assert names == {"PATH", "X", "TMPDIR", "TOOL_AGENT_OWNER", "TOOL_AGENT_RUN"}
    ended = await run(PYTHON, "-I", "-S", "-c", "import os; print([fd for fd in range(3, 99) if os.path.exists(f'/proc/self/fd/{fd}')])")
    assert ended.stdout == b"[]\n", ended.stderr


async def test_a_mount_is_written_or_read_as_it_says_and_nothing_beside_it(run: Ran, tmp_path: Path) -> None:
    landlock(1)
    for name in ("read", "write", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("kept")
    mounts = (Mount(tmp_path / "read", tmp_path / "read"), Mount(tmp_path / "write", tmp_path / "write", writable=True))
    text = f"cd {tmp_path}; cat read/file write/file; echo new >write/file; echo x >read/file; cat other/file /etc/shadow; ls /root"
    ended = await run("/bin/sh", "-c", text, mounts=mounts)
    assert ended.stdout == b"keptkept"
    assert [(tmp_path / name / "file").read_text() for name in ("read", "write", "other")] == ["kept", "new\n", "kept"]


async def test_a_mount_that_would_be_seen_elsewhere_is_named_where_it_is(run: Ran, tmp_path: Path) -> None:
    home = tmp_path / "real-home"
    (home / "sub").mkdir(parents=True)
    text = 'pwd; echo "$HOME"; echo "$TWO"; echo "$1"; echo hello >"$HOME/file"; echo x >"$TMPDIR/x"; echo "$2"'
    ended = await run(
        "/bin/sh", "-c", text, "sh", "/home/tool/sub", "/home/tool.x",
        mounts=(Mount(home, Path("/home/tool"), writable=True),),
        folder=Path("/home/tool"), HOME="/home/tool", TWO="/home/tool/sub:/usr/bin",
    )  # fmt: skip
    assert ended.stdout.decode().split() == [str(home), str(home), f"{home}/sub:/usr/bin", f"{home}/sub", "/home/tool.x"], ended.stderr
    assert (home / "file").read_text() == "hello\n"


async def test_its_scratch_is_its_own_and_gone_afterwards(run: Ran, tmp_path: Path) -> None:
    deep = "import os, sys\nos.chdir(os.environ['TMPDIR'])\nfor _ in range(100):\n os.mkdir('d'); os.chdir('d')\nopen('x', 'w').close()\n"
    closed = "os.chdir(os.environ['TMPDIR']); os.makedirs('a/b'); os.chmod('a', 0); print(os.getcwd())"
    ended = await run(PYTHON, "-I", "-S", "-c", deep + closed)
    scratch = Path(ended.stdout.decode().strip())
    assert scratch.is_relative_to(tmp_path / "rlimits")
    assert not scratch.exists()  # noqa: ASYNC240 - a look


def another_inside(one: Path) -> tuple[Mount, ...]:
    return Mount(one / "a", one / "a"), Mount(one / "b", one / "a" / "in")


def read_only_inside(one: Path) -> tuple[Mount, ...]:
    return Mount(one / "a", one / "a", writable=True), Mount(one / "a" / "in", one / "a" / "in")


@pytest.mark.parametrize(("nested", "why"), [(another_inside, "seen as"), (read_only_inside, "read-only")])
async def test_what_needs_a_view_of_its_own_is_refused(
    owner: Owner, tmp_path: Path, nested: Callable[[Path], tuple[Mount, ...]], why: str
) -> None:
    (tmp_path / "a" / "in").mkdir(parents=True)
    (tmp_path / "b").mkdir()
    level = RLimits(tmp_path / "rlimits", owner, Cgroups(owner), None)
    with pytest.raises(LevelUnavailable, match=why):
        await level.prepare(["/bin/true"], Box("refused", Path("/"), LIMITS, nested(tmp_path)))
    assert list((tmp_path / "rlimits").glob("*/refused")) == []


async def test_as_root_a_closed_folder_on_the_way_is_named_with_its_remedy(owner: Owner, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "tool").mkdir(parents=True)
    closed.chmod(0o700)
    level = RLimits(tmp_path / "rlimits", owner, Cgroups(owner), Identities(folder=tmp_path / "users"))
    with pytest.raises(LevelUnavailable, match=r"is closed to the user 6.*chmod o\+x"):
        await level.prepare(["/bin/true"], Box("closed", Path("/"), LIMITS, (Mount(closed / "tool", closed / "tool"),)))


CONNECT = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5); print('connected')"


async def test_only_the_ports_it_needs_are_reached(run: Ran) -> None:
    landlock(4)
    with socket.create_server(("127.0.0.1", 0)) as serving:
        port = serving.getsockname()[1]
        assert (await run(PYTHON, "-I", "-c", CONNECT, str(port), ports=(port,))).stdout == b"connected\n"
        refused = await run(PYTHON, "-I", "-c", CONNECT, str(port), ports=(free_port(),))
        assert (refused.stdout, b"PermissionError" in refused.stderr) == (b"", True)


async def test_without_landlock_it_runs_and_says_what_is_open(run: Ran, owner: Owner, tmp_path: Path) -> None:
    (tmp_path / "other").write_text("seen")
    assert (await run("/bin/sh", "-c", f"cat {tmp_path}/other", abi=0)).stdout == b"seen"
    told = {one.item for one in RLimits(tmp_path / "rlimits", owner, Cgroups(owner), None, abi=0).differences()}
    assert {"landlock", "landlock.truncate", "landlock.network", "landlock.scope", "mounts", "network", "tmp"} <= told


@pytest.mark.parametrize("abi", [1, 2, 3, 4, 5, 6])
async def test_an_older_landlock_holds_what_it_can(run: Ran, tmp_path: Path, abi: int) -> None:
    landlock(abi)
    (tmp_path / "other").write_text("secret")
    ended = await run("/bin/sh", "-c", f"cat {tmp_path}/other", abi=abi)
    assert (ended.code, ended.stdout) == (1, b"")


def test_what_it_does_not_hold_is_said_each_once(owner: Owner, tmp_path: Path) -> None:
    as_ourselves = [one.item for one in RLimits(tmp_path / "a", owner, Cgroups(owner), None).differences()]
    as_payload = [one.item for one in RLimits(tmp_path / "a", owner, Cgroups(owner), Identities(folder=tmp_path / "users")).differences()]
    assert len(as_ourselves) == len(set(as_ourselves))
    assert set(as_ourselves) - set(as_payload) == {"user", "neighbours", "unix sockets"}


async def test_limits_are_hard(run: Ran) -> None:
    limits = LIMITS.model_copy(update={"open_files": 50, "file_bytes": 4096})
    text = "ulimit -Hn; ulimit -Hc; ulimit -Hf; (ulimit -n 60) 2>/dev/null || echo held"
    assert (await run("/bin/sh", "-c", text, limits=limits)).stdout.split() == [b"50", b"0", b"8", b"held"]


async def test_a_program_that_asks_to_be_ended_nicely_is(launcher: Launcher, owner: Owner, tmp_path: Path) -> None:
    level = RLimits(tmp_path / "rlimits", owner, Cgroups(owner), None)
    text = 'trap "echo bye; exit 3" TERM; echo ready >"$TMPDIR/../ready"; while :; do sleep 0.05; done'
    data = tmp_path / "data"
    data.mkdir()
    text = text.replace("$TMPDIR/../ready", str(data / "ready"))
    box = Box("nicely", data, LIMITS, (Mount(data, data, writable=True),), {"PATH": "/usr/bin:/bin"})
    process = await launcher.launch_boxed(await level.prepare(["/bin/sh", "-c", text], box), ["sh"], logs=tmp_path / "logs")
    async with asyncio.timeout(60):
        while not (data / "ready").exists():  # noqa: ASYNC110 - written by another process
            await asyncio.sleep(0.02)
    assert await process.stop(10) == 3
    assert process.stdout.tail() == "bye\n"


async def test_what_dead_workers_left_is_swept(owner: Owner, tmp_path: Path) -> None:
    folder = tmp_path / "rlimits"
    dead = Owner(owner.state, 2**22 + 1, 1.0)
    for mark in (dead.mark, owner.mark):
        (folder / mark / "run-1" / "x").mkdir(parents=True)
    assert await RLimits(folder, owner, Cgroups(owner), None).sweep() == ("run-1",)
    assert sorted(path.name for path in folder.iterdir() if path.name != "etc") == [owner.mark]


SERVER = """
import http.server, sys, urllib.error, urllib.request
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        try: said = str(urllib.request.urlopen("http://b.test/", timeout=10).status)
        except urllib.error.HTTPError as error: said = str(error.code)
        self.send_response(200); self.end_headers(); self.wfile.write(said.encode())
    def log_message(self, *_): pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


async def test_a_tool_that_serves_is_reached_by_its_door_and_reaches_the_proxy(launcher: Launcher, owner: Owner, tmp_path: Path) -> None:
    landlock(4)
    level = RLimits(tmp_path / "rlimits", owner, Cgroups(owner), None)
    port, state = free_port(), Path(tempfile.mkdtemp(prefix="ta-"))
    try:
        async with Egress(state).open("serving", Opening(hosts=("a.test",), port=port, is_apart=level.has_own_network)) as way:
            command = way.argv([PYTHON, "-I", "-c", SERVER, str(port)])
            box = Box("serving", Path("/tmp"), LIMITS, way.mounts, {"PATH": "/usr/bin:/bin", **way.environment}, way.ports)  # noqa: S108 - its own
            process = await launcher.launch_boxed(await level.prepare(command, box), command, logs=tmp_path / "logs")
            try:
                transport = httpx.AsyncHTTPTransport(uds=way.endpoint.removeprefix("unix:"))
                async with httpx.AsyncClient(transport=transport, timeout=20) as client, asyncio.timeout(60):
                    while True:
                        with contextlib.suppress(httpx.TransportError):
                            answer = await client.get("http://tool/")
                            break
                        await asyncio.sleep(0.05)
            finally:
                await process.kill()
            assert (answer.text, [one.host for one in way.asks.kept]) == ("403", ["b.test"]), process.stderr.tail()
    finally:
        await asyncio.to_thread(shutil.rmtree, state)
