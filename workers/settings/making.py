"""What makes tools: a model, its limits, repositories."""

from pathlib import Path
from typing import Annotated

from pydantic import Field, SecretStr

from workers.settings.part import CommaSeparated, Part, Seconds

__all__ = ["CodingSettings", "ModelSettings", "RepositorySettings"]


class ModelSettings(Part):
    """The model."""

    model: Annotated[str | None, Field(description="Name of the model that writes tools; unset: only what needs none is made.")] = None
    model_provider: Annotated[str, Field(description="Protocol that it speaks.")] = "anthropic"
    model_base_url: Annotated[str | None, Field(description="Where it is; unset: at its vendor. Any that speaks the protocol.")] = None
    model_api_key: Annotated[SecretStr | None, Field(description="Key for it.")] = None


class CodingSettings(Part):
    """Making tools."""

    max_coding_tasks: Annotated[int, Field(ge=1, description="Tasks that make tools at once, on all hosts; later ones wait.")] = 2
    coding_rounds: Annotated[int, Field(ge=1, description="How often what a model wrote is judged before a task is given up.")] = 3
    coding_turns: Annotated[int, Field(ge=1, description="Turns of the model that a task may take.")] = 100
    coding_wall_s: Annotated[Seconds, Field(description="Seconds that a task's agent may take.")] = 3_600.0
    coding_tokens: Annotated[int, Field(ge=1, description="Tokens that a task may take, read and written, cached or not.")] = 10_000_000
    coding_limit_usd: Annotated[float | None, Field(ge=0, description="What a task may cost; unset: no limit in money.")] = None
    dependency_policy: Annotated[
        Path | None, Field(description="File (YAML or JSON) that says which packages machine-written code may depend on.")
    ] = None


class RepositorySettings(Part):
    """Cloning repositories."""

    repo_schemes: Annotated[
        CommaSeparated[tuple[str, ...]],
        Field(description="Schemes of addresses that are cloned; comma-separated; `file` too."),
    ] = ("https", "ssh")
    repo_max_bytes: Annotated[int, Field(ge=1, description="Bytes of disk that a clone may take, git's own files included.")] = (
        512 * 1_048_576
    )
    repo_max_files: Annotated[int, Field(ge=1, description="Files and folders that a clone may have, git's own included.")] = 20_000
    repo_timeout_s: Annotated[Seconds, Field(description="Seconds that cloning may take.")] = 120.0
    repo_ssh_key: Annotated[
        Path | None, Field(description="Private key for cloning over ssh; unset: those of the user that runs the service, and his agent.")
    ] = None
    repo_ssh_known_hosts: Annotated[
        Path | None, Field(description="File with the keys of ssh hosts; unset: that of the user that runs the service.")
    ] = None
