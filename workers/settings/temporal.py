"""The Temporal that a process works with."""

from pathlib import Path

from workers.settings.part import Part, Port, Seconds

__all__ = ["TemporalSettings"]


class TemporalSettings(Part):
    """Temporal."""

    temporal_address: str | None = None
    """`host:port` of a server of your own; unset: the embedded one."""

    temporal_namespace: str | None = None
    """Unset: the one of `temporal-dev.yaml`."""

    temporal_port: Port | None = None
    """Port of the embedded server; unset: that of `temporal-dev.yaml`."""

    temporal_ui_port: Port | None = None
    """Port of its web page; unset: that of `temporal-dev.yaml`."""

    temporal_binary: Path | None = None
    """The `temporal` program; unset: the one that was installed with us."""

    temporal_config: Path = Path("temporal-dev.yaml")
    """The file that describes the embedded server."""

    temporal_patience_s: Seconds = 60.0
    """How long a waiting caller sits out a silent Temporal."""

    workflow_sandbox: bool = False
    """Run workflows in Temporal's sandbox (slower; finds what is not deterministic)."""
