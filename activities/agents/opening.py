"""Opens the conversation of an agent: records its first message and makes its request."""

from datetime import UTC, datetime

from activities.agents.models import Models
from activities.agents.role import AnyRole
from engine.tasks.transcript import Transcript
from toolagent.contracts.making import TaskNoteKind
from toolagent_service.agents.coding_log import NewNote, start_line
from toolagent_service.agents.conversation import OPENING
from toolagent_service.contracts.agent import AgentLimits, AgentRequest
from toolagent_service.contracts.model import Message, Price, Text


class Openings:
    """Openings of conversations of any role."""

    def __init__(self, models: Models, transcript: Transcript) -> None:
        self._models, self._kept = models, transcript

    async def open(self, conversation_id: str, text: str, role: AnyRole, prompt: str, limits: AgentLimits) -> AgentRequest:
        """Idempotent: the first record stands."""
        await self._kept.messages.put(conversation_id, OPENING, Message(role="user", content=(Text(text=text),)))
        if role.rules.of_task:
            started = NewNote("agent", TaskNoteKind.START, start_line(datetime.now(UTC), text))
            await self._kept.notes.write(conversation_id, (started,))
        return await self.request(conversation_id, text, role, prompt, limits)

    async def request(self, conversation_id: str, text: str, role: AnyRole, prompt: str, limits: AgentLimits) -> AgentRequest:
        """The request of a role that finds its first message itself."""
        said = (text, await self._models.text_of(prompt))
        return AgentRequest(
            conversation_id=conversation_id,
            role=role.name,
            prompt=prompt,
            limits=limits,
            price=self.price(),
            opening=role.offers_bytes + sum(len(part.encode("utf-8", "surrogatepass")) for part in said),
        )

    def price(self, why: str = "") -> Price | None:
        """The price of the model; None if it is unknown. Raises ApplicationError if no model is set."""
        return self._models.prices.of(self._models.asked(why).model)
