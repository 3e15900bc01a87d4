"""An IM server, and fake chats."""

from collections.abc import AsyncGenerator, Generator

import pytest
import pytest_asyncio

from tests.im.people import Chats, Person, person
from toolagent.testing.servers.im_server import ImServer


@pytest.fixture
def server() -> Generator[ImServer]:
    with ImServer() as server:
        yield server


@pytest_asyncio.fixture
async def chats() -> Chats:
    return Chats()


@pytest_asyncio.fixture
async def alice(server: ImServer) -> AsyncGenerator[Person]:
    async with person(server) as alice:
        yield alice
