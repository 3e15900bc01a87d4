"""The runtimes of this host."""

import shutil
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from engine.runtimes import make_runtimes
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
from engine.upkeep.removal.projects import tidied
from toolagent.contracts.sandbox import SandboxPolicy
from workers.destinations import server_judge, table_destinations
from workers.failures import cannot_run_on
from workers.host.cloning import SHORTER_PATH
from workers.host.containers import closed_containers, docker_settings, lasting_names
from workers.host.sandbox import identities, policy_of, sandbox_of
from workers.host.scripts import Tooling, judging, script_service, tooling_of
from workers.settings.environment import environment
from workers.settings.whole import Settings
from workers.state.secrets import secrets_of
from workers.storage import Store


@dataclass(frozen=True, slots=True)
class HostRuntimes:
    """The runtimes, and the parts that they are made of."""

    runtimes: Mapping[str, AnyRuntime]
    parts: RuntimeParts
    tooling: Tooling


_ENGINE_VARIABLES = ("DOCKER_HOST", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY")
"""Variables that name another Docker engine."""


@asynccontextmanager
async def running_runtimes(
    store: Store,
    guardian: Guardian,
    owner: Owner,
    builtin: Mapping[str, BuiltinTool],
    projects: Projects,
    book: ContainerBook,
    logins: Logins,
) -> AsyncGenerator[HostRuntimes]:
    """The runtimes by the type of their source. Raises CannotRun if the secrets are not private, or the policy cannot be used."""
    settings, state, audit = store.settings, store.state, store.audit
    secrets = secrets_of(state)
    secrets.check()
    launcher = Launcher(owner, guardian, _chosen("PATH"), shutil.which("setpriv"))
    policy = policy_of(settings.sandbox)
    data = settings.catalog.data_dir.absolute()
    users = identities(settings.sandbox.sandbox_users, state.root / "sandbox" / "users")
    # The user of containers that serve no tool.
    of_containers = users.take(state.root).identity if users else None
    with cannot_run_on(OSError, remedy=SHORTER_PATH):
        egress = Egress(state.root, policy.private_hosts, of_containers)
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
        http, tables = exchanges_of(stack, settings, policy)
        sandboxing = Sandboxing(sandbox, egress, scripts.environments, environment(), audit)
        judge = server_judge(settings)
        parts = RuntimeParts(local, launcher, sandboxing, http, secrets.resolve, builtin, projects, scripts, docker, tables, judge, logins)
        runtimes = make_runtimes(parts)
        stack.push_async_callback(closed_containers, runtimes)
        yield HostRuntimes(runtimes, parts, tooling)


def exchanges_of(stack: AsyncExitStack, settings: Settings, policy: SandboxPolicy) -> tuple[HttpExchange, HttpExchange]:
    """HTTP with remote tools, and with tools of external tables. Both are closed with the stack."""
    http = HttpExchange(
        max_result_bytes=settings.limits.max_result_bytes,
        max_result_values=settings.limits.max_result_values,
        public=PublicServers(policy.private_hosts),
    )
    stack.push_async_callback(http.aclose)
    tables = http.with_judge(BeforeSending(table_destinations(settings)))
    stack.push_async_callback(tables.aclose)
    return http, tables


def _chosen(*names: str) -> dict[str, str]:
    everything = environment()
    return {name: everything[name] for name in names if name in everything}
