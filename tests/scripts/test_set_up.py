"""Only bubblewrap tells whether a sandbox could be set up; no output of a script can pretend it."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from engine.runtimes.environments.execution import Execution, Executor, Order
from engine.runtimes.environments.failures import ScriptErrorKind, ScriptFailure
from engine.runtimes.failures import CallFailed, NotSent
from engine.runtimes.process.box import Box, Mount, Prepared
from engine.runtimes.sandbox.levels.bubblewrap import Bubblewrap
from engine.runtimes.sandbox.levels.cgroups import Cgroups
from engine.runtimes.sandbox.sandbox import Sandbox, run_name
from tests.scripts.harness import POLICY, Scripts
from toolagent.contracts.calls import ErrorType
from workers.host.sandbox import identities

SAID = "bwrap: Can't find source path /x: No such file or directory"
LINKS = """
import json, os
found = []
for fd in range(3, 1024):
    try:
        found.append(os.readlink(f"/proc/self/fd/{fd}"))
    except FileNotFoundError:
        pass
print(json.dumps([link for link in found if link.startswith("pipe:")]))
"""


class Spoiled(Bubblewrap):
    """A level whose preparation is broken before the launch."""

    def __init__(self, scripts: Scripts, spoil: Callable[[], object], program: Path | None = None) -> None:
        super().__init__(scripts.state / "etc", Cgroups(scripts.owner), identities(), program=program)
        self._spoil = spoil

    async def prepare(self, argv: Sequence[str], box: Box) -> Prepared:
        prepared = await super().prepare(argv, box)
        self._spoil()
        return prepared


async def ran(
    scripts: Scripts, level: Bubblewrap, *mounts: Mount, text: str = "exit 0", folder: str = "/", wall_s: float = 20
) -> Execution:
    box = Box(run_name("try"), Path(folder), POLICY.defaults, mounts, {"PATH": "/usr/bin:/bin"})
    executor = Executor(scripts.launcher, Sandbox(level, POLICY))
    return await executor.run(Order(["/bin/sh", "-c", text], box, wall_s, scripts.state / "logs"))


async def test_a_script_that_speaks_like_bubblewrap_is_a_script_that_failed(scripts: Scripts) -> None:
    failure = await scripts.failing(f"import sys\nsys.exit({SAID!r})")
    assert (failure.kind, failure.error_type, failure.ran) == (ScriptErrorKind.SCRIPT, ErrorType.EXECUTION_ERROR, True)
    assert (failure.facts, failure.told) == ({"exit_code": 1}, SAID)
    assert isinstance(failure.as_call_failure, CallFailed)


async def test_a_mount_that_vanishes_before_the_launch_lets_nothing_run(scripts: Scripts, tmp_path: Path) -> None:
    given, own = tmp_path / "given", tmp_path / "own"
    given.mkdir()
    own.mkdir()
    mounts = Mount(given, Path("/given")), Mount(own, Path("/own"), writable=True)
    with pytest.raises(ScriptFailure, match="given: No such file") as caught:
        await ran(scripts, Spoiled(scripts, given.rmdir), *mounts, text="touch /own/begun")
    assert (caught.value.kind, caught.value.ran) == (ScriptErrorKind.UNAVAILABLE, False)
    assert isinstance(caught.value.as_call_failure, NotSent)
    assert list(own.iterdir()) == []
    given.mkdir()
    assert (await ran(scripts, scripts.level, *mounts, text="touch /own/begun; exit 3")).code == 3
    assert [path.name for path in own.iterdir()] == ["begun"]
    assert scripts.leftovers() == []


async def test_a_folder_that_is_not_there_lets_nothing_run(scripts: Scripts) -> None:
    with pytest.raises(ScriptFailure) as caught:
        await ran(scripts, scripts.level, folder="/nowhere")
    assert (caught.value.kind, caught.value.ran) == (ScriptErrorKind.UNAVAILABLE, False)


async def test_a_bubblewrap_that_is_gone_lets_nothing_run(scripts: Scripts, tmp_path: Path) -> None:
    with pytest.raises(ScriptFailure) as caught:
        await ran(scripts, Spoiled(scripts, lambda: None, tmp_path / "bwrap"))
    assert (caught.value.kind, caught.value.ran) == (ScriptErrorKind.UNAVAILABLE, False)


async def test_what_we_ended_is_not_taken_for_a_sandbox_that_could_not_be_set_up(scripts: Scripts) -> None:
    done = await ran(scripts, scripts.level, text="sleep 60", wall_s=0)
    assert (done.cut, done.code, done.ending.was_set_up) == ("time", -9, True)


async def test_a_script_has_no_way_to_tell_what_bubblewrap_tells(scripts: Scripts) -> None:
    assert await scripts.code(LINKS) == []
