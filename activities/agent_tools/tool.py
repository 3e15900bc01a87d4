"""What an agent's tool is, and what it is given to work with."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from engine.making.workbench.bench import Workbench
from engine.making.workbench.proposals import Judge, Proposals
from engine.making.workbench.refusal import BenchRefused
from engine.runtimes.runtime import Progress
from toolagent.contracts.model import ToolOffer
from toolagent.contracts.task_specs import MakeRuntime
from toolagent.core.suggestions import nearest

__all__ = ["AgentTool", "AgentToolRefused", "Arguments", "Role", "Site", "Used"]

A = TypeVar("A", bound="Arguments")

_FAULTS_TOLD = 8


class Role(StrEnum):
    """Who asks a model, and so which tools it has."""

    ROUTER = "router"
    SERVICE = "service"
    CODING = "coding"


class AgentToolRefused(BenchRefused):
    """What the model got wrong; the message is the outcome that it is shown."""


class Arguments(BaseModel):
    """What a model gives. Its JSON Schema is what the model is offered."""

    model_config = ConfigDict(extra="forbid", frozen=True)


@dataclass(frozen=True, slots=True)
class Site:
    """`own_tool` is the id that the task is about, `is_repair`: it is there, and to be mended. `use` names this use in all attempts.

    `runtime` is the one that the task asks for. `remaining_s` is what is left of the agent's time; `beat` tells people what is being done.
    """

    task_id: str
    own_tool: str
    is_repair: bool
    runtime: MakeRuntime | None
    use: str
    remaining_s: float
    bench: Workbench
    gate: Judge
    proposals: Proposals
    beat: Progress


@dataclass(frozen=True, slots=True)
class Used:
    """What is shown to the model; `candidate` names what was put down."""

    value: dict[str, JsonValue]
    candidate: str | None = None


@dataclass(frozen=True, slots=True)
class AgentTool(Generic[A]):
    """`use` raises AgentToolRefused, and everything that a workbench raises."""

    name: str
    description: str
    arguments: type[A]
    use: Callable[[A, Site], Awaitable[Used]]

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

    async def run(self, given: dict[str, JsonValue], site: Site) -> Used:
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
