"""The Temporal that a process works with."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from toolagent.client import names
from workers.settings.part import Part, Port, Seconds


class TemporalSettings(Part):
    """Temporal."""

    temporal_address: str | None = None
    """`host:port` of your own Temporal server; unset: the embedded one."""

    temporal_namespace: str | None = None
    """Namespace on Temporal; unset: that of `temporal-dev.yaml`."""

    temporal_port: Port | None = None
    """Port of the embedded server; unset: that of `temporal-dev.yaml`."""

    temporal_ui_port: Port | None = None
    """Port of its web UI; unset: that of `temporal-dev.yaml`."""

    temporal_binary: Path | None = None
    """The `temporal` program; unset: the installed one."""

    temporal_config: Path = Path("temporal-dev.yaml")
    """Configuration of the embedded Temporal server."""

    temporal_patience_s: Seconds = 60.0
    """Seconds that a waiting caller waits for a Temporal server that does not answer."""

    nexus_endpoint: Annotated[str, Field(max_length=200, pattern=r"^([a-zA-Z][a-zA-Z0-9-]*[a-zA-Z0-9])?$")] = names.NEXUS_ENDPOINT
    """Name of the Nexus endpoint by which agents on other namespaces call; made on the embedded server. Empty: none."""

    workflow_sandbox: bool = False
    """Run workflows in Temporal's sandbox (slower; finds code that is not deterministic)."""
