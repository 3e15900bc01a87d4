"""What makes tools: a model, its limits, repositories."""

from pathlib import Path
from typing import Annotated

from pydantic import Field, SecretStr

from toolagent_service.contracts.repairs import Meanwhile
from workers.settings.part import Dollars, Names, Number, Part, Seconds


class ModelSettings(Part):
    """The model."""

    model: str | None = None
    """Name of the model that writes tools; unset: only builds without a model."""

    model_provider: str = "anthropic"
    """Protocol of the model's endpoint."""

    model_base_url: str | None = None
    """URL of an endpoint with that protocol; unset: the vendor's."""

    model_api_key: SecretStr | None = None
    """Key of the model's endpoint."""


class CodingSettings(Part):
    """Making tools."""

    max_coding_tasks: Number = 2
    """Tasks that make tools at once, on all hosts; later ones wait."""

    coding_rounds: Number = 3
    """How many candidates of the model the gate checks before the task fails."""

    coding_turns: Number = 100
    """Turns of the model that a task may take."""

    coding_wall_s: Seconds = 3_600.0
    """Seconds that a task's agent may take."""

    coding_tokens: Number = 10_000_000
    """Tokens that a task may take, read and written, cached or not."""

    coding_limit_usd: Dollars | None = None
    """USD that a task may cost; unset: no limit."""

    dependency_policy: Path | None = None
    """File (YAML or JSON) with the packages that machine-written code may depend on."""


class RepairSettings(Part):
    """Repairs from production."""

    repair_after_failures: Annotated[int, Field(ge=1, le=100)] = 5
    """Failures among twice as many newest calls of a version that open its repair; only failures of the tool's own count."""

    repair_pause_s: Seconds = 1_800.0
    """Seconds after a repair before the tool is repaired again; doubles with each repair of the day."""

    repairs_per_day: Annotated[int, Field(ge=0)] = 3
    """Repairs of a tool within 24 hours; 0: alerts only."""

    repair_meanwhile: Meanwhile = Meanwhile.REFUSE
    """What calls of a failing version get while it is repaired: `refuse` (`unavailable`), `previous` (the version before) or `serve`."""


class RepositorySettings(Part):
    """Cloning repositories."""

    repo_schemes: Names = ("https", "ssh")
    """Schemes of addresses that may be cloned; comma-separated; `file` is possible."""

    repo_max_bytes: Number = 512 * 1_048_576
    """Bytes of disk that a clone may take, git's own files included."""

    repo_max_files: Number = 20_000
    """Files and folders that a clone may have, git's own included."""

    repo_timeout_s: Seconds = 120.0
    """Seconds that cloning may take."""

    repo_ssh_key: Path | None = None
    """Private key for cloning over ssh; unset: those of the service's user, and of the user's ssh agent."""

    repo_ssh_known_hosts: Path | None = None
    """File with known ssh host keys; unset: that of the service's user."""
