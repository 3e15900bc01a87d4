"""A function that a model may call.

`S` is the site where the tools of a role work.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from toolagent.core.suggestions import nearest
from toolagent_service.contracts.model import ToolOffer

A = TypeVar("A", bound="Arguments")
S = TypeVar("S")

_FAULTS_TOLD = 8


class AgentToolRefused(Exception):
    """An error of the model; it sees the message as the outcome."""


class AgentToolUnavailable(Exception):
    """An outage of the service: the use is retried, and in the end the model is told."""


class Arguments(BaseModel):
    """The arguments of a function. The model is offered their JSON Schema."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class Used:
    """The outcome of a use: `value` is shown to the model; `product` is the id of a submitted candidate, and ends the agent.

    `tool_ids` and `task_ids` tell the workflow of the role which tools were shown and which tasks submitted.
    """

    value: dict[str, JsonValue]
    product: str | None = None
    tool_ids: tuple[str, ...] = ()
    task_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentTool(Generic[A, S]):
    """`use` raises AgentToolRefused, and errors that its role handles."""

    name: str
    description: str
    arguments: type[A]
    use: Callable[[A, S], Awaitable[Used]]

    @property
    def offer(self) -> ToolOffer:
        """The offer to a model."""
        return ToolOffer(name=self.name, description=self.description, input_schema=_plain(self.arguments.model_json_schema()))

    def fault(self, given: dict[str, JsonValue]) -> str:
        """Why these arguments are invalid, in words for the model; empty if they are valid."""
        try:
            self._read(given)
        except AgentToolRefused as refused:
            return str(refused)
        return ""

    async def run(self, given: dict[str, JsonValue], site: S) -> Used:
        """Raises AgentToolRefused for invalid arguments, and what `use` raises."""
        return await self.use(self._read(given), site)

    def _read(self, given: dict[str, JsonValue]) -> A:
        try:
            return self.arguments.model_validate(given)
        except ValidationError as error:
            known = [*self.arguments.model_fields]
            faults = error.errors(include_url=False, include_input=False)
            told = [_fault(".".join(map(str, fault["loc"])), fault["type"], fault["msg"], known) for fault in faults[:_FAULTS_TOLD]]
            raise AgentToolRefused(f"{self.name} was not called: {'; '.join(told)}. It takes: {', '.join(known)}.") from error


def _fault(field: str, kind: str, message: str, known: list[str]) -> str:
    if kind == "missing":
        return f"{field!r} is missing"
    if kind == "extra_forbidden":
        near = nearest(field, known, 1)
        return f"there is no {field[:60]!r}" + (f" (did you mean {near[0]!r}?)" if near else "")
    return f"{field!r}: {message}"


def _plain(schema: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """The schema without titles, which repeat the names."""
    return {name: _plain_part(part, is_names=name in ("properties", "$defs")) for name, part in schema.items() if name != "title"}


def _plain_part(part: JsonValue, *, is_names: bool = False) -> JsonValue:
    match part:
        case dict() if is_names:
            return {name: _plain_part(inner) for name, inner in part.items()}
        case dict():
            return _plain(part)
        case list():
            return [_plain_part(inner) for inner in part]
        case _:
            return part
