"""Reads messages from the wire, and writes their answers."""

import hashlib
import re
from datetime import UTC, datetime

from pydantic import ValidationError

from toolagent.contracts.im import ImMessage, ImType

CHAT_ID = re.compile(r"[^\x00-\x1f\x7f-\x9f]{1,200}")
"""No control characters."""

_CUT = " … (cut: it is longer than a frame may be)"
_RULE = "It has 1 to 200 characters, and no control characters."


class NotAMessage(ValueError):
    """The frame is no message; the text says why."""


def read_message(frame: str | bytes) -> ImMessage:
    """Raises NotAMessage."""
    try:
        return ImMessage.model_validate_json(frame)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(map(str, first["loc"]))
        raise NotAMessage(f"{field}: {first['msg']}" if field else first["msg"]) from error


def refusal_of(message: ImMessage, contact_id: str) -> str | None:
    """Why a `chat` is refused, with a remedy; None if it is not."""
    if message.receiver != contact_id:
        return f"receiver: {message.receiver!r} is not here; this is {contact_id!r}."
    if not message.content.strip():
        return "content: It is empty. Say what you need."
    for field in ("sender_chat_id", "receiver_chat_id"):
        value: str | None = getattr(message, field)
        if value is not None and not CHAT_ID.fullmatch(value):
            return f"{field}: {_RULE}"
    return None


def key_of(message: ImMessage) -> str:
    """A key across senders: two senders may choose the same id."""
    return f"im-{_hash(message.sender, message.id)}"


def reply_to(message: ImMessage, chat_id: str, content: str) -> ImMessage:
    """The reply from the window to the chat that asked. Its id follows from the message, so there is one reply."""
    return ImMessage(
        id=f"reply-{_hash(key_of(message), chat_id)}",
        sender=message.receiver,
        receiver=message.sender,
        content=content,
        type=ImType.REPLY,
        sender_chat_id=chat_id,
        receiver_chat_id=message.sender_chat_id,
        timestamp=datetime.now(UTC),
    )


def notice_to(partner: ImMessage, chat_id: str, key: str, content: str) -> ImMessage:
    """A notice to the sender of `partner`. Its id follows from the key."""
    reply = reply_to(partner, chat_id, content)
    return reply.model_copy(update={"id": f"notice-{_hash(chat_id, key)}", "type": ImType.NOTICE})


def acknowledgement(message: ImMessage) -> ImMessage:
    return ImMessage(id=message.id, sender=message.receiver, receiver=message.sender, type=ImType.ACK)


def refusal(message: ImMessage, reason: str) -> ImMessage:
    return ImMessage(
        id=message.id,
        sender=message.receiver,
        receiver=message.sender,
        content=reason,
        type=ImType.ERROR,
        receiver_chat_id=message.sender_chat_id,
    )


def settles(told: ImMessage, sent: ImMessage) -> bool:
    """Whether an `ack` or `error` comes from the receiver of the message: no one else may settle it."""
    return told.id == sent.id and told.sender == sent.receiver


def written(message: ImMessage, most_bytes: int) -> str:
    """The frame, of at most `most_bytes`: the end of a long text is cut off."""
    text, content = message.model_dump_json(exclude_none=True), message.content
    while content and (size := len(text.encode())) > most_bytes:
        # Each pass comes nearer: the JSON length of a text depends on its characters.
        content = content[: min(len(content) - 1, len(content) * most_bytes // size)]
        text = message.model_copy(update={"content": content + _CUT}).model_dump_json(exclude_none=True)
    return text


def wants_answer(message: ImMessage) -> bool:
    return message.type == ImType.CHAT


def _hash(*parts: str) -> str:
    # The lengths keep ("a", "bc") and ("ab", "c") apart.
    return hashlib.sha256("".join(f"{len(part)}:{part}" for part in parts).encode()).hexdigest()[:32]
