"""Bodies of requests for tasks that make or repair tools."""

from typing import Annotated

from pydantic import BeforeValidator, Field, JsonValue
from pydantic_core import PydanticCustomError

from api.forms import NO_NUL, SOMETHING
from api.json_object import JsonObject
from api.reading.bodies import CallerBody, strict
from toolagent.contracts.contract import Contract
from toolagent.contracts.task_specs import LONGEST_WORDS, MOST_EXAMPLES

# Databases refuse NUL.
_Words = Field(max_length=LONGEST_WORDS, pattern=NO_NUL)
_EXAMPLES: JsonValue = [{"input": {"text": "one two"}, "expected_output": {"words": 2}}]
_DEPLOY: JsonValue = {
    "type": "github_deploy",
    "repo_url": "https://github.com/user/project",
    "tool_name": "project_api",
    "runtime": "docker",
}
_BUILD: JsonValue = {"type": "build_tool", "tool_name": "word_counter", "runtime": "uv", "examples": _EXAMPLES}


def _object_or_text(given: JsonValue) -> JsonValue:
    """Refuses other types with one message; a union would report an error for each of its members."""
    if given is not None and not isinstance(given, dict | str):
        raise PydanticCustomError("task_spec", "It must be an object, its JSON text, or prose.")
    return given


class CreateToolBody(Contract):
    """The wanted tool. `description` is used if the specification has none; one of both is required."""

    model_config = strict(
        {"description": "Count the words of a text.", "task_spec": _BUILD},
        {"description": "", "task_spec": _DEPLOY},
        {"description": "需要一个图片压缩工具", "task_spec": "详细任务描述..."},
        {"description": "Count words", "task_spec": "It takes a text and gives how many words it has."},
    )

    description: Annotated[str, _Words] = ""
    task_spec: Annotated[
        JsonObject | str | None,
        BeforeValidator(_object_or_text),
        Field(
            description="`github_deploy`, `build_tool` or `repair_tool`, as an object or JSON text. Other text is prose: a "
            "`build_tool` named by the words of the description, or else of the prose: four in Latin letters, small ones left out; Chinese "
            "ones in pinyin, `需要一个图片压缩工具` is `tupian_yasuo`; any others are `tool_` and a hash."
        ),
    ] = None
    caller: CallerBody = CallerBody()


class RepairToolBody(Contract):
    """The faults of a tool, as far as known."""

    model_config = strict({"error": "HTTP 503: Service Unavailable"})

    error: Annotated[str, _Words] = ""
    description: Annotated[str, _Words] = ""
    examples: Annotated[
        tuple[JsonValue, ...],
        Field(max_length=MOST_EXAMPLES, strict=False, description="Calls and what has to come of them, as of `/create_tool`."),
    ] = ()
    limits: Annotated[JsonObject, Field(description="What the task may take: `turns`, `wall_s`, `tokens`, `cost_usd`.")] = {}
    caller: CallerBody = CallerBody()


class RollbackBody(Contract):
    """The version to leave. With it, a repeated request goes back once."""

    model_config = strict({"from_version": "1.1.0"})

    from_version: Annotated[str | None, Field(max_length=64, description="Nothing happens unless this is the active one.")] = None


class MessageBody(Contract):
    model_config = strict({"text": "Count hyphenated words as one."})

    text: Annotated[str, Field(min_length=1, max_length=4_000, pattern=SOMETHING)]
