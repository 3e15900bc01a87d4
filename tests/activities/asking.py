"""An agent as its workflow runs it, without Temporal: the loop, the real activity, a scripted model over HTTP, a real database."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import JsonValue
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.agents.models import Models
from activities.agents.opening import Openings
from activities.ask_model import AskModel
from activities.brief_agent import BriefAgent
from engine.roles.prices import Prices
from engine.roles.prompts import Prompts
from engine.roles.provider import ModelProvider
from engine.roles.provider_options import ProviderOptions
from engine.roles.providers.anthropic import AnthropicProvider
from engine.store.content.folder import FolderContent
from engine.store.database import Database
from engine.store.files import FileStore
from engine.store.messages import MessageTable
from engine.store.model_turns import ModelTurnTable
from engine.store.task_notes import TaskNoteTable
from engine.store.tasks import TaskTable
from engine.store.tool_outcomes import ToolOutcomeTable
from engine.tasks.transcript import Transcript
from tests.activities.roles import OFFERED
from tests.store.making import task
from toolagent.contracts.task_specs import BuildTool, MakeLimits
from toolagent.testing.servers.scenario import Conversation, Scenario, Turn
from toolagent_service.agents import loop
from toolagent_service.agents.coding import CODING
from toolagent_service.agents.model_notes import key_of_use
from toolagent_service.contracts.agent import AgentEnd, AgentLimits, AgentRequest, AgentResult, ModelAsk, ModelTurnNote, ToolNote, ToolRun
from toolagent_service.contracts.making_steps import BriefStep
from toolagent_service.contracts.model import Price, ToolOutcome

__all__ = ["KEY", "MODEL", "PRICE", "TASK", "Agent", "agent_of", "scenario"]

KEY = "sk-test-0123456789abcdef"
MODEL = "scripted-model"
PRICE = Price(input=3, output=15, cache_read=0.3, cache_write=3.75)
TASK = task(1).task_id
PROMPTS = Path(__file__).parents[2] / "data" / "prompts"
_MOST_STEPS = 500


def scenario(conversations: dict[str, list[dict[str, JsonValue]]]) -> Scenario:
    """Conversations by the request of the task."""
    return Scenario(
        key=KEY,
        models=(MODEL,),
        conversations=tuple(
            Conversation(name=name, when=name, turns=tuple(map(Turn.model_validate, turns))) for name, turns in conversations.items()
        ),
    )


@dataclass
class Agent:
    """Runs an agent. Each step takes `seconds`; `outcome` is the outcome of a use, given the number of earlier ones."""

    briefing: BriefAgent
    asking: AskModel
    turns: ModelTurnTable
    notes: TaskNoteTable
    tasks: TaskTable
    messages: MessageTable
    outcomes: ToolOutcomeTable
    seconds: float = 1.0
    outcome: Callable[[int], str] = str
    used: list[str] = field(default_factory=list[str])

    async def request(self, wanted: str, **limits: float | None) -> AgentRequest:
        """The start of the agent: its brief and its limits."""
        spec = BuildTool(tool_name="word_counter", description=wanted, limits=MakeLimits.model_validate(limits))
        return await ActivityEnvironment().run(self.briefing.brief_agent, BriefStep(task_id=TASK, spec=spec))

    async def attempt(self, ask: ModelAsk, number: int = 1) -> ModelTurnNote:
        """The `number`-th attempt at a turn."""
        environment = ActivityEnvironment()
        environment.info = replace(environment.info, attempt=number)
        return await environment.run(self.asking.ask_model, ask)

    async def run(self, request: AgentRequest) -> AgentResult:
        """Run the agent to its end."""
        now = 0.0
        state = loop.begin(request, now)
        for _ in range(_MOST_STEPS):
            now += self.seconds
            match loop.next_step(request, state, now):
                case loop.AskModel(ask=ask):
                    try:
                        state = loop.after_model(CODING, state, ask, await self.attempt(ask))
                    except ApplicationError as error:
                        state = loop.ended(state, AgentEnd.MODEL, error.message)
                case loop.RunTools(allowed=allowed, refused=refused):
                    state = loop.after_tools(state, (*[await self._use(run) for run in allowed], *refused))
                case loop.Finish(result=result):
                    return result
        raise AssertionError("It does not end.")

    async def _use(self, run: ToolRun) -> ToolNote:
        content = self.outcome(len(self.used))
        self.used.append(run.name)
        outcome = ToolOutcome(tool_use_id=run.tool_use_id, content=content)
        await self.outcomes.put(TASK, {key_of_use(run.position, run.tool_use_id): outcome})
        return ToolNote(tool_use_id=run.tool_use_id, name=run.name, digest=content)


@asynccontextmanager
async def agent_of(
    url: str | None,
    database: Database,
    folder: Path,
    *,
    key: str | None = KEY,
    price: Price | None = PRICE,
    prompts: Path = PROMPTS,
    silence_s: float = 300.0,
    has_model: bool = True,
    other: ModelProvider | None = None,
) -> AsyncGenerator[Agent]:
    """An agent of the model at `url`, or of an `other` provider; without one, of its vendor, which refuses it without a key."""
    files = FileStore(database, FolderContent(folder / "content"), folder / "spool", 64 << 20)
    messages, outcomes, notes, tasks = (
        MessageTable(database, files),
        ToolOutcomeTable(database, files),
        TaskNoteTable(database),
        TaskTable(database),
    )
    turns = ModelTurnTable(database, messages)
    await tasks.create(task(1))
    provider = AnthropicProvider(ProviderOptions(MODEL, key, url, silence_s=silence_s))
    models = Models((other or provider) if has_model else None, Prompts(prompts), Prices(((MODEL, price),) if price else ()))
    transcript = Transcript(messages, outcomes, turns, notes, tasks)
    briefing = BriefAgent(Openings(models, transcript), OFFERED, AgentLimits())
    asking = AskModel(models, transcript, (OFFERED,))
    try:
        yield Agent(briefing, asking, turns, notes, tasks, messages, outcomes)
    finally:
        await provider.aclose()
