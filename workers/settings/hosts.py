"""Hosts, the calls that they take, and the tools that they run."""

import re
from typing import Annotated

from pydantic import Field, ValidationInfo, field_validator

from toolagent.client.names import TASK_QUEUE
from toolagent_service.calls.dispatch import DEFAULT_BUCKET
from workers.settings.part import CommaSeparated, Part, Seconds

__all__ = ["CallSettings", "HostSettings", "RunningSettings"]

_BEATS_IN_A_LEASE = 3
"""So that a heartbeat or two may be late without another host being told that this one is dead."""

_RESERVED_QUEUES = (TASK_QUEUE, "control")


class HostSettings(Part):
    """Hosts."""

    host_id: Annotated[str | None, Field(pattern=r"^[a-z][a-z0-9-]{0,62}$")] = None
    """Name of this host; unset: one is made and kept in the state directory."""

    host_heartbeat_s: Seconds = 2.0
    """How often a host says that it is there."""

    host_lease_s: Seconds = 10.0
    """After how long without that it counts as dead; three heartbeats at least."""

    @field_validator("host_lease_s")
    @classmethod
    def _check_lease(cls, value: float, others: ValidationInfo) -> float:
        heartbeat = others.data.get("host_heartbeat_s")
        if heartbeat is None:  # that one is reported
            return value
        least = round(_BEATS_IN_A_LEASE * heartbeat, 6)
        if value < least:
            raise ValueError(
                f"a lease of {value:g} s is too short for a heartbeat every {heartbeat:g} s: set it to {least:g} or more, "
                "or lower TOOL_AGENT_HOST_HEARTBEAT_S"
            )
        return value


class CallSettings(Part):
    """Calls."""

    bucket_limits: dict[str, Annotated[int, Field(ge=1)]] = {"default": 16, "http": 5, "ai": 2, "database": 3}
    """Calls at once by bucket, on this host and on each of its queues; JSON."""

    queue_timeout_s: Seconds = 600.0
    """How long a call may wait for a slot."""

    shutdown_grace_s: Seconds = 10.0
    """How long running calls, and steps of tasks, may take when the service stops."""

    http_request_allow: CommaSeparated[tuple[str, ...]] = ()
    """Private hosts, addresses or CIDRs that `http_request` may reach; comma-separated."""

    callback_allow: CommaSeparated[tuple[str, ...]] = ()
    """Private hosts, addresses or CIDRs that callbacks may go to; comma-separated."""

    @field_validator("bucket_limits")
    @classmethod
    def _check_buckets(cls, value: dict[str, int]) -> dict[str, int]:
        """Bucket names become task queues."""
        if DEFAULT_BUCKET not in value:
            raise ValueError(f"a bucket {DEFAULT_BUCKET!r} is needed for tools whose category has none")
        wrong = [name for name in value if not re.fullmatch(r"[a-z][a-z0-9_-]*", name) or name in _RESERVED_QUEUES]
        if wrong:
            raise ValueError(f"these cannot be names of buckets: {', '.join(wrong)}")
        return value


class RunningSettings(Part):
    """Running tools."""

    tool_start_timeout_s: Seconds = 300.0
    """How long building and starting a tool may take."""

    tool_health_timeout_s: Seconds = 30.0
    """How long a started tool may take until it is healthy."""

    stop_grace_s: Seconds = 5.0
    """How long a tool may take to end, or to come to rest after a cancelled call."""
