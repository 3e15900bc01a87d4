"""Logins at servers that we run."""

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
"""Headers that the service sets itself."""


class Login(Contract):
    """A login that a server of ours requires with each call: the value of one of its environment variables."""

    variable: EnvironmentName
    """A name in `environment`. Its value should be the name of a secret."""
    place: Literal["header", "query", "cookie"] = "header"
    name: Annotated[str, Field(min_length=1, max_length=100)] = "Authorization"
    """The name of the header, the query field or the cookie."""
    scheme: Annotated[str, Field(max_length=40)] = ""
    """Precedes the value in a header. `Basic` encodes the value, which is then `user:password`."""

    @model_validator(mode="after")
    def _can_be_sent(self) -> Self:
        if self.place != "query" and not re.fullmatch(HEADER_NAME, self.name):
            raise ValueError(f"`name` of a login in a {self.place} is made of letters, digits and !#$%&'*+.^_`|~-")
        if self.place == "header" and self.name.lower() in _NO_LOGINS:
            raise ValueError(f"a login cannot use the header {self.name!r}, which has another meaning")
        return self
