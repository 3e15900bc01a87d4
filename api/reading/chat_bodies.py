"""Bodies of requests about conversations."""

from typing import Annotated

from pydantic import Field

from api.forms import SOMETHING
from api.json_object import JsonObject
from api.reading.bodies import strict
from toolagent.contracts.chats import ChatId
from toolagent.contracts.contract import Contract


class ChatBody(Contract):
    """A message. With `stream`, the answer comes as server-sent events while it is written."""

    model_config = strict(
        {"message": "有哪些图片处理工具?", "chat_id": "user_A_window_1"},
        {"message": "I need a tool that counts the words of a text.", "chat_id": "user_A_window_1", "stream": True},
    )

    message: Annotated[str, Field(min_length=1, pattern=SOMETHING)]
    chat_id: Annotated[ChatId, Field(description="Chosen by the client: 1 to 200 characters, no control characters.")]
    stream: bool = False


class ImUseBody(Contract):
    """The arguments of a function, as a model gives them."""

    model_config = strict({"arguments": {"chat_id": "user_A_window_1", "content": "The tool is there."}})

    arguments: JsonObject = {}
