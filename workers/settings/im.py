"""The IM server that the service is a contact of."""

from typing import Annotated
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from workers.settings.part import Part, Seconds


class ImSettings(Part):
    """Instant messages."""

    im_url: str | None = None
    """WebSocket of an IM server, such as `ws://localhost:8000`; unset: no IM. The secret `IM_TOKEN`, if set, is sent as a bearer."""

    im_contact_id: Annotated[str, Field(min_length=1, max_length=200)] = "tool_agent"
    """Name by which others write to the service there."""

    im_answers_at_once: Annotated[int, Field(ge=1, le=1_000)] = 16
    """The most IM messages that are answered at the same time."""

    im_windows: Annotated[int, Field(ge=1, le=100_000)] = 1_000
    """Windows that are kept open: they get messages that name no window. Others are opened when they are named."""

    im_max_frame_bytes: Annotated[int, Field(ge=1_024, le=16_777_216)] = 262_144
    """Bytes that a message of the IM server may have; a larger one ends the connection."""

    im_heartbeat_s: Seconds = 20.0
    """Seconds between pings to the IM server; without an answer for as long the connection counts as lost."""

    @field_validator("im_url")
    @classmethod
    def _check_url(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value)
        if parts.scheme not in {"ws", "wss"} or not parts.hostname or parts.fragment:
            raise ValueError(f"{value!r} is no WebSocket URL; it begins with ws:// or wss:// and names a host")
        if parts.username is not None or parts.password is not None:
            raise ValueError("a user or password has no place in it; set the secret IM_TOKEN (TOOL_AGENT_SECRET_IM_TOKEN)")
        return value
