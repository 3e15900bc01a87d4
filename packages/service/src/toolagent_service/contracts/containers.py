"""Containers of tools."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Field, NonNegativeInt

from toolagent.contracts.contract import Contract
from toolagent.contracts.identifiers import ToolId


class ContainerStatus(StrEnum):
    """Whether a container exists."""

    RUNNING = "running"
    DESTROYED = "destroyed"


class ContainerInfo(Contract):
    """One container of a tool. `port_mapping`: its ports to those of the machine; `volumes`: folders of the machine to its own."""

    container_id: Annotated[str, Field(min_length=1, max_length=128)]
    tool_id: ToolId
    image: str
    port_mapping: dict[str, Annotated[int, Field(ge=0, le=65535)]] = {}
    volumes: dict[str, str] = {}
    mem_limit: str | None = None
    nano_cpus: NonNegativeInt | None = None
    """Billionths of a core."""
    use_gpu: bool = False
    gpu_count: Annotated[int, Field(ge=-1)] = -1
    """-1: all of them."""
    status: ContainerStatus = ContainerStatus.RUNNING
    created_at: datetime | None = None
    last_accessed: datetime | None = None
    destroyed_at: datetime | None = None
