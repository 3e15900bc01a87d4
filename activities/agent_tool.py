"""What an agent's tool is: a function that a model may call. `S` is what the tools of a role work with."""

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
    """What the model got wrong; the message is the outcome that it is shown."""


class AgentToolUnavailable(Exception):
    """Something of ours does not work: it is tried again, and the model is told so at last."""


class Arguments(BaseModel):
    """What a model gives. Its JSON Schema is what the model is offered."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class Used:
    """What is shown to the model; `put_down` names what the agent was to make, and ends it.

    `tool_ids` are tools that it tells of, `task_ids` tasks that it began, where the workflow of the role has to know.
    """

    value: dict[str, JsonValue]
    put_down: str | None = None
    tool_ids: tuple[str, ...] = ()
    task_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AgentTool(Generic[A, S]):
    """`use` raises AgentToolRefused, and what its role knows."""

    name: str
    description: str
    arguments: type[A]
    use: Callable[[A, S], Awaitable[Used]]

    @property
    def offer(self) -> ToolOffer:
        """As a model is told of it."""
        return ToolOffer(name=self.name, description=self.description, input_schema=_plain(self.arguments.model_json_schema()))

    def fault(self, given: dict[str, JsonValue]) -> str:
        """Why these arguments cannot be used, in words for the model; empty when they can."""
        try:
            self._read(given)
        except AgentToolRefused as refused:
            return str(refused)
        return ""

    async def run(self, given: dict[str, JsonValue], site: S) -> Used:
        """Raises AgentToolRefused for arguments that do not fit, and what `use` raises."""
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
    """Without the titles that are made of the names, which say nothing new."""
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
