"""Specifications of tasks."""

import json
import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, JsonValue, NonNegativeFloat, StringConstraints, TypeAdapter, field_validator
from pydantic_core import PydanticCustomError

from toolagent.contracts.contract import Contract
from toolagent.contracts.identifiers import OWNED_VARIABLES, SECRET_PATTERN, AtLeastOne, EnvironmentName, ShortText, ToolId, UpToADay

__all__ = [
    "LONGEST_WORDS",
    "MOST_EXAMPLES",
    "MOST_EXAMPLE_BYTES",
    "TASK_ID_PATTERN",
    "BuildTool",
    "Example",
    "GithubDeploy",
    "MakeLimits",
    "MakeRuntime",
    "RepairTool",
    "TaskId",
    "TaskSpec",
    "is_making",
    "task_spec",
]

TASK_ID_PATTERN = r"^(create|repair)_[0-9a-f]{8}$"

_SECRET = re.compile(r"(?:^|_)(?:API_?KEY|SECRET_?KEY|TOKEN|SECRET|PASSWORD|PASSWD|PRIVATE_KEY|ACCESS_KEY)$", re.IGNORECASE)
"""Names of variables with confidential values."""

REF_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._/+-]*$"

TaskId = Annotated[str, StringConstraints(pattern=TASK_ID_PATTERN)]


def is_making(task_id: str) -> bool:
    """Whether the id is that of a task that makes or repairs a tool. Other ids are of calls and batches."""
    return re.fullmatch(TASK_ID_PATTERN, task_id) is not None


LONGEST_WORDS = 16_000
"""Characters of a description, which every step of a task carries."""

MOST_EXAMPLES = 100
MOST_EXAMPLE_BYTES = 262_144
"""Bytes of all examples as JSON, for the same reason."""

MakeRuntime = Literal["local", "uv", "docker"]
"""`uv` is another word for `local`."""


class Example(Contract):
    """A call and its expected output, which is compared as a subset."""

    input: dict[str, JsonValue]
    expected_output: JsonValue


class MakeLimits(Contract):
    """Limits of a task, at most those of the service, which are the defaults. Times are in seconds."""

    turns: Annotated[int | None, Field(ge=1, le=1_000)] = None
    """Turns of the model."""
    wall_s: UpToADay | None = None
    tokens: AtLeastOne | None = None
    """Tokens that the model reads and writes, cached or not."""
    cost_usd: NonNegativeFloat | None = None


def _of_bounded_size(examples: tuple[Example, ...]) -> tuple[Example, ...]:
    size = len(json.dumps([example.model_dump(mode="json") for example in examples], ensure_ascii=False).encode("utf-8", "replace"))
    if size > MOST_EXAMPLE_BYTES:
        told = {"size": f"{size:,}", "most": f"{MOST_EXAMPLE_BYTES:,}"}
        raise PydanticCustomError("examples", "They are {size} bytes of JSON; at most {most} are taken, all together", told)
    return examples


class _Spec(Contract):
    examples: Annotated[tuple[Example, ...], Field(max_length=MOST_EXAMPLES), AfterValidator(_of_bounded_size)] = ()
    limits: MakeLimits = MakeLimits()


class GithubDeploy(_Spec):
    """Make a tool of a repository."""

    type: Literal["github_deploy"] = "github_deploy"
    repo_url: Annotated[str, Field(min_length=1, max_length=2_000)]
    tool_name: ToolId
    runtime: MakeRuntime | None = None
    description: Annotated[str, Field(max_length=LONGEST_WORDS)] = ""
    ref: Annotated[str | None, Field(min_length=1, max_length=200, pattern=REF_PATTERN)] = None
    """A branch, a tag or a commit."""
    path: Annotated[str | None, Field(min_length=1, max_length=500)] = None
    """A folder of the repository."""
    env: Annotated[dict[EnvironmentName, Annotated[str, Field(max_length=32_768)]], Field(max_length=100)] = {}
    """Environment variables of the tool: texts, or `secret:NAME`."""
    hosts: Annotated[tuple[str, ...], Field(max_length=50)] = ()
    """Hosts that the tool may reach, in the form of a manifest."""
    operations: Annotated[tuple[ShortText, ...], Field(max_length=200)] = ()
    """Names of the wanted operations, commands or tags, with `*` for any letters; empty: all."""
    probe: Literal["none", "safe", "full"] = "safe"
    """Operations of a foreign server that are tried with made-up input: none, those that its document calls safe, or all."""
    server_url: Annotated[str | None, Field(max_length=2_000, pattern=r"^https?://")] = None
    """The server of the OpenAPI document of the repository."""

    @field_validator("env")
    @classmethod
    def _is_its_own(cls, value: dict[str, str]) -> dict[str, str]:
        for name, text in value.items():
            if name.upper() in OWNED_VARIABLES or name.upper().startswith(("TOOL_AGENT_", "LD_")):
                raise PydanticCustomError("env", "{name}: the sandbox sets it itself; leave it out", {"name": name})
            if _SECRET.search(name) and text and not re.fullmatch(SECRET_PATTERN, text):
                told = {"name": name}
                raise PydanticCustomError(
                    "env", "{name}: write `secret:{name}` and set TOOL_AGENT_SECRET_{name}: a key in a task could be read by all", told
                )
        return value

    @field_validator("path")
    @classmethod
    def _is_inside(cls, value: str | None) -> str | None:
        if value is not None and (value.startswith("/") or ".." in value.split("/")):
            raise PydanticCustomError("path", "It must be a folder of the repository, such as `packages/api`, or a file")
        return value


class BuildTool(_Spec):
    """Write a tool."""

    type: Literal["build_tool"] = "build_tool"
    tool_name: ToolId
    description: Annotated[str, Field(min_length=1, max_length=LONGEST_WORDS)]
    runtime: MakeRuntime | None = None


class RepairTool(_Spec):
    """Mend a tool."""

    type: Literal["repair_tool"] = "repair_tool"
    tool_id: ToolId
    error: Annotated[str, Field(max_length=LONGEST_WORDS)] = ""
    description: Annotated[str, Field(max_length=LONGEST_WORDS)] = ""


TaskSpec = Annotated[GithubDeploy | BuildTool | RepairTool, Field(discriminator="type")]

task_spec: TypeAdapter[GithubDeploy | BuildTool | RepairTool] = TypeAdapter(TaskSpec)
"""Reads and validates a specification."""
