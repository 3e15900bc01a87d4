"""What a task is asked to do: the task specifications of seed 001 §5."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue, StringConstraints, TypeAdapter

from toolagent.contracts.contract import Contract
from toolagent.contracts.identifiers import ToolId

__all__ = [
    "TASK_ID_PATTERN",
    "BuildTool",
    "Example",
    "GithubDeploy",
    "MakeLimits",
    "MakeRuntime",
    "RepairTool",
    "TaskId",
    "TaskSpec",
    "task_spec",
]

TASK_ID_PATTERN = r"^(create|repair)_[0-9a-f]{8}$"

TaskId = Annotated[str, StringConstraints(pattern=TASK_ID_PATTERN)]
MakeRuntime = Literal["local", "uv", "docker"]
"""`uv` is the seeds' word for `local`."""


class Example(Contract):
    """A call and what has to come of it; the expected output is compared as a subset."""

    input: dict[str, JsonValue]
    expected_output: JsonValue


class MakeLimits(Contract):
    """What a task may take; what is not given is the service's setting, and no limit goes above that. Times are in seconds."""

    turns: Annotated[int | None, Field(ge=1, le=1_000, description="Turns of the model.")] = None
    wall_s: Annotated[float | None, Field(gt=0, le=86_400)] = None
    tokens: Annotated[int | None, Field(ge=1, description="All that the model reads and writes, cached or not.")] = None
    cost_usd: Annotated[float | None, Field(ge=0)] = None


class _Spec(Contract):
    examples: tuple[Example, ...] = ()
    limits: MakeLimits = MakeLimits()


class GithubDeploy(_Spec):
    """Make a tool of a repository (seed 001 §5.1)."""

    type: Literal["github_deploy"] = "github_deploy"
    repo_url: Annotated[str, Field(min_length=1, max_length=2_000)]
    tool_name: ToolId
    runtime: MakeRuntime | None = None
    description: str = ""


class BuildTool(_Spec):
    """Write a tool (seed 001 §5.2)."""

    type: Literal["build_tool"] = "build_tool"
    tool_name: ToolId
    description: Annotated[str, Field(min_length=1)]
    runtime: MakeRuntime | None = None


class RepairTool(_Spec):
    """Mend a tool (seed 001 §5.3)."""

    type: Literal["repair_tool"] = "repair_tool"
    tool_id: ToolId
    error: str = ""
    description: str = ""


TaskSpec = Annotated[GithubDeploy | BuildTool | RepairTool, Field(discriminator="type")]

task_spec: TypeAdapter[GithubDeploy | BuildTool | RepairTool] = TypeAdapter(TaskSpec)
"""Reads and checks one."""
