"""The conformance suite of model providers."""

import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from engine.roles.conformance import CHECKS, Situation, Subject
from engine.roles.provider import ModelFailure, ModelRefused, RefusedKind
from engine.roles.provider_options import ProviderOptions
from engine.roles.providers import PROVIDERS
from tests.roles.scripted import KEY, scenario
from toolagent.testing.servers.model_server import ModelServer
from toolagent_service.contracts.model import Message, ModelRequest, Text


@pytest.fixture
def absent() -> Iterator[str]:
    """The address of a port that is reserved, and on which nothing listens."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{held.getsockname()[1]}"


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with ModelServer(scenario()) as server:
        yield server


def _asked(server: ModelServer, situation: Situation) -> int:
    return sum(turn.asked for turn in server.turns() if turn.conversation == situation.name)


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("name", PROVIDERS)
async def test_every_provider_keeps_the_protocol(name: str, check: str, server: ModelServer, absent: str) -> None:
    server.script.forget()
    await CHECKS[check](Subject(PROVIDERS[name], server.url, KEY, absent, lambda situation: _asked(server, situation)))


@pytest.mark.parametrize("name", PROVIDERS)
def test_a_provider_has_the_name_it_is_chosen_by(name: str) -> None:
    assert PROVIDERS[name](ProviderOptions(model="m")).name == name


@pytest.mark.parametrize("name", PROVIDERS)
def test_no_option_shows_the_key(name: str) -> None:
    options = ProviderOptions(model="m", api_key=KEY)
    assert KEY not in repr(options)
    assert KEY not in repr(PROVIDERS[name](options))
    assert ModelRefused(RefusedKind.NO_KEY, "x").kind is RefusedKind.NO_KEY


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("https://me:pass@host:8/v?key=abc#f", "https://host:8/v"),
        ("https://me:pa@ss/w@host", "https://host"),
        ("me:pass@host", "host"),
        ("http://127.0.0.1:1", "http://127.0.0.1:1"),
        (None, ""),
    ],
)
def test_of_an_endpoint_nothing_is_told_that_may_be_secret(given: str | None, told: str) -> None:
    options = ProviderOptions(model="m", base_url=given)
    assert options.endpoint == told
    assert f"base_url={told!r}" in repr(options)


async def test_who_cannot_be_reached_is_told_without_its_password(absent: str) -> None:
    provider = PROVIDERS["anthropic"](ProviderOptions("m", "k", f"{absent.replace('//', '//me:hidden@')}/v?key=hidden"))
    request = ModelRequest(system="", messages=(Message(role="user", content=(Text(text="x"),)),), max_tokens=9)
    with pytest.raises(ModelFailure) as failure:
        await provider.ask(request, lambda _: None)
    assert (absent in str(failure.value), "hidden" in str(failure.value)) == (True, False)


def test_a_service_that_asks_no_model_loads_no_client() -> None:
    script = "import sys, engine.roles.providers; print(*{name.partition('.')[0] for name in sys.modules})"
    ran = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert {"anthropic", "httpx2"}.intersection(ran.stdout.split()) == set()
