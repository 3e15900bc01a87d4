"""The Temporal that a process works with."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from workers.settings.part import Part, Port, Seconds

__all__ = ["TemporalSettings"]


class TemporalSettings(Part):
    """Temporal."""

    temporal_address: Annotated[str | None, Field(description="`host:port` of a server of your own; unset: the embedded one.")] = None
    temporal_namespace: Annotated[str | None, Field(description="Unset: the one of `temporal-dev.yaml`.")] = None
    temporal_port: Annotated[Port | None, Field(description="Port of the embedded server; unset: that of `temporal-dev.yaml`.")] = None
    temporal_ui_port: Annotated[Port | None, Field(description="Port of its web page; unset: that of `temporal-dev.yaml`.")] = None
    temporal_binary: Annotated[Path | None, Field(description="The `temporal` program; unset: the one that was installed with us.")] = None
    temporal_config: Annotated[Path, Field(description="The file that describes the embedded server.")] = Path("temporal-dev.yaml")
    temporal_patience_s: Annotated[Seconds, Field(description="How long a waiting caller sits out a silent Temporal.")] = 60.0
    workflow_sandbox: Annotated[
        bool, Field(description="Run workflows in Temporal's sandbox (slower; finds what is not deterministic).")
    ] = False
