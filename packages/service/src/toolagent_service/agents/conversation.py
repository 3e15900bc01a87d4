"""Messages to a model in the form that the Messages API accepts: every use of a tool is answered, in order, and nothing is empty."""

from collections.abc import Mapping, Sequence

from toolagent_service.contracts.agent import ModelAsk
from toolagent_service.contracts.model import Block, Carried, Message, Text, ToolOutcome, ToolUse

OPENING = 0
"""The position of the first text for an agent, before all messages."""

_NOT_RUN = "Not run. Ask for it again if it is still needed."
_NOTHING = "(nothing)"
"""The API refuses messages without text."""


def opening_message(opening: str, ask: ModelAsk) -> Message:
    """The first message: the task, and remarks before the first turn."""
    return _from_user((Text(text=opening), *_remarks(ask)))


def next_message(answer: Message, kept: Mapping[str, ToolOutcome], ask: ModelAsk) -> Message:
    """The message after an answer: an outcome for each of its uses, then the remarks.

    `kept` are the outcomes in the store, by the id of the use. A use without a known outcome is answered too: the API refuses a
    conversation with an unanswered use.
    """
    refused = {outcome.tool_use_id: outcome.text for outcome in ask.outcomes if outcome.text is not None}
    outcomes = tuple(_outcome(use, kept, refused) for use in answer.content if isinstance(use, ToolUse))
    return _from_user((*outcomes, *_remarks(ask)))


def sendable(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages in the form that the API accepts: no blank text, no message without content, alternating roles.

    Blocks of an answer keep their order, and carried ones are unchanged: models reject their thinking if anything before it changed.
    """
    sent: list[Message] = []
    for message in messages:
        kept = tuple(block for block in message.content if not isinstance(block, Text) or block.text.strip())
        content = kept or (Text(text=_NOTHING),)
        if sent and sent[-1].role == message.role:
            sent[-1] = Message(role=message.role, content=(*sent[-1].content, *content))
        else:
            sent.append(Message(role=message.role, content=_alone(content)))
    return tuple(sent)


def _alone(content: tuple[Block, ...]) -> tuple[Block, ...]:
    # An answer that was cut off may end with thinking, after which the API requires a text.
    return (*content, Text(text=_NOTHING)) if all(isinstance(block, Carried) for block in content) else content


def _from_user(content: tuple[Block, ...]) -> Message:
    return Message(role="user", content=content or (Text(text=_NOTHING),))


def _remarks(ask: ModelAsk) -> tuple[Text, ...]:
    return tuple(Text(text=remark) for remark in ask.remarks)


def _outcome(use: ToolUse, kept: Mapping[str, ToolOutcome], refused: Mapping[str, str]) -> ToolOutcome:
    if use.id in refused:
        return ToolOutcome(tool_use_id=use.id, content=refused[use.id], is_error=True)
    return kept.get(use.id) or ToolOutcome(tool_use_id=use.id, content=_NOT_RUN, is_error=True)
