"""The real client with a real model, which shows errors common to the client and the scripted model."""

from collections.abc import Generator

import pytest

from engine.roles.provider import ModelRefused, RefusedKind
from engine.roles.provider_options import ProviderOptions
from engine.roles.providers.anthropic import AnthropicProvider
from tests.roles.local_model import KEY, local_model
from toolagent_service.contracts.model import Block, Message, ModelRequest, ModelTurn, Text, ToolOffer, ToolOutcome, ToolUse

pytestmark = pytest.mark.long

OFFER = ToolOffer(
    name="read_file",
    description="Reads a file.",
    input_schema={"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)


def _conversation() -> tuple[Message, ...]:
    """Three files were read: a model of this size goes on in the same way."""
    messages: list[Message] = []
    before: tuple[Block, ...] = ()
    for name in ("a.py", "b.py", "c.py"):
        use_id = f"toolu_{name[0] * 9}"
        messages.append(Message(role="user", content=(*before, Text(text=f"Read the file {name}."))))
        messages.append(Message(role="assistant", content=(ToolUse(id=use_id, name="read_file", input={"path": name}),)))
        before = (ToolOutcome(tool_use_id=use_id, content="ok"),)
    return (*messages, Message(role="user", content=(*before, Text(text="Read the file main.py."))))


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    with local_model(tmp_path_factory.mktemp("model") / "server.log") as url:
        yield url


async def _ask(url: str, key: str | None, max_tokens: int, told: list[str] | None = None) -> ModelTurn:
    provider = AnthropicProvider(ProviderOptions(model="smollm2", api_key=key, base_url=url))
    request = ModelRequest(system="You use tools.", messages=_conversation(), tools=(OFFER,), max_tokens=max_tokens)
    try:
        return await provider.ask(request, (told if told is not None else []).append)
    finally:
        await provider.aclose()


async def test_a_real_model_uses_a_tool(url: str) -> None:
    told: list[str] = []
    turn = await _ask(url, KEY, 64, told)
    [use] = turn.content
    assert isinstance(use, ToolUse)
    assert (use.name, use.input, turn.stop_reason) == ("read_file", {"path": "main.py"}, "tool_use")
    assert turn.usage.read > 100
    assert turn.usage.output_tokens > 5
    assert told


async def test_an_answer_that_is_cut_for_its_length_says_so(url: str) -> None:
    assert (await _ask(url, KEY, 5)).stop_reason == "max_tokens"


async def test_a_wrong_key_is_refused_by_a_real_server_too(url: str) -> None:
    with pytest.raises(ModelRefused) as refusal:
        await _ask(url, "sk-wrong", 5)
    assert refusal.value.kind is RefusedKind.UNAUTHENTICATED
