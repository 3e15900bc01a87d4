"""The settings, checks and clean-up of this host's containers."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

import structlog

from api.ports import Check, LackingError
from engine.runtimes.docker.parts import DockerParts
from engine.runtimes.docker.serving.runtime import DockerRuntime
from engine.runtimes.docker_engine.engine import EngineFailure, reason_of
from engine.runtimes.docker_engine.leftovers import names_of
from engine.runtimes.docker_engine.limits import bytes_of
from engine.runtimes.docker_engine.seals import Seals
from engine.runtimes.docker_engine.settings import DockerSettings
from engine.runtimes.process.ownership import Owner
from engine.runtimes.runtime import AnyRuntime
from engine.runtimes.sandbox.identity import Identity
from toolagent.contracts.sandbox import SandboxPolicy
from workers.failures import CannotRun, cannot_run_on
from workers.settings.hosts import RunningSettings
from workers.settings.tools import ContainerSettings
from workers.state.directory import StateDirectory

_CHECK_S = 2.0

_log = structlog.stdlib.get_logger(__name__)


def docker_settings(
    settings: ContainerSettings,
    running: RunningSettings,
    data: Path,
    state: StateDirectory,
    owner: Owner,
    policy: SandboxPolicy,
    user: Identity | None,
) -> DockerSettings:
    """Raises CannotRun if a setting cannot be used."""
    try:
        bytes_of(settings.docker_mem_limit)
    except ValueError as error:
        raise CannotRun(f"TOOL_AGENT_DOCKER_MEM_LIMIT: {error}") from error
    with cannot_run_on(OSError):
        Seals.of(state.root)
    return DockerSettings(
        data=data,
        state=state.root,
        owner=owner,
        host=state.host,
        base_image=settings.docker_base_image,
        mem_limit=settings.docker_mem_limit,
        nano_cpus=settings.docker_nano_cpus,
        ttl_s=settings.docker_ttl_seconds,
        port_start=settings.docker_port_start,
        start_timeout_s=running.tool_health_timeout_s,
        build_timeout_s=running.tool_start_timeout_s,
        stop_grace_s=running.stop_grace_s,
        policy=policy,
        identity=user,
        calls=state.calls,
    )


async def lasting_names(parts: DockerParts) -> tuple[str, ...]:
    """The names of containers that outlived the last worker. Without an engine there are none, which is logged."""
    try:
        return await names_of(parts.engine, parts.settings)
    except EngineFailure as error:
        _log.info("no_docker_engine", reason=str(error), effect="docker tools are unavailable")
        return ()


def engine_check(runtimes: Mapping[str, AnyRuntime]) -> Check:
    """A check that raises LackingError with the reason why docker tools are unavailable."""
    runtime = runtimes.get("docker")

    async def check() -> None:
        if isinstance(runtime, DockerRuntime):
            try:
                async with asyncio.timeout(_CHECK_S):
                    await runtime.parts.engine.check()
            except (EngineFailure, TimeoutError) as error:
                raise LackingError(f"Docker tools are unavailable: {reason_of(error)}") from error

    return check


async def closed_containers(runtimes: Mapping[str, AnyRuntime]) -> None:
    """Close the runtime of containers. Running containers stay."""
    runtime = runtimes.get("docker")
    if isinstance(runtime, DockerRuntime):
        await runtime.close()
