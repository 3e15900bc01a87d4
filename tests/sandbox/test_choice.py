"""The choice of the sandbox level: the first accepted one that works; and the reasons against the others."""

import shutil
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine.runtimes.process.box import Box, Ending, LevelUnavailable
from engine.runtimes.process.guardian import Guardian
from engine.runtimes.process.ownership import Owner
from engine.runtimes.process.processes import Launcher
from engine.runtimes.sandbox.levels.bubblewrap import Bubblewrap
from engine.runtimes.sandbox.levels.cgroups import Cgroups
from engine.runtimes.sandbox.sandbox import Sandbox, SandboxRefused, run_name
from tests.parts import bubblewrap
from toolagent.contracts.manifest import NetworkAccess, SecurityContext
from toolagent.contracts.sandbox import Difference, SandboxLevel, SandboxPolicy
from workers.host.sandbox import identities

POLICY = SandboxPolicy()


@dataclass
class Run:
    """A level that isolates nothing."""

    argv: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    pass_fds: Sequence[int] = ()
    ends_with_us: bool = False
    ended: int = 0

    async def begin(self, pid: int) -> None: ...

    def terminate(self) -> None: ...

    async def end(self) -> Ending:
        self.ended += 1
        return Ending()


@dataclass
class Plain:
    """A level that runs `does` instead of the given program."""

    level: SandboxLevel
    does: Sequence[str] = ("/bin/true",)
    refuses: str = ""
    has_own_network: bool = True
    runs: list[Run] = field(default_factory=list[Run])

    async def prepare(self, argv: Sequence[str], box: Box) -> Run:  # noqa: ARG002 - the contract of a level
        if self.refuses:
            raise LevelUnavailable(self.refuses)
        self.runs.append(Run(self.does))
        return self.runs[-1]

    def differences(self) -> tuple[Difference, ...]:
        return (Difference(item="seccomp", reason=f"{self.level.value} has none"),)

    async def sweep(self) -> tuple[str, ...]:
        return ()


@pytest.fixture
def launcher(tmp_path: Path) -> Generator[Launcher]:
    owner = Owner.of_this_process(tmp_path)
    with Guardian(owner) as guardian:
        yield Launcher(owner, guardian, {"PATH": "/usr/bin:/bin"}, shutil.which("setpriv"))


async def choose(launcher: Launcher, tmp_path: Path, *levels: Plain, policy: SandboxPolicy = POLICY) -> Sandbox:
    return await Sandbox.choose(levels, policy, launcher, tmp_path / "logs")


async def test_the_first_that_works_is_taken_and_no_other_is_tried(launcher: Launcher, tmp_path: Path) -> None:
    first, second = Plain(SandboxLevel.BUBBLEWRAP), Plain(SandboxLevel.DOCKER)
    sandbox = await choose(launcher, tmp_path, first, second)
    assert sandbox.level is first
    assert ([run.ended for run in first.runs], second.runs) == ([1], [])


async def test_the_order_is_that_of_the_setting_not_that_of_strength(launcher: Launcher, tmp_path: Path) -> None:
    weak, strong = Plain(SandboxLevel.RLIMITS), Plain(SandboxLevel.DOCKER)
    assert (await choose(launcher, tmp_path, weak, strong)).level is weak


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (Plain(SandboxLevel.BUBBLEWRAP, refuses="there is no engine"), "there is no engine"),
        (Plain(SandboxLevel.BUBBLEWRAP, does=("/bin/sh", "-c", "echo no namespaces >&2; exit 3")), "no namespaces"),
        (Plain(SandboxLevel.BUBBLEWRAP, does=("/nonexistent",)), "nonexistent"),
        (Plain(SandboxLevel.BUBBLEWRAP, does=("/bin/sh", "-c", "kill -9 $$")), "SIGKILL"),
    ],
    ids=["refuses", "fails", "is not there", "is killed"],
)
async def test_one_that_does_not_work_is_passed_over_and_every_account_says_why(
    launcher: Launcher, tmp_path: Path, broken: Plain, why: str
) -> None:
    sandbox = await choose(launcher, tmp_path, broken, Plain(SandboxLevel.DOCKER))
    account = sandbox.grant(SecurityContext()).account
    assert account.level is SandboxLevel.DOCKER
    told = next(one for one in account.differences if one.item == "level")
    assert told.requested == "bubblewrap"
    assert why in told.reason
    assert all(run.ended == 1 for run in broken.runs)


async def test_a_level_weaker_than_the_policy_demands_is_not_even_tried(launcher: Launcher, tmp_path: Path) -> None:
    weak, strong = Plain(SandboxLevel.RLIMITS), Plain(SandboxLevel.DOCKER)
    sandbox = await choose(launcher, tmp_path, weak, strong, policy=SandboxPolicy(at_least=SandboxLevel.BUBBLEWRAP))
    assert (sandbox.level, weak.runs) == (strong, [])


async def test_when_only_weaker_ones_work_nothing_runs(launcher: Launcher, tmp_path: Path) -> None:
    levels = Plain(SandboxLevel.DOCKER, refuses="there is no engine"), Plain(SandboxLevel.BUBBLEWRAP), Plain(SandboxLevel.RLIMITS)
    with pytest.raises(SandboxRefused) as refused:
        await choose(launcher, tmp_path, *levels, policy=SandboxPolicy(at_least=SandboxLevel.DOCKER))
    said = str(refused.value)
    assert all(part in said for part in ("docker: there is no engine", "bubblewrap: the policy demands", "rlimits: the policy demands"))


async def test_without_any_level_nothing_runs(launcher: Launcher, tmp_path: Path) -> None:
    with pytest.raises(SandboxRefused, match="none is allowed"):
        await choose(launcher, tmp_path)


async def test_an_account_has_what_was_asked_what_is_enforced_and_each_reason(launcher: Launcher, tmp_path: Path) -> None:
    policy = SandboxPolicy(hosts=("a.example",))
    sandbox = await choose(launcher, tmp_path, Plain(SandboxLevel.BUBBLEWRAP), policy=policy)
    granted = sandbox.grant(SecurityContext(network_access=NetworkAccess(allow_hosts=("a.example", "b.example"))))
    assert granted.account.requested.hosts == ("a.example", "b.example")
    assert granted.account.enforced == granted.enforced
    assert granted.enforced.hosts == ("a.example",)
    assert [one.item for one in granted.account.differences] == ["hosts", "seccomp"]


async def test_bubblewrap_is_seen_to_work_here(launcher: Launcher, tmp_path: Path) -> None:
    level = bubblewrap(tmp_path)
    assert (await Sandbox.choose([level], POLICY, launcher, tmp_path / "logs")).level is level


async def test_a_bubblewrap_that_cannot_be_run_is_told(launcher: Launcher, tmp_path: Path) -> None:
    level = Bubblewrap(tmp_path / "etc", Cgroups(Owner.of_this_process(tmp_path)), identities(), program=tmp_path / "bwrap")
    with pytest.raises(SandboxRefused, match="bubblewrap: a first try"):
        await Sandbox.choose([level], POLICY, launcher, tmp_path / "logs")


@pytest.mark.parametrize("tool_id", ["core:echo", "a_b", "x" * 200, "user:my-tool"])
def test_a_runs_name_is_fit_for_a_cgroup_and_a_container_and_never_the_same(tool_id: str) -> None:
    names = {run_name(tool_id) for _ in range(50)}
    assert len(names) == 50
    assert all(set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-") and len(name) < 60 for name in names)
