"""The sandbox level `docker`: visible files, limits, and clean-up."""

import json
import os
import shutil
import sys
from collections.abc import Callable, Coroutine, Generator
from dataclasses import replace
from pathlib import Path

import pytest

from engine.runtimes.docker.serving.sandbox_level import ContainerLevel
from engine.runtimes.docker_engine.engine import Engine
from engine.runtimes.docker_engine.labels import STATE
from engine.runtimes.docker_engine.settings import DockerSettings
from engine.runtimes.process.box import Box, LevelUnavailable, Mount
from engine.runtimes.process.guardian import Guardian
from engine.runtimes.process.processes import Launcher, Process
from engine.runtimes.sandbox.identities import DEFAULT_UIDS
from engine.runtimes.sandbox.sandbox import Sandbox, run_name
from toolagent.contracts.sandbox import SandboxLevel, SandboxLimits, SandboxPolicy
from workers.host.sandbox import identities

MIB = 1024 * 1024
LIMITS = SandboxPolicy().defaults


@pytest.fixture
def level(settings: DockerSettings, engine: Engine, tmp_path: Path) -> ContainerLevel:
    return ContainerLevel(tmp_path / "etc", engine, settings.owner, identities())


class Ran:
    def __init__(self, process: Process, code: int) -> None:
        self.code, self.ending = code, process.ending
        self.out, self.err = process.stdout.tail(), process.stderr.tail()


Launch = Callable[..., Coroutine[None, None, Ran]]


@pytest.fixture
def launch(level: ContainerLevel, settings: DockerSettings, tmp_path: Path) -> Generator[Launch]:
    """Run Python code in a box; returns how it ended."""
    with Guardian(settings.owner) as guardian:
        launcher = Launcher(settings.owner, guardian, {}, shutil.which("setpriv"))

        async def run(
            text: str,
            *,
            mounts: tuple[Mount, ...] = (),
            limits: SandboxLimits = LIMITS,
            stdin: bytes | None = None,
            folder: Path = Path("/"),
        ) -> Ran:
            python = str(Path(sys.base_prefix, "bin", "python3"))
            box = Box(run_name("try"), folder, limits, mounts, {"GIVEN": "yes"})
            argv = [python, "-c", text]
            prepared = await level.prepare(argv, box)
            process = await launcher.launch_boxed(prepared, argv, logs=tmp_path / "logs", stdin=stdin)
            return Ran(process, await process.wait())

        yield run


async def containers_of(engine: Engine, settings: DockerSettings) -> int:
    filters = {"label": f"{STATE}={settings.owner.state}"}
    return len(await engine.ask(lambda api: api.containers(all=True, filters=filters)))


async def test_streams_and_exit_code_are_those_of_the_program(launch: Launch, engine: Engine, settings: DockerSettings) -> None:
    ran = await launch("import sys; print(sys.stdin.read().upper()); print('oops', file=sys.stderr); sys.exit(7)", stdin=b"hello")
    assert (ran.err, ran.code, ran.out) == ("oops\n", 7, "HELLO\n")
    assert await containers_of(engine, settings) == 0


async def test_a_program_sees_its_environment_and_no_other(launch: Launch) -> None:
    ran = await launch("import json, os; print(json.dumps([k for k in os.environ if not k.startswith('LC_')]))")
    assert set(json.loads(ran.out)) <= {"GIVEN", "HOME", "HOSTNAME", "PATH", "TOOL_AGENT_OWNER"}


async def test_it_is_an_ordinary_user_without_capabilities(launch: Launch) -> None:
    ran = await launch("print(open('/proc/self/status').read())")
    told = dict(line.split(":\t", 1) for line in ran.out.splitlines() if ":\t" in line)
    assert {told[name].strip() for name in ("CapEff", "CapPrm", "CapBnd", "CapInh")} == {"0" * 16}
    assert (told["NoNewPrivs"].strip(), told["Seccomp"].strip()) == ("1", "2")
    assert int(told["Uid"].split()[0]) in (DEFAULT_UIDS if os.geteuid() == 0 else (os.geteuid(),))


async def test_it_has_no_network(launch: Launch) -> None:
    ran = await launch("import socket; socket.create_connection(('1.1.1.1', 53), 3)")
    assert ran.code == 1
    assert "Network is unreachable" in ran.err


@pytest.mark.parametrize("path", ["/", "/etc", "/usr", "/home", "/dev", "/sys", "/var"])
async def test_it_can_write_nowhere_but_in_its_own(launch: Launch, path: str) -> None:
    ran = await launch(f"open({path!r} + '/x', 'w')")
    assert ran.code == 1


async def test_what_is_mounted_is_seen_and_only_the_writable_is_written(launch: Launch, tmp_path: Path) -> None:
    for name in ("own", "given"):
        (tmp_path / name).mkdir()
    (tmp_path / "given" / "text").write_text("read me")
    mounts = (Mount(tmp_path / "given", Path("/box/given")), Mount(tmp_path / "own", Path("/box/own"), writable=True))
    ran = await launch("open('own/out', 'w').write(open('given/text').read()); open('given/x', 'w')", mounts=mounts, folder=Path("/box"))
    assert (ran.code, (tmp_path / "own" / "out").read_text()) == (1, "read me")
    assert "Read-only file system" in ran.err


async def test_taking_all_memory_is_told(launch: Launch) -> None:
    ran = await launch("b = [bytearray(1 << 20) for _ in range(500)]", limits=replace_limits(memory_bytes=64 * MIB))
    assert ran.ending.out_of_memory
    assert ran.code == 137


async def test_a_container_that_could_not_be_started_is_not_taken_for_a_program_that_failed(
    level: ContainerLevel, settings: DockerSettings, tmp_path: Path, launch: Launch
) -> None:
    given = tmp_path / "given"
    given.mkdir()
    box = Box(run_name("try"), Path("/"), LIMITS, (Mount(given, Path("/given")),))
    prepared = await level.prepare(["/usr/bin/true"], box)
    given.rmdir()
    with Guardian(settings.owner) as guardian:
        launcher = Launcher(settings.owner, guardian, {}, shutil.which("setpriv"))
        process = await launcher.launch_boxed(prepared, ["/usr/bin/true"], logs=tmp_path / "logs")
        assert await process.wait() == 1
    assert not process.ending.was_set_up
    assert (await launch("raise SystemExit(1)")).ending.was_set_up


async def test_forking_without_end_is_stopped(launch: Launch) -> None:
    text = "import os\ntry:\n  while True:\n    pid = os.fork()\n    if not pid: import time; time.sleep(60)\nexcept OSError as e: print(e)"
    ran = await launch(text, limits=replace_limits(processes=20))
    assert "temporarily unavailable" in ran.out


async def test_filling_the_disk_fills_its_own_scratch_alone(launch: Launch) -> None:
    ran = await launch("open('/tmp/x', 'wb').write(b'x' * (20 << 20))", limits=replace_limits(disk_bytes=8 * MIB))
    assert ran.code == 1
    assert "No space left" in ran.err


def replace_limits(**more: int) -> SandboxLimits:
    return LIMITS.model_copy(update=more)


async def test_the_level_is_chosen_when_it_is_seen_to_work(level: ContainerLevel, settings: DockerSettings, tmp_path: Path) -> None:
    with Guardian(settings.owner) as guardian:
        launcher = Launcher(settings.owner, guardian, {}, shutil.which("setpriv"))
        sandbox = await Sandbox.choose([level], SandboxPolicy(at_least=SandboxLevel.DOCKER), launcher, tmp_path / "logs")
    assert sandbox.level is level
    assert level.differences() == ()


async def test_without_an_engine_the_level_says_so(settings: DockerSettings, tmp_path: Path) -> None:
    nowhere = Engine({"DOCKER_HOST": f"unix://{tmp_path}/nowhere.sock"})
    level = ContainerLevel(tmp_path / "etc", nowhere, settings.owner, None)
    with pytest.raises(LevelUnavailable):
        await level.prepare(["/usr/bin/true"], Box("nothing", Path("/"), LIMITS))
    assert await level.sweep() == ()
    nowhere.close()


async def test_what_a_dead_worker_left_is_swept(level: ContainerLevel, settings: DockerSettings, engine: Engine, tmp_path: Path) -> None:
    dead = replace(settings.owner, pid=2**22 - 3, created=1.0)
    theirs = ContainerLevel(tmp_path / "etc", engine, dead, None)
    await theirs.prepare(["/usr/bin/true"], Box("left", Path("/"), LIMITS))
    mine = await level.prepare(["/usr/bin/true"], Box("in-use", Path("/"), LIMITS))
    assert await level.sweep() == ("left",)
    await mine.end()
    assert await containers_of(engine, settings) == 0
