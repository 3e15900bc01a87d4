"""Conversations."""

from typing import Annotated

from pydantic import Field

from workers.settings.part import Dollars, Number, Part, Seconds


class ChatSettings(Part):
    """Conversations."""

    chat_idle_s: Seconds = 3_600.0
    """Seconds of silence after which the workflow of a conversation ends; the next message revives it."""

    chat_turns: Number = 16
    """Turns of the model that an answer may take."""

    chat_wall_s: Seconds = 300.0
    """Seconds that an answer may take."""

    chat_tokens: Number = 400_000
    """Tokens that an answer may take, read and written, cached or not."""

    chat_limit_usd: Dollars | None = None
    """USD that an answer may cost; unset: no limit."""

    chat_message_bytes: Annotated[int, Field(ge=1, le=131_072)] = 65_536
    """Bytes that a message to a conversation may have."""
