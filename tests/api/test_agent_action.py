"""`POST /agent/action`: the block of an agent becomes a call, and its result an observation."""

from collections.abc import Mapping

import httpx
import pytest
from defusedxml import ElementTree
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from tests.api.conftest import House
from toolagent.contracts.actions import ActionAnswer
from toolagent.contracts.calls import CallMode, ErrorType, ToolError, ToolResult, ValidationIssue
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sources import BuiltinSource
from toolagent.core.calls.results import failed, succeeded

SCRIPT = ToolManifest(
    tool_id="core:execute-python-script",
    name="Execute Python Script",
    input_schema={
        "type": "object",
        "properties": {
            "scriptPath": {"type": "string"},
            "inputData": {"type": "object", "properties": {"threshold": {"type": "number"}}},
            "timeoutMs": {"type": "integer", "minimum": 100},
            "dry": {"type": "boolean"},
            "limit": {"type": ["number", "null"]},
            "tags": {"type": "array", "items": {"type": "integer"}},
            "anything": True,
        },
        "required": ["scriptPath"],
    },
)
SPECIFIED = """<ACTION>
  <tool_id>core:execute-python-script</tool_id>
  <inputs>
    <input name="scriptPath"><![CDATA[user_scripts/data_analysis/analyzer.py]]></input>
    <input name="inputData"><![CDATA[{"data_url": "http://example.com/data.csv", "threshold": 0.75}]]></input>
    <input name="timeoutMs"><![CDATA[30000]]></input>
  </inputs>
</ACTION>"""


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """SQLite only, because the kind of database makes no difference here."""
    return sqlite_url


@pytest.fixture
async def acting(stocked: House) -> House:
    await stocked.registry.register(SCRIPT, (BuiltinSource(handler="echo"),))
    return stocked


async def ask(house: House, text: str, **headers: str) -> ActionAnswer:
    """The JSON of the observation; the status is always 200."""
    kinds = {"Content-Type": "application/xml", "Accept": "application/json"}
    answer = await house.http.post("/agent/action", content=text.encode(), headers=kinds | headers)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "application/json")
    return ActionAnswer.model_validate_json(answer.content)


async def observed(house: House, text: str) -> tuple[str, str, str]:
    answer = await ask(house, text)
    return answer.observation.tool_id, answer.observation.status, answer.observation.content


def action(inputs: Mapping[str, str], tool_id: str = "core:execute-python-script") -> str:
    listed = "".join(f'<input name="{name}">{value}</input>' for name, value in inputs.items())
    return f"<ACTION><tool_id>{tool_id}</tool_id><inputs>{listed}</inputs></ACTION>"


def params_of(house: House) -> dict[str, JsonValue]:
    (call,) = house.client.calls.values()
    return call.params


def with_script(house: House, end: ToolResult) -> House:
    house.client.script = lambda call, call_id: end.model_copy(update={"call_id": call_id, "tool_id": call.tool_id})
    return house


def error_result(error: ToolError, *issues: ValidationIssue) -> ToolResult:
    return failed("", "", error, ToolResult(status="error").executed_at, validation_errors=issues)


async def test_the_specified_example_is_called_with_its_values_typed(acting: House) -> None:
    answer = await ask(acting, SPECIFIED)
    given: dict[str, JsonValue] = {
        "scriptPath": "user_scripts/data_analysis/analyzer.py",
        "inputData": {"data_url": "http://example.com/data.csv", "threshold": 0.75},
        "timeoutMs": 30000,
    }
    assert params_of(acting) == given
    assert answer.observation.content == (
        "Tool core:execute-python-script executed successfully. Output: "
        '{"scriptPath": "user_scripts/data_analysis/analyzer.py", '
        '"inputData": {"data_url": "http://example.com/data.csv", "threshold": 0.75}, "timeoutMs": 30000}'
    )
    assert (answer.response_text, answer.call_id) == ("", next(iter(acting.client.calls)))


async def test_the_answer_is_an_observation_in_xml_unless_json_is_asked_for(acting: House) -> None:
    answer = await acting.http.post("/agent/action", content=SPECIFIED, headers={"Content-Type": "text/plain"})
    assert answer.headers["content-type"] == "application/xml"
    assert answer.headers["X-Call-Id"] == next(iter(acting.client.calls))
    root = ElementTree.fromstring(answer.content)
    assert (root.tag, [child.tag for child in root]) == ("OBSERVATION", ["tool_id", "status", "content"])
    assert (root[0].text, root[1].text) == ("core:execute-python-script", "success")


async def test_json_in_is_answered_with_json_and_keeps_the_caller(acting: House) -> None:
    body = {"text": f"Now. {SPECIFIED}", "caller": {"caller_id": "agent-1", "caller_type": "conversation_agent"}}
    answer = ActionAnswer.model_validate_json((await acting.http.post("/agent/action", json=body)).content)
    assert (answer.response_text, answer.observation.status) == ("Now.", "success")
    (call,) = acting.client.calls.values()
    assert call.caller.caller_id == "agent-1"


async def test_the_older_form_names_the_tool_and_its_parameters_by_elements(acting: House) -> None:
    answer = await ask(acting, "<ACTION><weather><city>Zürich</city><days>3</days></weather></ACTION>")
    assert (answer.observation.tool_id, answer.observation.status) == ("weather", "success")
    assert params_of(acting) == {"city": "Zürich", "days": 3}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("dry", "TRUE", True),
        ("limit", "null", None),
        ("limit", "-1.5e2", -150.0),
        ("timeoutMs", " 30000.0 ", 30000),
        ("tags", "<item>1</item><item> 2 </item>", [1, 2]),
        ("tags", "[3, 4]", [3, 4]),
        ("tags", "", []),
        ("inputData", "<threshold>0.5</threshold><other>x</other>", {"threshold": 0.5, "other": "x"}),
        ("anything", "[1, 2]", [1, 2]),
        ("anything", "00501", "00501"),
        ("anything", "NaN", "NaN"),
        ("scriptPath", "42", "42"),
        ("scriptPath", "<![CDATA[a < b && c </ACTION> ]]>", "a < b && c </ACTION> "),
        ("scriptPath", "a &lt;b&gt; &#x4e2d;", "a <b> 中"),
    ],
)
async def test_text_becomes_what_the_schema_says(acting: House, name: str, text: str, value: JsonValue) -> None:
    await ask(acting, action({name: text}))
    assert params_of(acting) == {name: value}


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("timeoutMs", "soon", "Input parameter 'timeoutMs' must be an integer."),
        ("timeoutMs", "1.5", "Input parameter 'timeoutMs' must be an integer."),
        ("timeoutMs", "9" * 5000, "Input parameter 'timeoutMs' must be an integer."),
        ("limit", "1e999", "Input parameter 'limit' must be null or a number."),
        ("dry", "maybe", "Input parameter 'dry' must be true or false."),
        ("inputData", "{broken", "Input parameter 'inputData' must be a JSON object, best in <![CDATA[…]]>."),
        ("inputData", "[" * 5000, "Input parameter 'inputData' must be a JSON object, best in <![CDATA[…]]>."),
        ("inputData", '{"a": 1e999}', "Input parameter 'inputData' must be a JSON object, best in <![CDATA[…]]>."),
        ("tags", "<item>1</item><item>two</item>", "Input parameter 'tags[1]' must be an integer."),
        ("tags", "<entry>1</entry>", "Input parameter 'tags' must be a list: <item>…</item>, or a JSON array; there are elements in it."),
        ("inputData", "<a>1</a><a>2</a>", "Input parameter 'inputData' holds an element more than once"),
        ("inputData", "x<a>1</a>", "Input parameter 'inputData' holds text and elements at once"),
    ],
)
async def test_what_does_not_fit_its_type_runs_nothing_and_names_the_parameter(acting: House, name: str, text: str, told: str) -> None:
    tool_id, status, content = await observed(acting, action({name: text}))
    assert (tool_id, status, acting.client.calls) == ("core:execute-python-script", "error", {})
    assert content.startswith(f"Tool core:execute-python-script failed. Error type: ParameterValidationError. Message: {told}")


async def test_an_unknown_tool_is_answered_with_the_nearest_ids(acting: House) -> None:
    tool_id, status, content = await observed(acting, action({}, "core:execute-pyton-script"))
    assert (tool_id, status, acting.client.calls) == ("core:execute-pyton-script", "error", {})
    assert "Error type: ToolNotFoundError." in content
    assert "Did you mean core:execute-python-script" in content


BOMB = '<!DOCTYPE a [<!ENTITY b "bbbb"><!ENTITY c "&b;&b;&b;&b;">]>'
EXTERNAL = '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]>'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "NoActionError"),
        ("Just words.", "NoActionError"),
        ("<ACTION>", "The block does not end: </ACTION> is missing."),
        ("<ACTION><![CDATA[</ACTION>", "The block does not end: a <![CDATA[ in it is not closed by ]]>."),
        ("<ACTION/>", "The block names no tool."),
        ("<ACTION></ACTION>", "The block names no tool."),
        ("<ACTION><echo/><weather/></ACTION>", "The block names several tools: echo, weather."),
        ("<ACTION>echo</ACTION>", "There is text in <ACTION> where only elements belong."),
        ("<ACTION><tool_id>echo</tool_id><why/></ACTION>", "Beside one <tool_id> and one <inputs> there must be nothing in the block."),
        ("<ACTION><tool_id>echo</tool_id><inputs><a/></inputs></ACTION>", '<inputs> holds <input name="NAME"> only; there is <a>.'),
        ("<ACTION><echo><a>1</a><a>2</a></echo></ACTION>", "Input parameter 'a' is given more than once"),
        ("<ACTION><echo><message>a & b</message></echo></ACTION>", "Values with < or & go into <![CDATA[…]]>."),
        ("<ACTION><core:echo><a>1</a></core:echo></ACTION>", "An id with `:` goes into <tool_id>."),
        ('<ACTION xmlns:core="u"><core:echo/></ACTION>', "XML namespaces have no meaning here: <echo>."),
        (f"<ACTION><echo>{'<a>' * 200}{'</a>' * 200}</echo></ACTION>", "The block may be 32 elements deep and have 10000 in all"),
        (f"<ACTION><echo>{'<a/>' * 10_001}</echo></ACTION>", "The block may be 32 elements deep and have 10000 in all"),
        (f'<?xml version="1.0"?>{BOMB}<ACTION><echo>&c;</echo></ACTION>', "A document type declaration is refused"),
        (f"{EXTERNAL}<ACTION><echo>&x;</echo></ACTION>", "A document type declaration is refused"),
        (f"<ACTION>{BOMB}<echo/></ACTION>", "The block is not XML"),
        ("<ACTION><echo>&c;</echo></ACTION>", "The block is not XML: undefined entity"),
        ("<ACTION><tool_id>\x01</tool_id></ACTION>", "The block is not XML"),
    ],
)
async def test_what_is_no_action_runs_nothing_and_says_what_is_wrong(acting: House, text: str, told: str) -> None:
    _, status, content = await observed(acting, text)
    assert (status, acting.client.calls) == ("error", {})
    assert told in content


async def test_the_first_block_counts_and_what_stands_around_it_is_kept(acting: House) -> None:
    answer = await ask(acting, f"<?xml version='1.0'?>First.\n{action({'scriptPath': 'a'})}\nThen.\n{action({'scriptPath': 'b'})}")
    assert answer.response_text == f"First.\n\nThen.\n{action({'scriptPath': 'b'})}"
    assert params_of(acting) == {"scriptPath": "a"}


async def test_of_two_actions_one_is_called_and_the_agent_is_told_so(acting: House) -> None:
    answer = await ask(acting, f"First. {action({'scriptPath': 'a.py'})} Then. {action({'scriptPath': 'b.py'})} <ACTION> in words.")
    assert [call.params for call in acting.client.calls.values()] == [{"scriptPath": "a.py"}]
    assert "another <ACTION> block, which was not called" in answer.observation.note
    assert "note" not in (await acting.http.post("/agent/action", content=SPECIFIED, headers={"content-type": "text/plain"})).text


@pytest.mark.parametrize("asked", ["body", "block"])
async def test_an_action_need_not_be_waited_for_and_its_end_is_posted(acting: House, asked: str) -> None:
    wishes = {"mode": "async", "callback_url": "https://example.com/told"}
    attributes = " ".join(f'{name}="{value}"' for name, value in wishes.items())
    text = SPECIFIED if asked == "body" else SPECIFIED.replace("<ACTION>", f"<ACTION {attributes}>")
    answer = await acting.http.post("/agent/action", json={"text": text, **(wishes if asked == "body" else {})})
    said = ActionAnswer.model_validate_json(answer.content)
    (call,) = acting.client.calls.values()
    assert (call.mode, call.callback_url) == (CallMode.ASYNC, "https://example.com/told")
    assert said.call_id == answer.headers["X-Call-Id"]
    assert said.observation.content.startswith(f"Tool {call.tool_id} was started as task {said.call_id}.")


@pytest.mark.parametrize(
    ("attributes", "told"),
    [
        ('mode="later"', "sync or async"),
        ('callback_url="https://example.com/told"', "mode: async"),
        ('mode="async" callback_url="nowhere"', "must begin with http"),
        ('mode="async" callback_url="https://10.0.0.1/"', "private address"),
    ],
)
async def test_a_mode_or_a_callback_that_cannot_be_runs_nothing_and_says_why(acting: House, attributes: str, told: str) -> None:
    answer = await ask(acting, SPECIFIED.replace("<ACTION>", f"<ACTION {attributes}>"))
    assert acting.client.calls == {}
    assert told in answer.observation.content


async def test_a_failed_call_is_told_with_type_message_and_details(acting: House) -> None:
    error = ToolError(
        type=ErrorType.EXECUTION_ERROR,
        message="Division by zero in script.",
        details={"original_type": "ScriptError", "details": "Traceback (most recent call last)..."},
    )
    _, status, content = await observed(with_script(acting, error_result(error)), SPECIFIED)
    assert (status, content) == (
        "error",
        "Tool core:execute-python-script failed. Error type: ScriptError. Message: Division by zero in script. "
        "Details: Traceback (most recent call last)...",
    )


async def test_a_result_that_says_itself_that_it_failed_is_told_as_a_failure(acting: House) -> None:
    output: JsonValue = {"success": False, "error": {"type": "ScriptError", "message": "no", "details": "Traceback"}}
    ended = succeeded("", "", output, ToolResult(status="success").executed_at, execution_time=0, metadata={})
    _, status, content = await observed(with_script(acting, ended), SPECIFIED)
    assert (status, content) == (
        "error",
        "Tool core:execute-python-script failed. Error type: ScriptError. Message: no Details: Traceback",
    )


@pytest.mark.parametrize(("path", "subject"), [("$.timeoutMs", "Input parameter 'timeoutMs'"), ("$", "Input parameters")])
async def test_issues_of_the_tools_schema_name_the_parameter(acting: House, path: str, subject: str) -> None:
    error = ToolError(type=ErrorType.VALIDATION_ERROR, message="The parameters do not fit.")
    issue = ValidationIssue(path=path, message="5 is less than the minimum of 100")
    _, _, content = await observed(with_script(acting, error_result(error, issue)), SPECIFIED)
    assert content.endswith(f"ParameterValidationError. Message: {subject}: 5 is less than the minimum of 100.")


async def test_a_temporal_that_is_away_is_an_observation_too(acting: House) -> None:
    acting.client.away = True
    _, status, content = await observed(acting, SPECIFIED)
    assert status == "error"
    assert "Error type: UnavailableError." in content


async def test_the_same_key_again_is_the_same_call(acting: House) -> None:
    first, second = [await ask(acting, SPECIFIED, **{"Idempotency-Key": "turn-3"}) for _ in range(2)]
    assert first.call_id == second.call_id
    assert len(acting.client.calls) == 1


async def test_characters_that_xml_cannot_hold_do_not_break_the_answer(acting: House) -> None:
    ended = succeeded("", "", "a\x00b\ufffe]]> & <c>", ToolResult(status="success").executed_at, execution_time=0, metadata={})
    answer = await with_script(acting, ended).http.post("/agent/action", content=SPECIFIED, headers={"Content-Type": "text/xml"})
    content = ElementTree.fromstring(answer.content).findtext("content")
    assert content is not None
    assert content.endswith('"a\\u0000b\ufffd]]> & <c>"')


@pytest.mark.parametrize(
    ("body", "kind", "status", "problem"),
    [
        (b"x" * 5_000_000, "application/xml", 413, "body_too_large"),
        (b"<ACTION>\xff</ACTION>", "application/xml", 400, "malformed_body"),
        (b"<ACTION/>", "application/octet-stream", 415, "unsupported_media_type"),
        (b"<ACTION/>", "", 415, "unsupported_media_type"),
        (b"{", "application/json", 400, "malformed_json"),
        (b'{"texts": "x"}', "application/json", 422, "invalid_request"),
        (b"[]", "application/json", 422, "invalid_request"),
    ],
)
async def test_a_body_that_is_no_text_is_a_problem(acting: House, body: bytes, kind: str, status: int, problem: str) -> None:
    answer = await acting.http.post("/agent/action", content=body, headers={"Content-Type": kind} if kind else {})
    assert (answer.status_code, answer.json()["type"]) == (status, problem)
    assert acting.client.calls == {}


PIECES = st.sampled_from(
    [
        "<ACTION>",
        "</ACTION>",
        "<ACTION/>",
        "<tool_id>",
        "</tool_id>",
        "echo",
        "<inputs>",
        "</inputs>",
        '<input name="message">',
        "</input>",
        "<echo>",
        "</echo>",
        "<item>",
        "</item>",
        "<![CDATA[",
        "]]>",
        "<!--",
        "-->",
        "&amp;",
        "&",
        "<!DOCTYPE a>",
        "<?xml?>",
        "<a:b>",
        "\x00",
        "\ud7ff",
        "中",
        "{",
        "[1]",
    ]
)
TEXTS = st.one_of(st.text(), st.lists(st.one_of(PIECES, st.text(max_size=5)), max_size=30).map("".join))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=TEXTS, value=st.text())
async def test_no_text_whatever_is_more_than_an_observation(acting: House, text: str, value: str) -> None:
    for said in (text, action({"scriptPath": text, "timeoutMs": value}), action({"inputData": value, "anything": text}, "echo")):
        raw = said.encode("utf-8", "replace")
        answer = await acting.http.post("/agent/action", content=raw, headers={"Content-Type": "application/xml"})
        assert answer.status_code == 200
        assert ElementTree.fromstring(answer.content).tag == "OBSERVATION"


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.binary(max_size=200), kind=st.sampled_from(["application/xml", "application/json", "text/plain"]))
async def test_no_bytes_whatever_are_our_failure(acting: House, body: bytes, kind: str) -> None:
    answer: httpx.Response = await acting.http.post("/agent/action", content=body, headers={"Content-Type": kind})
    assert answer.status_code in {200, 400, 413, 422}
