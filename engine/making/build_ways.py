"""Builds along each of the plans that need no model, of the clone of a task on this host."""

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import cast

from engine.making.building.builder import ModellessBuilder
from engine.making.building.builds import Built, Job, Place
from engine.making.building.imported_packages import ImportedPackages
from engine.making.dependencies.gate import DependencyGate
from engine.making.failures import BuildFailed
from engine.making.mcp_servers.building import McpBuilder
from engine.making.node_projects.apps import NodeAppBuilder
from engine.making.node_projects.building import NodeProgramBuilder
from engine.making.node_projects.npm_runs import NpmRuns
from engine.making.node_projects.preparing import NodeProjects
from engine.making.openapi.tools import Described
from engine.making.programs.building import ProgramBuilder
from engine.making.python_projects.preparing import PythonProjects
from engine.making.python_sources.variables import Variables, variables_for, with_environment
from engine.making.repositories.trees import Tree
from engine.making.uv.locking import ProjectLocks
from engine.making.uv.outages import is_outage
from engine.making.uv.runs import UvRuns
from engine.runtimes import RUNTIMES
from engine.runtimes.environments.execution import Executor
from engine.runtimes.environments.failures import ScriptFailure
from engine.runtimes.mcp.runtime import McpRuntime
from engine.runtimes.parts import RuntimeParts
from engine.runtimes.runtime import Progress, Runtime
from toolagent.contracts.sources import DockerSource, LocalSource
from toolagent.contracts.task_specs import GithubDeploy
from toolagent_service.contracts.making_steps import BuildStep
from toolagent_service.contracts.plans import (
    AsgiBuild,
    BuildPlan,
    CodingBuild,
    DockerBuild,
    McpBuild,
    NodeAppBuild,
    NothingToBuild,
    OpenApiRemote,
    ProgramBuild,
    ToolFileBuild,
)

_MOST_OLDER = 3
_NAMED = 20
_LONGEST = 1_000
_OF_THEIRS = (ValueError, LookupError, RecursionError)


@dataclass(frozen=True, slots=True)
class WaysParts:
    """What all builds of this host share."""

    executor: Executor
    runs: UvRuns
    locks: ProjectLocks
    npm: NpmRuns
    gate: DependencyGate


class WayBuilder:
    """Of one task: `folder` is its own on this host, `repository` what it has cloned."""

    def __init__(self, parts: WaysParts, runtimes: RuntimeParts, folder: Path, repository: Path) -> None:
        self._parts, self._runtimes, self._folder, self._repository = parts, runtimes, folder, repository
        environments = runtimes.sandboxing.environments.for_task(folder.name)
        self._projects = PythonProjects(parts.runs, parts.locks, environments)
        self._node = NodeProjects(parts.npm, environments)
        self._imported = ImportedPackages(parts.gate, parts.locks, folder / "imported")
        self._data = folder / "data"

    async def build(self, step: BuildStep, progress: Progress) -> Built:
        """Raises BuildFailed, ScriptFailure."""
        try:
            variables = await asyncio.to_thread(self._variables, step)
            built, tried = await self._with_what_is_older(step, variables, progress)
            notes = (*tried, *built.notes, *variables.notes, *_missing(variables))
            return replace(built, candidate=with_environment(built.candidate, variables.values), notes=notes)
        except _OF_THEIRS as error:  # what a repository says is refused by a contract, or cannot be read: no retry mends that
            raise BuildFailed(f"What the repository says of itself cannot be used: {' '.join(str(error).split())[:_LONGEST]}") from error

    async def _with_what_is_older(self, step: BuildStep, variables: Variables, progress: Progress) -> tuple[Built, tuple[str, ...]]:
        """What installs need not run: a package or a Python may be newer than the project. With what was tried without success.

        Raises the first failure where nothing runs.
        """
        failures: list[BuildFailed] = []
        notes: list[str] = []
        while True:
            self._projects.begin()
            try:
                return await self._built(step, variables, progress), tuple(notes)
            except BuildFailed as failure:
                failures.append(failure)
            except ScriptFailure as failure:
                if is_outage(failure) or not failures:
                    raise
                raise failures[0] from failure
            failure = failures[-1]
            instead = self._projects.older_for(f"{failure.message}\n{failure.told}") if len(failures) <= _MOST_OLDER else ""
            if not instead:
                raise failures[0]
            progress(f"it does not run; trying {instead}")
            notes.append(f"It did not run, so {instead} was taken: {failure.message[:_LONGEST]}")

    async def _built(self, step: BuildStep, variables: Variables, progress: Progress) -> Built:
        spec = _deploy(step)
        about = Described(spec.tool_name, spec.description, spec.operations)
        host_dir = f"tools/made/{about.tool_name.replace(':', '_')}"
        job = Job(self._repository, about, Place(self._data / host_dir, host_dir, self._folder / "work"), progress, spec.hosts)
        own = self._own_parts()
        builder = self._builder(own, variables)
        plan: BuildPlan = step.plan
        match plan:
            case ToolFileBuild():
                return await self._imported.declared(await builder.of_tool_files(plan, job))
            case OpenApiRemote():
                return await builder.remote(plan, job)
            case AsgiBuild():
                return await builder.asgi(plan, job)
            case DockerBuild():
                return await builder.docker(plan, job)
            case ProgramBuild() | McpBuild() | NodeAppBuild():
                return await self._of_project(plan, job, own, variables)
            case CodingBuild() | NothingToBuild():
                raise BuildFailed("There is no way to build it without a model.")

    async def _of_project(self, plan: ProgramBuild | McpBuild | NodeAppBuild, job: Job, own: RuntimeParts, variables: Variables) -> Built:
        executor = self._parts.executor
        match plan:
            case NodeAppBuild():
                local = cast("Runtime[LocalSource]", RUNTIMES["local"](own))
                return await NodeAppBuilder(self._node, local, executor, variables.values).build(plan, job)
            case ProgramBuild(language="nodejs"):
                return await NodeProgramBuilder(self._node, executor, self._parts.runs.programs).build(plan, job)
            case ProgramBuild():
                return await ProgramBuilder(self._projects, executor, self._imported).build(plan, job)
            case McpBuild():
                servers = cast("McpRuntime", RUNTIMES["mcp"](own))
                return await McpBuilder(self._projects, self._node, servers, variables.values).build(plan, job)

    def _variables(self, step: BuildStep) -> Variables:
        """The variables that it runs with. Raises BuildFailed when a required one has no value. Blocks."""
        is_python, beside = True, None
        match step.plan:
            case (
                NodeAppBuild(project=project)
                | ProgramBuild(project=project, language="nodejs")
                | McpBuild(project=project, language="nodejs")
            ):
                folder, is_python = PurePosixPath(project), False
            case AsgiBuild(project=project, root=root):
                folder, beside = PurePosixPath(project), PurePosixPath(root)
            case ProgramBuild(project=project) | McpBuild(project=project):
                folder = PurePosixPath(project)
            case DockerBuild(dockerfile=dockerfile):
                folder = PurePosixPath(dockerfile).parent
            case _:
                return Variables()
        found = variables_for(Tree.read(self._repository), folder, _deploy(step).env, beside=beside, is_python=is_python)
        # An image may set them itself, and a program may be told otherwise.
        if found.required and isinstance(step.plan, AsgiBuild | McpBuild):
            names = ", ".join(found.required)
            raise BuildFailed(
                f"It needs variables that have no default: {names}. Give them in `env` of the task, keys by the name of a secret."
            )
        return found

    def _builder(self, own: RuntimeParts, variables: Variables) -> ModellessBuilder:
        sandbox = own.sandboxing.sandbox
        return ModellessBuilder(
            self._projects,
            cast("Runtime[LocalSource]", RUNTIMES["local"](own)),
            cast("Runtime[DockerSource]", RUNTIMES["docker"](own)) if own.docker else None,
            environment=variables.values,
            private_hosts=() if isinstance(sandbox, str) else sandbox.policy.private_hosts,
            executor=self._parts.executor,
        )

    def _own_parts(self) -> RuntimeParts:
        """Runtimes of these find projects below the task's own folder, and write there; they are asked once, and hold nothing after."""
        parts, folder = self._runtimes, self._folder
        docker = None
        if parts.docker:
            settings = replace(parts.docker.settings, data=self._data, calls=folder / "calls", beside=folder / "state")
            docker = replace(parts.docker, settings=settings)
        return replace(
            parts,
            local=replace(parts.local, data=self._data, state=folder / "state", calls=folder / "calls"),
            sandboxing=replace(parts.sandboxing, environments=parts.sandboxing.environments.for_task(folder.name)),
            docker=docker,
        )


def _deploy(step: BuildStep) -> GithubDeploy:
    if not isinstance(step.spec, GithubDeploy):
        raise BuildFailed("The task names no repository.")
    return step.spec


def _missing(variables: Variables) -> tuple[str, ...]:
    names = (*variables.required, *variables.missing)
    if not names:
        return ()
    return (f"It names variables without a value: {', '.join(names[:_NAMED])}. What needs them fails; give `env`.",)
