"""Who talks: many chats side by side, each message when the one before it is answered, some of them twice at once."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import quote

import httpx

from toolagent.contracts.chats import ChatReply, ChatTurn, ChatView

_ASK_S = 120.0
_TWICE = 10
"""One message in so many is sent twice at once, under one key."""

_PAGE = 200


@dataclass(frozen=True, slots=True)
class Said:
    """A message and the answers that its senders got; equal ones once. `failures` are answers that are none."""

    text: str
    replies: list[ChatReply] = field(default_factory=list[ChatReply])
    failures: list[str] = field(default_factory=list[str])


@dataclass(frozen=True, slots=True)
class Talk:
    """The chat of this number, as those who talk saw it."""

    number: int
    chat_id: str
    said: Sequence[Said]


def plan_talks(chats: int, messages: int) -> list[Talk]:
    """No two messages are alike, and rules answer each with the name of its own task."""
    return [
        Talk(chat, f"chat {chat}", [Said(f"How far is create_{chat * messages + number:08x}?") for number in range(messages)])
        for chat in range(chats)
    ]


async def talk_all(url: str, talks: Sequence[Talk], callers: int) -> None:
    """First the first message of each chat, then the second of each: all chats live at once."""
    waiting = asyncio.Queue[tuple[Talk, int]]()
    for talk in talks:
        waiting.put_nowait((talk, 0))
    # The server ends idle connections after 5 s: one that is used at that moment breaks.
    limits = httpx.Limits(max_connections=2 * callers, keepalive_expiry=2)
    async with httpx.AsyncClient(base_url=url, timeout=_ASK_S, trust_env=False, limits=limits) as http:

        async def caller() -> None:
            while not waiting.empty():
                talk, number = waiting.get_nowait()
                times = 1 if (talk.number + number) % _TWICE else 2
                await asyncio.gather(*(_say(http, talk, number) for _ in range(times)))
                if number + 1 < len(talk.said):
                    waiting.put_nowait((talk, number + 1))

        await asyncio.gather(*(caller() for _ in range(callers)))


async def read_all(url: str, talks: Sequence[Talk]) -> dict[str, Sequence[ChatTurn]]:
    """What the service says was said, by chat."""
    async with httpx.AsyncClient(base_url=url, timeout=_ASK_S, trust_env=False) as http:
        return {talk.chat_id: await _turns(http, talk.chat_id) for talk in talks}


async def _say(http: httpx.AsyncClient, talk: Talk, number: int) -> None:
    said = talk.said[number]
    body, key = {"message": said.text, "chat_id": talk.chat_id}, {"Idempotency-Key": f"{number}"}
    try:
        answer = await http.post("/chat", json=body, headers=key)
    except httpx.TransportError as error:
        said.failures.append(type(error).__name__)
        return
    if not answer.is_success:
        said.failures.append(f"{answer.status_code} {answer.text[:200]}")
    elif (reply := ChatReply.model_validate_json(answer.content)) not in said.replies:
        said.replies.append(reply)


async def _turns(http: httpx.AsyncClient, chat_id: str) -> Sequence[ChatTurn]:
    turns: list[ChatTurn] = []
    before: int | None = None
    while True:
        params = {"limit": _PAGE} | ({"before": before} if before else {})
        answer = await http.get(f"/chats/{quote(chat_id, safe='')}", params=params)
        view = ChatView.model_validate_json(answer.raise_for_status().content)
        turns = [*view.turns, *turns]
        if (before := view.before) is None:
            return turns
