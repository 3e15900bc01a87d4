"""What must be true of a chat: every message once and in its order, each with its own answer after it, and told alike to all who asked."""

import re
from collections.abc import Iterator, Sequence

from bench.chats.talking import Said, Talk
from toolagent.contracts.chats import AnsweredBy, ChatReply, ChatRole, ChatTurn

_TASK = re.compile(r"create_[0-9a-f]{8}")


def broken_promises(talk: Talk, turns: Sequence[ChatTurn]) -> Iterator[str]:
    """`turns` are what the service has kept of it."""
    for number, said in enumerate(talk.said, start=1):
        yield from (f"{talk.chat_id}, message {number}: {fault}" for fault in _of_message(said))
    told = [(said.text, said.replies[0]) for said in talk.said if said.replies]
    right = [line for text, reply in told for line in _lines(text, reply)]
    kept = [(turn.role, turn.text, turn.message_id) for turn in turns]
    if kept != right:
        yield from (f"{talk.chat_id}: lost, it was said: {line}" for line in right if line not in kept)
        yield from (f"{talk.chat_id}: kept, and never said: {line}" for line in kept if line not in right)
        yield f"{talk.chat_id}: {len(right)} turns were said, {len(kept)} are kept, and not in that order"
    if [turn.number for turn in turns] != list(range(1, len(turns) + 1)):
        yield f"{talk.chat_id}: its turns are numbered {[turn.number for turn in turns][:20]}"


def _of_message(said: Said) -> Iterator[str]:
    yield from said.failures
    if len(said.replies) > 1:
        yield f"{len(said.replies)} different answers were told"
    for reply in said.replies:
        if reply.error:
            yield reply.error
        if reply.answered_by is AnsweredBy.RULES and _TASK.findall(said.text)[0] not in reply.response:
            yield f"the answer is one to something else: {reply.response[:200]}"


def _lines(text: str, reply: ChatReply) -> Iterator[tuple[ChatRole, str, str]]:
    yield ChatRole.USER, text, reply.message_id
    yield ChatRole.ASSISTANT, reply.response, reply.message_id
