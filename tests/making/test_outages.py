"""Outages of our own parts are retried a few times before a candidate is judged by them."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.make_tool import MakeTool
from engine.making.building.builds import Built
from engine.making.failures import BuildFailed, LockFailed
from engine.making.maker import Maker, MakerParts
from engine.making.node_projects.npm_runs import Installed, NpmRuns
from engine.making.uv.outages import Outage, is_outage
from engine.runtimes.docker.building.images import failure_of
from engine.runtimes.docker_engine.engine import EngineFailure, EngineRefused, EngineUnavailable
from engine.runtimes.environments.execution import Executor
from engine.runtimes.environments.failures import ScriptErrorKind, ScriptFailure
from engine.runtimes.environments.indexes import Installer
from engine.runtimes.environments.programs import Program, Programs
from engine.runtimes.failures import StartFailed
from engine.runtimes.runtime import Progress
from engine.runtimes.sandbox.package_indexes import IndexesUnknown
from engine.store.database import Database
from engine.store.events import EventTable
from engine.store.task_notes import TaskNoteTable
from engine.store.tasks import TaskTable
from engine.tasks.log import TaskLog
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.task_specs import GithubDeploy
from toolagent.core.failures import StoreUnavailableError
from toolagent_service.contracts.making_steps import BuildOutcome, BuildStep
from toolagent_service.contracts.plans import AsgiBuild

STEP = BuildStep(
    task_id="create_00000001",
    spec=GithubDeploy(repo_url="https://example.com/x/y", tool_name="notes"),
    plan=AsgiBuild(module="main", attribute="app"),
)
AWAY = "error: Failed to fetch: https://x.test/simple/six/\n  cause: error sending request for url (https://x.test/simple/six/)"
BUSY = "error: Failed to fetch: https://x.test/six/\n  cause: HTTP status server error (503 Service Unavailable) for url"
NPM_AWAY = "npm error code ECONNREFUSED\nnpm error syscall connect\nnpm error FetchError: request to https://x.test/six failed"
NPM_FULL = (
    "npm error code ENOSPC\nnpm error syscall write\nnpm error nospc There appears to be insufficient space on your system to finish."
)
NPM_UNKNOWN = "npm error code E404\nnpm error 404 Not Found - GET https://x.test/six-of-one - Not found"
NOT_NPM = "Error: connect ECONNREFUSED 127.0.0.1:5432\n{ code: 'ECONNREFUSED' }\nnpm error code ELIFECYCLE"
UNKNOWN = "error: Because six-of-one was not found in the package registry, your requirements are unsatisfiable."


def caused(failure: Exception, cause: BaseException) -> Exception:
    failure.__cause__ = cause
    return failure


def of_engine(failure: EngineFailure) -> Exception:
    return caused(failure_of(failure, "image", "x"), failure)


@pytest.mark.parametrize(
    ("failure", "is_ours"),
    [
        (of_engine(EngineUnavailable("There is no Docker engine that answers.")), True),
        (caused(BuildFailed("It is not built."), of_engine(EngineUnavailable("away"))), True),
        (of_engine(EngineRefused("The command returned a non-zero code: 1")), False),
        (caused(StartFailed(ErrorType.UNAVAILABLE, "It cannot be had now."), StoreUnavailableError()), True),
        (caused(StartFailed(ErrorType.UNAVAILABLE, "It cannot be launched."), OSError(28, "No space left")), True),
        (StartFailed(ErrorType.UNAVAILABLE, "It ended at once.", {"stderr": "no config"}), False),
        (ScriptFailure(ScriptErrorKind.UNAVAILABLE, "The sandbox could not be set up."), True),
        (ScriptFailure(ScriptErrorKind.DEPENDENCY, "It could not be installed.", told=AWAY), True),
        (ScriptFailure(ScriptErrorKind.DEPENDENCY, "It could not be installed.", told=UNKNOWN), False),
        (caused(BuildFailed("It cannot be locked."), LockFailed("It cannot be locked.", BUSY)), True),
        (LockFailed("It cannot be locked.", UNKNOWN), False),
        (LockFailed("It cannot be locked.", "error: failed to write: No space left on device (os error 28)"), True),
        (LockFailed("It cannot be locked.", NPM_AWAY), True),
        (LockFailed("It cannot be locked.", NPM_AWAY.replace("ECONNREFUSED", "E503")), True),
        (LockFailed("It cannot be locked.", NPM_FULL.replace("npm error", "npm ERR!")), True),
        (LockFailed("It cannot be locked.", NPM_UNKNOWN), False),
        (LockFailed("It cannot be built.", NOT_NPM), False),
        (caused(LockFailed("It cannot be locked."), IndexesUnknown("uv does not say it.")), True),
    ],
)
def test_what_is_ours_is_told_from_what_a_maker_could_mend(failure: Exception, *, is_ours: bool) -> None:
    assert is_outage(failure) is is_ours


class Unbuilt(Maker):
    """A maker for which the package index is away."""

    def __init__(self) -> None:
        super().__init__(cast("MakerParts", None))

    async def _built(self, step: BuildStep, progress: Progress) -> Built:  # noqa: ARG002 - those of the maker
        await asyncio.sleep(0)
        raise BuildFailed("It cannot be locked.", AWAY) from LockFailed("It cannot be locked.", AWAY)


async def test_a_build_for_which_the_index_is_away_is_tried_again_before_it_is_said(database: Database) -> None:
    make = MakeTool(Unbuilt(), TaskLog(TaskTable(database), TaskNoteTable(database), EventTable(database)))
    environment = ActivityEnvironment()
    for attempt in (1, 2):
        environment.info = replace(environment.info, attempt=attempt)
        with pytest.raises(ApplicationError) as caught:
            await environment.run(make.build_candidate, STEP)
        assert (caught.value.type, caught.value.non_retryable) == (Outage.__name__, False)
        assert caught.value.next_retry_delay
    environment.info = replace(environment.info, attempt=3)
    assert await environment.run(make.build_candidate, STEP) == BuildOutcome(reason="It cannot be locked.", told=AWAY)


class AwayOnce(NpmRuns):
    """npm for which the index is away at first."""

    def __init__(self) -> None:
        super().__init__(cast("Executor", None), cast("Programs", None), cast("Installer", None))
        self.times = 0

    async def take(
        self,
        arguments: Sequence[str],  # noqa: ARG002 - those of npm
        work: Path,  # noqa: ARG002
        folder: Path,  # noqa: ARG002
        what: str,
        *,
        needs_index: bool = True,  # noqa: ARG002
        bun: Program | None = None,  # noqa: ARG002
    ) -> None:
        await asyncio.sleep(0)
        self.times += 1
        if self.times == 1:
            raise LockFailed(f"{what}: it is away", NPM_AWAY)


async def test_versions_of_a_lock_are_not_given_up_because_the_index_is_away(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"dependencies": {"ms": "^2.0.0"}}')
    npm = AwayOnce()
    with pytest.raises(LockFailed) as failed:
        await npm.install(tmp_path, tmp_path, "It is not installed", pins={"ms": "2.1.2"})
    assert is_outage(failed.value)
    assert await npm.install(tmp_path, tmp_path, "It is not installed", pins={"ms": "2.1.2"}) == Installed()


def test_a_failure_that_is_a_cause_of_itself_is_looked_at_once() -> None:
    failure, other = BuildFailed("x"), BuildFailed("y")
    failure.__cause__, other.__cause__ = other, failure
    assert not is_outage(failure)
