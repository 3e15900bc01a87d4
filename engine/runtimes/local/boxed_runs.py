"""Launches programs of this machine as servers in a sandbox: finds their project, builds their box."""

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from engine.disk.leftovers import discard
from engine.runtimes.auditing.audit import Audit, Audited, NoAudit, Refusals
from engine.runtimes.environments.environments import Environment, ScriptEnvironments
from engine.runtimes.environments.failures import ScriptFailure
from engine.runtimes.failures import StartFailed
from engine.runtimes.local.launched import Launched
from engine.runtimes.process.box import Box, LevelUnavailable, Mount
from engine.runtimes.process.processes import Launcher
from engine.runtimes.projects import Projects, data_folder, project_of
from engine.runtimes.runtime import Progress
from engine.runtimes.sandbox.egress import Egress, Opening
from engine.runtimes.sandbox.sandbox import Grant, Sandbox, run_name
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sandbox import Difference
from toolagent.contracts.sources import LocalSource, McpSource
from toolagent_service.calls.shared_processes import name_inside, place_of

_HOME = Path("/home/tool")


@dataclass(frozen=True, slots=True)
class LocalSettings:
    """`data` is the folder of projects, `state` the state directory, `calls` the folder of calls' files. Times are in seconds.

    `observed`: the requests of tools that may reach no host are recorded too.
    """

    data: Path
    state: Path
    calls: Path
    host: str = ""
    start_timeout_s: float = 30.0
    stop_grace_s: float = 5.0
    observed: bool = False


@dataclass(frozen=True, slots=True)
class Sandboxing:
    """How tools are isolated. `sandbox` is a reason if there is none; `variables` are the host's variables that may be granted."""

    sandbox: Sandbox | str
    egress: Egress
    environments: ScriptEnvironments
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    audit: Audit = field(default_factory=NoAudit)


@dataclass(frozen=True, slots=True)
class BoxedRun:
    """A program and what it gets. Without a `project` it starts in its HOME. It serves on `port`, or on `stdio`: its stdin and stdout.

    `variables` are the source's, with their secrets in clear, because the program reads them.
    """

    tool: ToolManifest
    source: LocalSource | McpSource
    command: tuple[str, ...]
    project: Path | None = None
    environment: Environment | None = None
    mounts: tuple[Mount, ...] = ()
    port: int | None = None
    variables: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    stdio: tuple[int, int] | None = None


class BoxedRuns:
    """Shared by the runtimes of such programs. Stateless: the caller ends what it launches."""

    def __init__(self, settings: LocalSettings, launcher: Launcher, sandboxing: Sandboxing, projects: Projects | None = None) -> None:
        self._settings, self._launcher, self._sandboxing, self._projects = settings, launcher, sandboxing, projects

    def sandbox(self, tool_id: str) -> Sandbox:
        """Raises StartFailed if there is none."""
        if isinstance(self._sandboxing.sandbox, str):
            raise StartFailed(ErrorType.UNAVAILABLE, f"The tool {tool_id!r} is not run: {self._sandboxing.sandbox}", {"missing": "sandbox"})
        return self._sandboxing.sandbox

    async def project(self, tool_id: str, host_dir: str, content: str | None, progress: Progress) -> Path:
        """The project's folder, from the content store if `content` is given. Raises StartFailed."""
        if content is not None:
            return (await project_of(self._projects, content, tool_id, progress)).resolve()
        roots = [self._settings.data, self._settings.state / "tools"]
        return await asyncio.to_thread(data_folder, roots, host_dir, tool_id)

    async def launch(self, sandbox: Sandbox, run: BoxedRun) -> Launched:
        """Raises StartFailed."""
        grant, name = sandbox.grant(run.tool.security_context), run_name(run.tool.tool_id)
        logs, _ = self._folders(place_of(run.tool.tool_id, run.source))
        refusals = Refusals()
        is_apart, observed = sandbox.level.has_own_network, self._settings.observed
        opening = Opening(grant.enforced.hosts, port=run.port, tell=refusals.tell, is_apart=is_apart, observed=observed)
        async with contextlib.AsyncExitStack() as stack:
            try:
                if run.environment is not None:
                    stack.enter_context(self._sandboxing.environments.using(run.environment))
                way = await stack.enter_async_context(self._sandboxing.egress.open(name, opening))
                box, unmet = await asyncio.to_thread(self._box, name, run, grant)
                prepared = await sandbox.level.prepare(way.argv(run.command), way.around(box))
                process = await self._launcher.launch_boxed(prepared, run.command, logs=logs, stdio=run.stdio)
            except (OSError, LevelUnavailable, ScriptFailure) as error:
                raise StartFailed(ErrorType.UNAVAILABLE, f"The tool {run.tool.tool_id!r} cannot be launched: {error}") from error
            account = grant.account.model_copy(update={"differences": (*grant.account.differences, *unmet)})
            audited = Audited(self._sandboxing.audit, self._settings.host, run.tool, run.command, account, refusals)
            return Launched(process, way, stack.pop_all(), audited)
        raise AssertionError("The block returns or raises.")

    def discard(self, tool_id: str) -> None:
        """Removes the folders of a tool that ran in a process of its own, and runs no more. Blocks."""
        for folder in self._folders(tool_id):
            discard(folder)

    def _folders(self, place: str) -> tuple[Path, Path]:
        """For home and logs, and for the files of calls."""
        return self._settings.state.resolve() / "tools" / place, self._settings.calls.resolve() / place

    def _box(self, name: str, run: BoxedRun, grant: Grant) -> tuple[Box, tuple[Difference, ...]]:
        """Raises OSError."""
        own, calls = self._folders(place_of(run.tool.tool_id, run.source))
        home = own / "home"
        for folder in (home, calls):
            folder.mkdir(parents=True, exist_ok=True)
        mounts = [*_read_only(run), *run.mounts, Mount(home, _HOME, writable=True), Mount(calls, calls, writable=True)]
        asked, unmet = _asked_for(grant)
        host = self._sandboxing.variables
        variables = {variable: host[variable] for variable in grant.enforced.environment if variable in host}
        variables |= {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **run.variables}
        variables |= {"HOME": str(_HOME), "PYTHONDONTWRITEBYTECODE": "1", "TOOL_AGENT_TOOL_ID": name_inside(run.tool.tool_id, run.source)}
        if run.port is not None:
            variables["PORT"] = str(run.port)
        return Box(name, run.project or _HOME, grant.enforced.limits, (*mounts, *asked), variables), unmet


def _read_only(run: BoxedRun) -> list[Mount]:
    project = [Mount(run.project, run.project)] if run.project is not None else []
    # The folder of npm packages is mounted elsewhere: where the project looks for it.
    is_python = run.environment is not None and run.environment.modules is None
    return [*project, *(run.environment.mounts if run.environment is not None and is_python else ())]


def _asked_for(grant: Grant) -> tuple[list[Mount], tuple[Difference, ...]]:
    """The host's folders that the policy grants. The project itself is always mounted, and never writable."""
    mounts: list[Mount] = []
    unmet: list[Difference] = []
    for item, patterns, writable in (("read", grant.enforced.read, False), ("write", grant.enforced.write, True)):
        for pattern in patterns:
            path = Path(pattern.removesuffix("**").removesuffix("*"))
            if path.is_absolute() and path.exists():
                mounts.append(Mount(path, path, writable, is_machines=True))
            elif path.is_absolute() or writable:
                reason = "There is no such folder." if path.is_absolute() else "A local tool's project is read-only; it may write to $HOME."
                unmet.append(Difference(item=item, requested=pattern, reason=reason))
    return mounts, tuple(unmet)
