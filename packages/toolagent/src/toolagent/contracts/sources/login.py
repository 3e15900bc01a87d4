"""What a server that we run is shown with each call."""

import re
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from toolagent.contracts.contract import Contract
from toolagent.contracts.identifiers import HEADER_NAME, EnvironmentName

__all__ = ["Login"]

_NO_LOGINS = frozenset(
    {"accept", "accept-encoding", "connection", "content-length", "content-type", "cookie", "expect", "host", "idempotency-key", "te",
     "trailer", "transfer-encoding", "upgrade", "x-output-dir"}
)  # fmt: skip
"""What a request says by them is ours to say."""


class Login(Contract):
    """What a server that we run wants to be shown with each call: the value of one of the variables that it runs with."""

    variable: EnvironmentName
    """A name in `environment`; its value is best the name of a secret."""
    place: Literal["header", "query", "cookie"] = "header"
    name: Annotated[str, Field(min_length=1, max_length=100)] = "Authorization"
    """Of the header, the field of the query, or the cookie."""
    scheme: Annotated[str, Field(max_length=40)] = ""
    """Written before the value in a header; `Basic` encodes it, which is then `user:password`."""

    @model_validator(mode="after")
    def _can_be_sent(self) -> Self:
        if self.place != "query" and not re.fullmatch(HEADER_NAME, self.name):
            raise ValueError(f"`name` of a login in a {self.place} is made of letters, digits and !#$%&'*+.^_`|~-")
        if self.place == "header" and self.name.lower() in _NO_LOGINS:
            raise ValueError(f"a login cannot be shown in the header {self.name!r}, which says something else")
        return self
