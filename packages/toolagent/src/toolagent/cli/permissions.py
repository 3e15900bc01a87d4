"""The permissions of a tool, line by line."""

from collections.abc import Iterator
from urllib.parse import urlsplit

from toolagent.contracts.http import ToolDetail
from toolagent.contracts.manifest import SecurityContext
from toolagent.contracts.sandbox import SandboxLimits
from toolagent.contracts.sources import PackedSource

__all__ = ["granted"]

_MIB = 1_048_576


def granted(tool: ToolDetail) -> Iterator[tuple[str, str]]:
    """Name and value of each permission that the tool asks for. Tools outside the sandbox have none."""
    servers = [urlsplit(server).netloc for source in tool.sources for server in source.traits.servers[:1]]
    if servers:
        yield "sends to", _listed(tuple(dict.fromkeys(servers)))
    if any(isinstance(source, PackedSource) for source in tool.sources) or tool.security_context != SecurityContext():
        yield from _sandboxed(tool.security_context)


def _sandboxed(asked: SecurityContext) -> Iterator[tuple[str, str]]:
    yield "hosts", _listed(asked.network_access.allow_hosts)
    yield "may read", _listed(asked.file_access.allow_read)
    yield "may write", _listed(asked.file_access.allow_write)
    if asked.environment:
        yield "variables", _listed(asked.environment)
    if asked.required_capabilities:
        yield "needs", _listed(asked.required_capabilities)
    if limits := _limits(asked.limits):
        yield "may use", limits


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names) or "none"


def _limits(limits: SandboxLimits) -> str:
    sizes = {
        "memory": limits.memory_bytes,
        "a file": limits.file_bytes,
        "temporary files": limits.disk_bytes,
        "output": limits.output_bytes,
    }
    counts = {"cores": limits.cpus, "processes": limits.processes, "open files": limits.open_files, "seconds": limits.wall_s}
    said = [f"{name}: {size / _MIB:g} MiB" for name, size in sizes.items() if size is not None]
    return ", ".join(said + [f"{count:g} {name}" for name, count in counts.items() if count is not None])
