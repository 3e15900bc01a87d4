"""A model's description of a tool, and the judge of its dependencies."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from toolagent.contracts.backend_runtimes import BackendRuntime
from toolagent.contracts.sources import HttpMethod
from toolagent_service.contracts.dependency_policy import DependencyVerdict


class Judge(Protocol):
    """`DependencyGate` is one."""

    async def judge(self, requirements: Sequence[str]) -> tuple[DependencyVerdict, ...]: ...


@dataclass(frozen=True, slots=True)
class Proposal:
    """`manifest` has the model's values for fields of a `ToolManifest`."""

    tool_id: str
    is_docker: bool
    host_dir: str | None
    container_id: str | None
    internal_port: int
    endpoint_path: str
    http_method: HttpMethod
    manifest: dict[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True)
class Submitted:
    """`file_id` names the candidate in the content store."""

    file_id: str
    runtime: BackendRuntime
