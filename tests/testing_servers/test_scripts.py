"""Which turn answers a request, what it takes from the conversation, and what is counted."""

import asyncio

import httpx
import pytest
from anthropic import BadRequestError
from anthropic.types import Message, MessageParam

from activities.use_tool import shown
from tests.testing_servers.conversations import MODEL, ask, ask_streamed, client_of, counts, outcome, said, scenario, user, uses
from toolagent.testing.servers.model_server import ModelServer, UnexpectedRequestError


async def turn_after(server: ModelServer, content: str, is_error: bool = False, system: str = "", *more: str) -> Message:
    """The second turn, after a use with this outcome."""
    first = await ask(server, user("hi"))
    result = user(outcome(uses(first.content)[0], content, is_error), *more)
    async with client_of(server.url) as client:
        return await client.messages.create(model=MODEL, max_tokens=5, system=system, messages=[user("hi"), said(first), result])


async def go_beyond_the_end(then: Exception | None = None) -> None:
    async with ModelServer(scenario("turns: [{text: one}]")) as server:
        with pytest.raises(BadRequestError):
            await ask(server, user("hi"), {"role": "assistant", "content": "one"}, user("go on"))
        if then is not None:
            raise then


def second(turn: str) -> str:
    return f"turns: [{{tool_use: {{name: look, input: {{at: sky}}}}}}, {{{turn}}}]"


def text_of(message: Message) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


async def test_a_request_that_is_sent_again_is_given_the_same_turn() -> None:
    async with ModelServer(scenario("turns: [{text: one}, {text: two}, {text: three}]")) as server:
        asked: list[MessageParam] = [user("hi")]
        for expected in ("one", "two", "three"):
            first, again = await ask(server, *asked), await ask_streamed(server, *asked)
            assert (text_of(first), text_of(again)) == (expected, expected)
            asked += [said(first), user("go on")]
        assert counts(server) == [(1, 2, 2), (2, 2, 2), (3, 2, 2)]


async def test_many_at_once_are_each_given_their_turn() -> None:
    async with ModelServer(scenario("{seconds: 0.05, turns: [{text: one}, {text: two}]}")) as server:
        longer = (user("hi"), said(await ask(server, user("hi"))), user("go on"))
        answers = await asyncio.gather(*(ask_streamed(server, *(longer if place % 2 else longer[:1])) for place in range(20)))
        assert [text_of(one) for one in answers] == ["one", "two"] * 10
        assert counts(server) == [(1, 11, 11), (2, 10, 10)]


async def test_a_conversation_that_is_over_says_so() -> None:
    async with ModelServer(scenario("{name: short, turns: [{text: one}]}"), strict=False) as server:
        with pytest.raises(BadRequestError, match="turn 2 was asked for, but there are only 1"):
            await ask(server, user("hi"), {"role": "assistant", "content": "one"}, user("go on"))
        (unmet,) = server.unmet()
    assert "Scenario 'short'" in unmet


async def test_what_nobody_expected_is_said_at_the_end_too() -> None:
    with pytest.raises(UnexpectedRequestError, match="only 1"):
        await go_beyond_the_end()


async def test_a_test_that_fails_by_itself_keeps_its_own_reason() -> None:
    with pytest.raises(ZeroDivisionError):
        await go_beyond_the_end(ZeroDivisionError())


async def test_each_conversation_is_chosen_by_what_the_first_message_holds() -> None:
    script = scenario("""
    conversations:
      - {name: slugs, when: make slugs, turns: [{text: slugging}, {text: slugged}]}
      - {name: dates, when: make dates, turns: [{text: dating}]}
    """)
    async with ModelServer(script, strict=False) as server:
        slug = await ask(server, user("Please", "make slugs, not dates"))
        date = await ask(server, user("please make dates"))
        assert (text_of(slug), text_of(date)) == ("slugging", "dating")
        assert [(one.conversation, one.turn, one.served) for one in server.turns()] == [("slugs", 1, 1), ("slugs", 2, 0), ("dates", 1, 1)]
        with pytest.raises(BadRequestError, match=r"no conversation fits.*make slugs.*knit socks"):
            await ask(server, user("knit socks"))


async def test_the_last_conversation_may_take_all_others() -> None:
    script = scenario("conversations: [{name: a, when: make slugs, turns: [{text: one}]}, {name: b, turns: [{text: other}]}]")
    async with ModelServer(script) as server:
        assert text_of(await ask(server, user("knit socks"))) == "other"


async def test_a_turn_may_be_repeated_and_say_which_it_is() -> None:
    script = scenario("turns: [{tool_use: {name: look, input: {at: 'part {{ turn }}', number: '{{turn}}'}}, repeat: 3}, {text: done}]")
    asked: list[MessageParam] = [user("hi")]
    inputs: list[object] = []
    async with ModelServer(script) as server:
        while uses((message := await ask(server, *asked)).content):
            (use,) = uses(message.content)
            inputs.append(use.input)
            asked += [said(message), user(outcome(use, "seen"))]
        assert counts(server) == [(1, 1, 1), (2, 1, 1), (3, 1, 1), (4, 1, 1)]
    assert inputs == [{"at": f"part {number}", "number": number} for number in (1, 2, 3)]


async def test_a_turn_may_be_repeated_forever() -> None:
    async with ModelServer(scenario("turns: [{text: again, repeat: forever}]")) as server:
        answered: MessageParam = {"role": "assistant", "content": "again"}
        await ask(server, user("hi"), *([answered, user("go on")] * 300))
        assert counts(server) == [(301, 1, 1)]


@pytest.mark.parametrize(
    ("reference", "content", "expected"),
    [
        ("{{ last_result.container_id }}", '{"container_id": "c0ffee"}', "c0ffee"),
        ("{{last_result.list.1.port}}", '{"list": [{"port": 1}, {"port": 8080}]}', 8080),
        ("{{ last_result.made }}", '{"made": {"a": [1]}}', {"a": [1]}),
        ("{{ last_result }}", "no JSON at all", "no JSON at all"),
        ("{{ results.look.id }}", '{"id": null}', None),
        ("{{ last_results.0.id }}", '{"id": true}', True),
        ("at {{ last_result.host }}:{{ last_result.port }}", '{"host": "here", "port": 80}', "at here:80"),
        ("{{ last_result.container_id }}", shown({"container_id": "123456789012", "port_mapping": {"80": 9001}}), "123456789012"),
        ("{{ last_result.port_mapping.80 }}", shown({"container_id": "c0ffee", "port_mapping": {"80": 9001}}), 9001),
        ("{{ last_result.stdout }}", shown({"exit_code": 0, "stdout": "one\ntwo"}), "one\ntwo"),
        ("{{ user.name }} {{name}} {%x%} {{ last_resort }}", "{}", "{{ user.name }} {{name}} {%x%} {{ last_resort }}"),
    ],
)
async def test_a_turn_takes_values_from_the_latest_result(reference: str, content: str, expected: object) -> None:
    async with ModelServer(scenario(second(f"tool_use: {{name: look, input: {{value: ['{reference}']}}}}"))) as server:
        (use,) = uses((await turn_after(server, content)).content)
    assert use.input == {"value": [expected]}


async def test_text_takes_values_too() -> None:
    async with ModelServer(scenario(second("text: 'It is {{ last_result.at }}, all of {{ last_result }}.'"))) as server:
        assert text_of(await turn_after(server, '{"at": "sky"}')) == 'It is sky, all of {"at": "sky"}.'


async def test_an_earlier_result_is_found_by_its_tool() -> None:
    script = scenario("""
    turns:
      - tool_use: [{name: make, input: {}}, {name: look, input: {}}]
      - tool_use: {name: look, input: {}}
      - tool_use: {name: stop, input: {id: "{{ results.make.id }}", seen: "{{ results.look }}"}}
    """)
    async with ModelServer(script) as server:
        asked: list[MessageParam] = [user("hi")]
        first = await ask(server, *asked)
        made, looked = uses(first.content)
        asked += [said(first), user(outcome(made, '{"id": "made-1"}'), outcome(looked, "first"))]
        then = await ask(server, *asked)
        asked += [said(then), user(outcome(uses(then.content)[0], "second"))]
        (stop,) = uses((await ask(server, *asked)).content)
    assert stop.input == {"id": "made-1", "seen": "second"}


async def test_a_reference_that_leads_nowhere_says_what_there_is() -> None:
    async with ModelServer(scenario(second("text: 'It is {{ last_result.container_id }}.'")), strict=False) as server:
        with pytest.raises(BadRequestError, match=r"turn 2: .*last_result\.container_id.* no 'container_id' in an object with 'error'"):
            await turn_after(server, '{"error": "no engine"}')
        with pytest.raises(BadRequestError, match="the text 'oh no', which is not JSON"):
            await turn_after(server, "oh no")


MET = [
    ("last_result: found", "it was found here"),
    ("last_result: [it, found]", "it was found"),
    ("last_result_json: {state: {ok: true}}", '{"state": {"ok": true, "more": 1}}'),
    ("is_error: true", "bad"),
    ("system: be kind", "x"),
    ("user: hurry up", "x"),
    ("nowhere: withheld", "x"),
]


@pytest.mark.parametrize(("expect", "content"), MET)
async def test_what_is_expected_may_come(expect: str, content: str) -> None:
    async with ModelServer(scenario(second(f"text: fine, expect: {{{expect}}}"))) as server:
        message = await turn_after(server, content, content == "bad", "Always be kind.", "Please hurry up.")
    assert text_of(message) == "fine"


@pytest.mark.parametrize(
    ("expect", "content", "said_to_be"),
    [
        ("last_result: found", "lost", "expected 'found' in the latest tool result; it was 'lost'"),
        ("last_result: [lost, found]", "lost", "expected 'found'"),
        (
            "last_result_json: {state: {ok: true}}",
            '{"state": {"ok": 1}}',
            "expected true at $.state.ok of the latest tool result; there was 1",
        ),
        ("last_result_json: {a: 1}", "no JSON", 'expected {"a": 1} at $ of the latest tool result; there was "no JSON"'),
        ("is_error: false", "bad", "expected no error as the latest tool result; it was error 'bad'"),
        ("is_error: true", "good", "expected an error as the latest tool result; it was 'good'"),
        ("system: be rude", "x", "expected 'be rude' in the system prompt; it was 'Always be kind.'"),
        ("user: slow down", "x", "expected 'slow down' in the last user message; it was 'Please hurry up.'"),
        ("tools: [fly]", "x", "expected the tool 'fly' to be offered; there are []"),
        ("nowhere: withheld", "the withheld one", "expected 'withheld' nowhere in the request; it is in"),
        ("nowhere: 'say \"no\"'", 'they say "no"', "expected 'say \"no\"' nowhere in the request"),
    ],
)
async def test_what_is_not_expected_is_refused_and_said(expect: str, content: str, said_to_be: str) -> None:
    async with ModelServer(scenario(second(f"text: fine, expect: {{{expect}}}")), strict=False) as server:
        with pytest.raises(BadRequestError) as refused:
            await turn_after(server, content, content == "bad", "Always be kind.", "Please hurry up.")
        assert f"turn 2: {said_to_be}" in str(refused.value.api_message)
        assert len(server.unmet()) == 1
        assert counts(server) == [(1, 1, 1), (2, 1, 0)]


@pytest.mark.parametrize(
    "text",
    [
        "{expect: {nowhere: withheld}, turns: [{text: one}, {text: two}]}",
        "conversations: [{expect: {nowhere: withheld}, turns: [{text: one}]}]",
    ],
)
async def test_what_is_expected_of_all_turns_is_expected_of_each(text: str) -> None:
    async with ModelServer(scenario(text), strict=False) as server:
        assert text_of(await ask(server, user("hi"))) == "one"
        with pytest.raises(BadRequestError, match=r"turn 1: expected .*withheld.* nowhere"):
            await ask(server, user("hi, here is the withheld one"))


async def test_counts_and_what_was_unexpected_are_told_over_http_and_can_be_forgotten() -> None:
    script = scenario("turns: [{text: one, fault: overloaded, expect: {tools: look}}]")
    async with (
        ModelServer(script, strict=False) as server,
        client_of(server.url) as client,
        httpx.AsyncClient(base_url=server.url) as plain,
    ):
        with pytest.raises(BadRequestError):
            await client.messages.create(model=MODEL, max_tokens=5, messages=[user("hi")])
        assert (await plain.get("/scripted/turns")).json() == [
            {"conversation": "conversation", "turn": 1, "asked": 1, "faults": 0, "served": 0}
        ]
        assert (await plain.get("/scripted/unmet")).json() == [*server.unmet()]
        assert server.unmet() != ()
        assert (await plain.delete("/scripted/turns")).status_code == 204
        assert counts(server) == [(1, 0, 0)]
        assert server.unmet() == ()
