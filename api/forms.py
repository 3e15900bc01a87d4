"""Messages about wrong fields of a request, in the words of JSON instead of Python and regular expressions."""

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import AwareDatetime, BeforeValidator
from pydantic_core import ErrorDetails

from toolagent.contracts.chats import CHAT_ID_PATTERN
from toolagent.contracts.external_tables import TABLE_PATTERN
from toolagent.contracts.identifiers import CALL_ID_PATTERN, ENVIRONMENT_NAME, HEADER_NAME, TOOL_ID_PATTERN
from toolagent.contracts.mcp_servers import PREFIX_PATTERN, SERVER_NAME_PATTERN
from toolagent.contracts.task_specs import TASK_ID_PATTERN

NO_CONTROLS = r"^[^\x00-\x1f\x7f]*$"
NO_NUL = r"^[^\x00]*$"
SOMETHING = r"^[^\x00]*[^\s\x00][^\x00]*$"
INPUT_HASH = r"^[0-9a-f]{64}$"

FORMS: Mapping[str, str] = {
    NO_CONTROLS: "It must hold no control characters, such as line breaks.",
    NO_NUL: "It must hold no NUL character.",
    SOMETHING: "It must say something, and hold no NUL character.",
    INPUT_HASH: "It must be the `input` of a quarantined one, as GET /tools/{tool_id}/quarantine shows it: 64 hex digits.",
    TOOL_ID_PATTERN: "It must be the id of a tool, such as word_counter or acme:word_counter: small letters, digits, _ and -, beginning "
    "with a letter.",
    TABLE_PATTERN: "It must be small letters and digits, beginning with a letter, with single _ between them.",
    SERVER_NAME_PATTERN: "It must be small letters, digits, _ and -, beginning with a letter.",
    PREFIX_PATTERN: "It must be empty, or small letters, digits, _ and -, beginning with a letter.",
    ENVIRONMENT_NAME: "A variable's name is letters, digits and _, not beginning with a digit.",
    HEADER_NAME: "A header's name is at most 100 letters, digits and signs of !#$%&'*+.^_`|~-.",
    CALL_ID_PATTERN: "It must be the id of a call: call- and 8 to 80 letters, digits, _ and -.",
    CHAT_ID_PATTERN: "It must be 1 to 200 characters, none of them a control character.",
    TASK_ID_PATTERN: "It must be the id of a task, such as create_a1b2c3d4: create_ or repair_, and eight hex digits.",
}
"""The message for each pattern of a field."""

_MESSAGES: Mapping[str, str] = {
    "extra_forbidden": "There is no such field.",
    "tuple_type": "It must be a list.",
    "dict_type": "It must be an object.",
    "model_type": "It must be an object.",
    "model_attributes_type": "It must be an object.",
    "too_short": "There must be at least {min_length} of them, not {actual_length}.",
    "too_long": "There must be at most {max_length} of them, not {actual_length}.",
}


def _written_out(value: object) -> object:
    """Refuses numbers, which pydantic would read as seconds since 1970."""
    if isinstance(value, str) and re.match(r"\d{4}-\d\d-\d\d[Tt ]", value, re.ASCII) is None:
        raise ValueError("It must be a date and time with its zone, such as 2026-03-26T10:30:00Z.")
    return value


Moment = Annotated[AwareDatetime, BeforeValidator(_written_out)]
"""A date and time of RFC 3339."""


def message_of(error: ErrorDetails) -> str:
    context = error.get("ctx", {})
    if error["type"] == "string_pattern_mismatch":
        return FORMS.get(str(context.get("pattern")), "It is not of the right form.")
    text = _MESSAGES.get(error["type"])
    return error["msg"].removeprefix("Value error, ") if text is None else text.format(**context)
