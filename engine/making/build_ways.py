"""Builds a tool from a task's clone, by any plan that needs no model."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import cast

from engine.making.building.builder import ModellessBuilder
from engine.making.building.builds import Built, Job, Place
from engine.making.building.imported_packages import ImportedPackages
from engine.making.dependencies.gate import DependencyGate, refusals_of
from engine.making.failures import BuildFailed, LockFailed
from engine.making.mcp_servers.building import McpBuilder
from engine.making.node_projects.apps import NodeAppBuilder
from engine.making.node_projects.building import NodeProgramBuilder
from engine.making.node_projects.npm_runs import NpmRuns
from engine.making.node_projects.preparing import NodeProjects
from engine.making.openapi.tools import Described
from engine.making.programs.building import ProgramBuilder
from engine.making.python_projects.preparing import PythonProjects
from engine.making.python_projects.undeclared import undeclared_module
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
    """Parts that all builds on this host share."""

    executor: Executor
    runs: UvRuns
    locks: ProjectLocks
    npm: NpmRuns
    gate: DependencyGate


@dataclass(frozen=True, slots=True)
class _Change:
    """What is tried next, in words: empty if there is nothing. `refusal` is why the package that is missing may not be added."""

    words: str = ""
    refusal: str = ""


class WayBuilder:
    """The builder of one task. `folder` is the task's own on this host, `repository` its clone."""

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
            built, tried = await self._built_with_older(step, variables, progress)
            notes = (*tried, *built.notes, *variables.notes, *_missing(variables))
            return replace(built, candidate=with_environment(built.candidate, variables.values), notes=notes)
        except _OF_THEIRS as error:  # the repository's data is invalid: a retry does not help
            raise BuildFailed(f"What the repository says of itself cannot be used: {' '.join(str(error).split())[:_LONGEST]}") from error

    async def _built_with_older(self, step: BuildStep, variables: Variables, progress: Progress) -> tuple[Built, tuple[str, ...]]:
        """Builds again with older packages, an older Python or what is not declared while the result does not run; also returns notes.

        Raises the first failure if nothing runs.
        """
        first: BuildFailed | None = None
        notes: list[str] = []
        while True:
            self._projects.begin()
            try:
                return await self._built(step, variables, progress), tuple(notes)
            except BuildFailed as failure:
                last, first = failure, first or failure
            except ScriptFailure as failure:
                if is_outage(failure) or first is None:
                    raise
                raise first from failure
            change = await self._changed_for(f"{last.message}\n{last.told}") if len(notes) < _MOST_OLDER else _Change()
            if not change.words:
                raise await asyncio.to_thread(_with_remedy, first, change.refusal, self._repository)
            progress(f"it does not run; trying {change.words}")
            notes.append(f"It did not run, so {change.words} was taken: {last.message[:_LONGEST]}")

    async def _changed_for(self, output: str) -> _Change:
        """Changes what is installed next, for a result that does not run and said this."""
        if older := self._projects.older_for(output):
            return _Change(older)
        module = await asyncio.to_thread(lambda: undeclared_module(output, Tree.read(self._repository)))
        packages, _ = self._parts.gate.packages_of_imports((module,) if module else ())
        verdicts = await self._parts.gate.judge(packages)
        if refusals := refusals_of(verdicts):
            return _Change(refusal=f"It imports {module}, which nothing that the project declares provides. {refusals[0].message}")
        is_added = any(self._projects.add(verdict.requirement, verdict.not_after) for verdict in verdicts)
        return _Change(f"{packages[0]} too (imported and not declared)") if is_added else _Change()

    async def _built(self, step: BuildStep, variables: Variables, progress: Progress) -> Built:
        spec = _deploy(step)
        about = Described(spec.tool_name, spec.description, spec.operations)
        host_dir = f"tools/made/{about.tool_name.replace(':', '_')}"
        job = Job(self._repository, about, Place(self._data / host_dir, host_dir, self._folder / "work"), progress, spec.hosts)
        plan: BuildPlan = step.plan
        match plan:
            case ToolFileBuild() | OpenApiRemote() | AsgiBuild() | DockerBuild():
                return await self._modelless(plan, job, variables.values)
            case ProgramBuild() | McpBuild() | NodeAppBuild():
                return await self._of_project(plan, job, variables.values)
            case CodingBuild() | NothingToBuild():
                raise BuildFailed("There is no way to build it without a model.")

    async def _modelless(
        self, plan: ToolFileBuild | OpenApiRemote | AsgiBuild | DockerBuild, job: Job, environment: Mapping[str, str]
    ) -> Built:
        own = self._own_parts()
        sandbox = own.sandboxing.sandbox
        builder = ModellessBuilder(
            self._projects,
            cast("Runtime[LocalSource]", RUNTIMES["local"](own)),
            cast("Runtime[DockerSource]", RUNTIMES["docker"](own)) if own.docker else None,
            environment=environment,
            private_hosts=() if isinstance(sandbox, str) else sandbox.policy.private_hosts,
            executor=self._parts.executor,
        )
        match plan:
            case ToolFileBuild():
                return await self._imported.declared(await builder.of_tool_files(plan, job))
            case OpenApiRemote():
                return await builder.remote(plan, job)
            case AsgiBuild():
                return await builder.asgi(plan, job)
            case DockerBuild():
                return await builder.docker(plan, job)

    async def _of_project(self, plan: ProgramBuild | McpBuild | NodeAppBuild, job: Job, environment: Mapping[str, str]) -> Built:
        executor, own = self._parts.executor, self._own_parts()
        match plan:
            case NodeAppBuild():
                local = cast("Runtime[LocalSource]", RUNTIMES["local"](own))
                return await NodeAppBuilder(self._node, local, executor, environment).build(plan, job)
            case ProgramBuild(language="nodejs"):
                return await NodeProgramBuilder(self._node, executor, self._parts.runs.programs).build(plan, job)
            case ProgramBuild():
                return await ProgramBuilder(self._projects, executor, self._imported).build(plan, job)
            case McpBuild():
                servers = cast("McpRuntime", RUNTIMES["mcp"](own))
                return await McpBuilder(self._projects, self._node, servers, environment).build(plan, job)

    def _variables(self, step: BuildStep) -> Variables:
        """The variables that the tool runs with. Raises BuildFailed if a required one has no value. Blocks."""
        plan, beside = step.plan, None
        match plan:
            case AsgiBuild(project=project, root=root):
                beside = PurePosixPath(root)
            case ProgramBuild(project=project) | McpBuild(project=project) | NodeAppBuild(project=project):
                pass
            case DockerBuild(dockerfile=dockerfile):
                project = PurePosixPath(dockerfile).parent
            case _:
                return Variables()
        is_node = isinstance(plan, NodeAppBuild) or (isinstance(plan, ProgramBuild | McpBuild) and plan.language == "nodejs")
        tree = Tree.read(self._repository)
        found = variables_for(tree, PurePosixPath(project), _deploy(step).env, beside=beside, is_python=not is_node)
        # An image may set them itself, and a program may be told otherwise.
        if found.required and isinstance(plan, AsgiBuild | McpBuild):
            names = ", ".join(found.required)
            raise BuildFailed(
                f"It needs variables that have no default: {names}. Give them in `env` of the task, keys by the name of a secret."
            )
        return found

    def _own_parts(self) -> RuntimeParts:
        """Parts of runtimes that find projects in the task's folder and write only there."""
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


def _with_remedy(failure: BuildFailed, refusal: str, repository: Path) -> BuildFailed:
    """The failure, with what to do about a module that is missing when it runs, or why its package is refused. Blocks."""
    module = undeclared_module(f"{failure.message}\n{failure.told}", Tree.read(repository))
    if isinstance(failure, LockFailed) or not (module or refusal):
        return failure
    remedy = f"It imports {module}, which nothing that the project declares provides: have it declare the package of that module."
    return BuildFailed(f"{failure.message.rstrip('.')}. {refusal or remedy}", failure.told)


def _deploy(step: BuildStep) -> GithubDeploy:
    if not isinstance(step.spec, GithubDeploy):
        raise BuildFailed("The task names no repository.")
    return step.spec


def _missing(variables: Variables) -> tuple[str, ...]:
    names = ", ".join((*variables.required, *variables.missing)[:_NAMED])
    return (f"It names variables without a value: {names}. What needs them fails; give `env`.",) if names else ()
