"""Search attributes are registered at start; only the one that we can do without may be missing."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import cast

import pytest
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest, ListSearchAttributesResponse
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from toolagent.client import names
from workers.failures import CannotRun
from workers.temporal.connection import register_search_attributes, shows_outcomes

NEEDED = tuple(key.name for key in names.SEARCH_ATTRIBUTES if key is not names.OUTCOME)


@dataclass
class Server:
    """A Temporal server whose operator lets nobody add attributes."""

    known: tuple[str, ...]
    asked: list[set[str]] = field(default_factory=list[set[str]])

    async def list_search_attributes(self, _request: ListSearchAttributesRequest) -> ListSearchAttributesResponse:
        return ListSearchAttributesResponse(custom_attributes=dict.fromkeys(self.known, IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD))

    async def add_search_attributes(self, request: AddSearchAttributesRequest) -> None:
        self.asked.append(set(request.search_attributes))
        raise RPCError("No.", RPCStatusCode.PERMISSION_DENIED, b"")


def client_of(server: Server) -> Client:
    return cast("Client", SimpleNamespace(operator_service=server, namespace="default"))


async def test_without_the_outcome_everything_else_works() -> None:
    server = Server(NEEDED)
    assert "No." in await register_search_attributes(client_of(server))
    assert server.asked == [{names.OUTCOME.name}]
    assert not await shows_outcomes(client_of(server))


async def test_where_it_is_registered_outcomes_are_shown() -> None:
    server = Server((*NEEDED, names.OUTCOME.name))
    assert await register_search_attributes(client_of(server)) == ""
    assert server.asked == []
    assert await shows_outcomes(client_of(server))


async def test_any_other_one_is_needed() -> None:
    with pytest.raises(CannotRun, match="ToolId"):
        await register_search_attributes(client_of(Server((*NEEDED[1:], names.OUTCOME.name))))
