"""What no retry mends is told as the reason why nothing was built."""

import ssl
from pathlib import Path

import pytest
from pydantic import ValidationError

from engine.making.build_ways import WayBuilder, WaysParts
from engine.making.building import BuildFailed, Built
from engine.making.locking import ProjectLocks
from engine.making.node_projects.npm_runs import NpmRuns
from engine.making.uv_runs import UvRuns
from engine.making.variables import Variables
from engine.runtimes.boxed_runs import LocalSettings, Sandboxing
from engine.runtimes.http_exchange import HttpExchange
from engine.runtimes.parts import RuntimeParts
from engine.runtimes.processes import Launcher
from engine.runtimes.runtime import Progress
from engine.runtimes.scripts.environments import Installer
from engine.runtimes.scripts.execution import Executor
from engine.runtimes.scripts.network import through
from tests.runtimes.conftest import silent
from toolagent.contracts.making_steps import BuildStep
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.plans import ProgramBuild
from toolagent.contracts.task_specs import GithubDeploy
from workers.scripts import indexes_of
from workers.settings import environment

STEP = BuildStep(
    task_id="create_12345678", spec=GithubDeploy(repo_url="https://example.com/a/b", tool_name="notes"), plan=ProgramBuild(project="")
)


class Refused(WayBuilder):
    """Whose repository says what no manifest can be."""

    async def _built(self, step: BuildStep, variables: Variables, progress: Progress) -> Built:  # noqa: ARG002 - whatever it is given
        raise refusal()


def refusal() -> ValidationError:
    with pytest.raises(ValidationError) as caught:
        ToolManifest(tool_id="notes", name="half \ud800 a character")
    return caught.value


async def test_what_a_contract_refuses_is_why_nothing_was_built(
    tmp_path: Path, launcher: Launcher, sandbox: Sandboxing, state: Path
) -> None:
    programs, executor = sandbox.environments.programs, Executor(launcher, sandbox.sandbox)
    installer = Installer(indexes_of(programs, environment()), through(sandbox.egress, trusted=True))
    runs, local = UvRuns(executor, programs, installer), LocalSettings(state, state, state, start_timeout_s=1.0, stop_grace_s=1.0)
    http = HttpExchange(tls=ssl.create_default_context())
    parts = RuntimeParts(local, launcher, sandbox, http, dict[str, str]().get, {})
    ways = WaysParts(executor, runs, ProjectLocks(runs), NpmRuns(executor, programs, installer))
    (tmp_path / "repository").mkdir()
    with pytest.raises(BuildFailed, match="What the repository says of itself cannot be used"):
        await Refused(ways, parts, state / "create_12345678", tmp_path / "repository").build(STEP, silent)
    await http.aclose()
