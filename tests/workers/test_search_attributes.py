"""Search attributes are registered at the start; only the optional one may be missing."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import AddSearchAttributesRequest, ListSearchAttributesRequest, ListSearchAttributesResponse
from temporalio.client import Client
from temporalio.service import RPCError, RPCStatusCode

from tests.system.temporal_server import TemporalServer
from toolagent.client import names
from workers.failures import CannotRun
from workers.temporal.connection import connect, register_search_attributes, set_retention, shows_outcomes

NEEDED = tuple(key.name for key in names.SEARCH_ATTRIBUTES if key is not names.OUTCOME)


@dataclass
class Server:
    """A Temporal server that refuses new attributes."""

    known: tuple[str, ...]
    asked: list[set[str]] = field(default_factory=list[set[str]])

    async def list_search_attributes(self, _request: ListSearchAttributesRequest, **_options: bool) -> ListSearchAttributesResponse:
        return ListSearchAttributesResponse(custom_attributes=dict.fromkeys(self.known, IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD))

    async def add_search_attributes(self, request: AddSearchAttributesRequest, **_options: bool) -> None:
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


async def test_a_server_that_ends_while_the_service_starts_is_waited_for(tmp_path: Path) -> None:
    server = TemporalServer(tmp_path)
    server.start()
    try:
        client = await connect(server.address, "default", sandbox=False, patience_s=60)
        for ask in (register_search_attributes(client), set_retention(client, 24), shows_outcomes(client)):
            await asyncio.to_thread(server.kill)
            asking = asyncio.create_task(ask)
            await asyncio.wait((asking,), timeout=0.5)
            server.start()
            await asking
    finally:
        server.kill()
