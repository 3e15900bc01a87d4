"""The runtimes of this host, made from settings."""

import shutil
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from engine.runtimes import make_runtimes
from engine.runtimes.auditing.audit import Audit
from engine.runtimes.builtin.tool import BuiltinTool
from engine.runtimes.docker.book import ContainerBook
from engine.runtimes.docker.parts import DockerParts
from engine.runtimes.docker_engine.engine import Engine
from engine.runtimes.http.destination import BeforeSending
from engine.runtimes.http.exchange import HttpExchange
from engine.runtimes.http.public_servers import PublicServers
from engine.runtimes.local.boxed_runs import LocalSettings, Sandboxing
from engine.runtimes.mcp.oauth.logins import Logins
from engine.runtimes.parts import RuntimeParts
from engine.runtimes.process.guardian import Guardian
from engine.runtimes.process.ownership import Owner
from engine.runtimes.process.processes import Launcher
from engine.runtimes.projects import Projects
from engine.runtimes.runtime import AnyRuntime
from engine.runtimes.sandbox.egress import Egress
from engine.runtimes.sandbox.identity import Identity
from engine.upkeep.removal.projects import tidied
from toolagent.contracts.sandbox import SandboxPolicy
from workers.destinations import server_judge, table_destinations
from workers.failures import CannotRun
from workers.host.containers import closed_containers, docker_settings, lasting_names
from workers.host.sandbox import identities, policy_of, sandbox_of
from workers.host.scripts import Tooling, judging, script_service, tooling_of
from workers.settings.environment import environment
from workers.settings.whole import Settings
from workers.state.directory import StateDirectory
from workers.state.secrets import SecretSource


@dataclass(frozen=True, slots=True)
class HostRuntimes:
    """The runtimes, and what they are made of."""

    runtimes: Mapping[str, AnyRuntime]
    parts: RuntimeParts
    tooling: Tooling


_ENGINE_VARIABLES = ("DOCKER_HOST", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY")
"""Where the Docker engine is, if not here."""


@asynccontextmanager
async def running_runtimes(
    settings: Settings,
    state: StateDirectory,
    guardian: Guardian,
    owner: Owner,
    builtin: Mapping[str, BuiltinTool],
    projects: Projects,
    audit: Audit,
    book: ContainerBook,
    logins: Logins,
) -> AsyncGenerator[HostRuntimes]:
    """What runs tools here, by the tag of their source. Raises CannotRun when the secrets are not private, or the policy cannot be used."""
    secrets = SecretSource(environment(), state.root / "secrets")
    secrets.check()
    launcher = Launcher(owner, guardian, _chosen("PATH"), shutil.which("setpriv"))
    policy = policy_of(settings.sandbox)
    data = settings.catalog.data_dir.absolute()
    users = identities(settings.sandbox.sandbox_users, state.root / "sandbox" / "users")
    # Of its containers that serve no tool.
    of_containers = users.take(state.root).identity if users else None
    egress = _egress(state, policy, of_containers)
    async with AsyncExitStack() as stack:
        stack.callback(egress.close)
        engine = Engine(_chosen(*_ENGINE_VARIABLES))
        stack.callback(engine.close)
        sandbox = await sandbox_of(settings.sandbox.sandbox_levels, policy, state, owner, launcher, engine, users)
        tooling = tooling_of(settings.environments, settings.running.tool_start_timeout_s, launcher, sandbox, egress)
        docker = DockerParts(
            docker_settings(settings.containers, settings.running, data, state, owner, policy, of_containers),
            engine,
            egress,
            tooling.indexes,
            audit=audit,
            book=book,
            secrets=secrets.resolve,
            users=users,
        )
        egress.sweep(await lasting_names(docker))
        judge = await stack.enter_async_context(judging(policy, tooling.programs, launcher, audit, state.host))
        scripts = script_service(settings.environments, settings.limits, settings.catalog.script_folder, state, tooling, audit, judge)
        await stack.enter_async_context(tidied(scripts.environments))
        local = LocalSettings(
            data=data,
            state=state.root,
            calls=state.calls,
            host=state.host,
            start_timeout_s=settings.running.tool_health_timeout_s,
            stop_grace_s=settings.running.stop_grace_s,
        )
        http = HttpExchange(
            max_result_bytes=settings.limits.max_result_bytes,
            max_result_values=settings.limits.max_result_values,
            public=PublicServers(policy.private_hosts),
        )
        stack.push_async_callback(http.aclose)
        tables = http.with_judge(BeforeSending(table_destinations(settings)))
        stack.push_async_callback(tables.aclose)
        sandboxing = Sandboxing(sandbox, egress, scripts.environments, environment(), audit)
        judge = server_judge(settings)
        parts = RuntimeParts(local, launcher, sandboxing, http, secrets.resolve, builtin, projects, scripts, docker, tables, judge, logins)
        runtimes = make_runtimes(parts)
        stack.push_async_callback(closed_containers, runtimes)
        yield HostRuntimes(runtimes, parts, tooling)


def _egress(state: StateDirectory, policy: SandboxPolicy, identity: Identity | None) -> Egress:
    try:
        return Egress(state.root, policy.private_hosts, identity)
    except OSError as error:
        raise CannotRun(f"{error} Set TOOL_AGENT_STATE_DIR or TMPDIR to a folder with a shorter path.") from error


def _chosen(*names: str) -> dict[str, str]:
    everything = environment()
    return {name: everything[name] for name in names if name in everything}
