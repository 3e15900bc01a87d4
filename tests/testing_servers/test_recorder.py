"""A recorded session plays the same answers."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from anthropic import APIConnectionError, AuthenticationError, RateLimitError
from anthropic.types import Message, MessageParam

from tests.testing_servers.conversations import KEY, MODEL, At, ask, ask_streamed, client_of, outcome, said, scenario, user, uses
from toolagent.testing.servers.model_server import ModelServer
from toolagent.testing.servers.recorder import Recorder
from toolagent.testing.servers.recording import Recording
from toolagent.testing.servers.requests import MessagesRequest
from toolagent.testing.servers.scenario import Fault, FaultKind, Scenario, load_scenario

SESSION = """
name: real
turns:
  - text: |
      I make a container first.
      Then 看.
    tool_use:
      - {name: make, input: {image: "python:3.12", code: "a = 1\\nb = '{{x}}'\\n"}}
      - {name: look}
    usage: {input_tokens: 10, output_tokens: 20, cache_creation_input_tokens: 30, cache_read_input_tokens: 40}
  - content:
      - {type: thinking, thinking: hm, signature: c2ln}
      - {type: tool_use, name: run, input: {container_id: "{{ last_results.0.container_id }}", ports: ["{{ last_results.0.ports.0 }}"]}}
      - {type: text, text: running}
    usage: {input_tokens: 5, output_tokens: 6}
  - {text: done, stop_reason: max_tokens, usage: {input_tokens: 1, output_tokens: 1}}
"""


@asynccontextmanager
async def recorder_of(script: Scenario, file: Path, *, keep_pace: bool = False) -> AsyncGenerator[Recorder]:
    """A recorder of a model that follows the script."""
    async with ModelServer(script) as real, Recorder(real.url, file, keep_pace=keep_pace) as recorder:
        yield recorder


async def session(url: str, container: str, streamed: bool, opening: str = "build it") -> list[Message]:
    """Plays all three turns; the tools of the first create a container of that name."""
    asked: list[MessageParam] = [user(opening)]
    answers: list[Message] = []
    async with client_of(url) as client:
        for _ in range(3):
            if streamed:
                async with client.messages.stream(model=MODEL, max_tokens=50, messages=asked) as stream:
                    message: Message = await stream.get_final_message()
            else:
                message = await client.messages.create(model=MODEL, max_tokens=50, messages=asked)
            answers.append(message)
            made = f'{{"container_id": "{container}", "ports": [{len(container)}, "free-{container}"]}}'
            results = [outcome(use, made if use.name == "make" else "seen") for use in uses(message.content)]
            asked += [said(message), user(*results, *(() if results else ("go on",)))]
    return answers


def essence(message: Message) -> object:
    """Everything but the ids of this answer."""
    blocks = [block.model_dump(exclude={"id"}, exclude_none=True) for block in message.content]
    return blocks, message.stop_reason, message.stop_sequence, message.model, message.usage


@pytest.mark.parametrize("streamed", [True, False])
async def test_a_session_that_is_recorded_and_played_is_the_same(streamed: bool, tmp_path: Path) -> None:
    file = tmp_path / "recorded.yaml"
    async with recorder_of(scenario(SESSION), file) as recorder:
        recorded = await session(recorder.url, "container-1", streamed)
    async with ModelServer(file) as again:
        played = await session(again.url, "container-1", not streamed)
    assert [essence(message) for message in played] == [essence(message) for message in recorded]


async def test_what_a_tool_made_up_is_referred_to(tmp_path: Path) -> None:
    file = tmp_path / "recorded.yaml"
    async with recorder_of(scenario(SESSION), file) as recorder:
        await session(recorder.url, "container-1", True)
    async with ModelServer(file) as again:
        played = await session(again.url, "container-2", True)
    (use,) = uses(played[1].content)
    # What is no text, or too short, is as it was recorded.
    assert use.input == {"container_id": "container-2", "ports": [len("container-1")]}
    assert "container-1" not in file.read_text("utf-8")


async def test_what_the_model_had_said_before_is_not_referred_to(tmp_path: Path) -> None:
    file = tmp_path / "recorded.yaml"
    script = scenario("turns: [{tool_use: {name: make, input: {name: slugger}}}, {tool_use: {name: run, input: {name: slugger}}}]")
    async with recorder_of(script, file) as recorder:
        first = await ask(At(recorder.url), user("hi"))
        result = outcome(uses(first.content)[0], '{"name": "slugger"}')
        await ask(At(recorder.url), user("hi"), said(first), user(result))
    assert [turn.tool_use[0].input for turn in load_scenario(file).turns] == [{"name": "slugger"}, {"name": "slugger"}]


async def test_the_recording_is_readable_and_has_no_key(tmp_path: Path) -> None:
    file = tmp_path / "recorded.yaml"
    leaky = f"turns: [{{text: 'your key is {KEY}, I believe'}}]"
    async with recorder_of(scenario(leaky), file) as recorder:
        await ask(At(recorder.url), user("hi"))
    text = file.read_text("utf-8")
    assert KEY not in text
    assert "your key is (hidden), I believe" in text


@pytest.mark.parametrize("key", ["name", "x", "turns"])
def test_a_key_that_is_hardly_one_does_not_spoil_the_recording(key: str) -> None:
    recording = Recording("recorded")
    recording.hide(key)
    request = MessagesRequest.model_validate({"model": MODEL, "max_tokens": 1, "messages": [user("hi")]})
    recording.answered(request, {"content": [{"type": "text", "text": "next"}], "stop_reason": "end_turn"})
    assert [turn.text for turn in scenario(recording.text()).turns] == ["next"]


async def test_text_of_several_lines_is_written_as_such(tmp_path: Path) -> None:
    file = tmp_path / "recorded.yaml"
    async with recorder_of(scenario(SESSION), file) as recorder:
        await session(recorder.url, "container-1", True)
    assert "- text: |\n    I make a container first.\n    Then 看.\n" in file.read_text("utf-8")


async def test_a_turn_that_is_asked_for_again_is_recorded_once(tmp_path: Path) -> None:
    file = tmp_path / "recorded.yaml"
    async with recorder_of(scenario("turns: [{text: one}]"), file) as recorder:
        for _ in range(3):
            await ask(At(recorder.url), user("hi"))
    assert [turn.text for turn in load_scenario(file).turns] == ["one"]


async def test_two_conversations_are_told_apart_by_a_line_of_their_own(tmp_path: Path) -> None:
    file = tmp_path / "recorded.yaml"
    both = "conversations: [{name: a, when: slugs, turns: [{text: slugging}]}, {name: b, when: dates, turns: [{text: dating}]}]"
    async with recorder_of(scenario(both), file) as recorder:
        await ask(At(recorder.url), user("You build tools.\nMake slugs.\nBe quick."))
        await ask(At(recorder.url), user("You build tools.\nMake dates.\nBe quick."))
    assert [one.when for one in load_scenario(file).conversations] == ["Make slugs.", "Make dates."]
    async with ModelServer(file) as again:
        dating = await ask(again, user("You build tools.\nMake dates.\nBe slow."))
    assert dating.content[0].type == "text"
    assert dating.content[0].text == "dating"


async def test_faults_are_recorded_and_come_again(tmp_path: Path) -> None:
    file = tmp_path / "recorded.yaml"
    script = scenario("turns: [{text: one two three, fault: [{kind: rate_limit, retry_after: 2, times: 2}, cut]}]")

    async def play(url: str) -> None:
        for error in (RateLimitError, RateLimitError, APIConnectionError):
            with pytest.raises(error):
                await ask(At(url), user("hi"))
        await ask(At(url), user("hi"))

    async with recorder_of(script, file) as recorder:
        await play(recorder.url)
    assert load_scenario(file).turns[0].fault == script.turns[0].fault
    async with ModelServer(file) as again:
        await play(again.url)


async def test_a_stream_without_an_end_is_recorded_as_cut(tmp_path: Path) -> None:
    file = tmp_path / "recorded.yaml"
    async with recorder_of(scenario("turns: [{text: one, fault: [ended_early, malformed]}]"), file) as recorder:
        assert (await ask_streamed(At(recorder.url), user("hi"))).stop_reason is None
        with pytest.raises(ValueError, match="Unterminated"):
            await ask_streamed(At(recorder.url), user("hi"))
        await ask_streamed(At(recorder.url), user("hi"))
    (turn,) = load_scenario(file).turns
    assert (turn.text, turn.fault) == ("one", (Fault(kind=FaultKind.CUT, times=2),))


async def test_an_error_passes_through_as_it_is(tmp_path: Path) -> None:
    keyed = scenario("{key: right, turns: [{text: one}]}")
    async with recorder_of(keyed, tmp_path / "recorded.yaml") as recorder:
        with pytest.raises(AuthenticationError) as refused:
            await ask(At(recorder.url), user("hi"), key="wrong")
        async with client_of(recorder.url, "right") as client:
            assert (await client.messages.count_tokens(model=MODEL, messages=[user("hi")])).input_tokens > 0
            assert [model.id async for model in client.models.list()] == [MODEL]
    assert refused.value.request_id is not None


async def test_an_endpoint_that_is_not_there_is_named(tmp_path: Path) -> None:
    async with ModelServer(scenario("turns: [{text: one}]")) as gone:
        url = gone.url
    async with Recorder(url, tmp_path / "recorded.yaml") as recorder:
        with pytest.raises(Exception, match=f"{url} cannot be reached"):
            await ask(At(recorder.url), user("hi"))


@pytest.mark.parametrize(("keep_pace", "taken"), [(True, 0.2), (False, None)])
async def test_the_pace_is_kept_only_when_it_is_wanted(keep_pace: bool, taken: float | None, tmp_path: Path) -> None:
    file = tmp_path / "recorded.yaml"
    script: Scenario = scenario("turns: [{text: one, seconds: 0.2}]")
    async with recorder_of(script, file, keep_pace=keep_pace) as recorder:
        await ask(At(recorder.url), user("hi"))
    seconds = load_scenario(file).turns[0].seconds
    assert (seconds is None) if taken is None else (seconds is not None and taken <= seconds < 5)
