"""Paths with any characters in their parts, also slashes.

They are matched percent-encoded, as sent.
"""

from typing import Annotated
from urllib.parse import unquote

from fastapi import Depends, Path
from pydantic import TypeAdapter, ValidationError
from starlette.routing import Match
from starlette.types import Scope

from api.errors import bad_field
from api.forms import message_of
from api.reading.strict_json import StrictRoute
from toolagent.contracts.chats import ChatId

_CHAT_ID: TypeAdapter[str] = TypeAdapter(ChatId)


class EncodedRoute(StrictRoute):
    """Matches the parameters of its path encoded. Handlers decode them."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        encoded = {**scope, "path": scope["raw_path"].decode("ascii", "replace")} if self.param_convertors else scope
        return super().matches(encoded)


async def _decoded(chat_id: Annotated[str, Path(description="Percent-encoded, slashes too: `a/b` is `a%2Fb`.")]) -> str:
    """Raises Refusal for an invalid id of a chat."""
    try:
        return _CHAT_ID.validate_python(unquote(chat_id, errors="strict"))
    except UnicodeDecodeError as error:
        raise bad_field("chat_id", "It must be percent-encoded UTF-8.") from error
    except ValidationError as error:
        raise bad_field("chat_id", message_of(error.errors()[0])) from error


ChatInPath = Annotated[str, Depends(_decoded)]
