"""Words of the command line become parameters by the tool's schema."""

import json
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from toolagent.cli.example import call_line
from toolagent.cli.parameters import ParameterError, Upload, parse_json, parse_parameters, with_uploads
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.manifest import ToolExample, ToolManifest

FILES = {"a.txt": "from a file", "n.json": '{"deep": [1]}', "five.txt": "5\n"}
SCHEMA: JsonSchema = {
    "$defs": {"Size": {"type": "integer"}, "Colour": {"enum": ["red", "blue"]}, "Loop": {"anyOf": [{"$ref": "#/$defs/Loop"}]}},
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "loud": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "sizes": {"type": "array", "items": {"$ref": "#/$defs/Size"}},
        "extra": {"type": "object"},
        "size": {"$ref": "#/$defs/Size"},
        "colour": {"$ref": "#/$defs/Colour"},
        "level": {"enum": [1, 2]},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "name": {"type": ["string", "null"]},
        "loop": {"$ref": "#/$defs/Loop"},
        "picture": {"type": "string", "format": "file-path"},
        "pictures": {"type": "array", "items": {"type": "string", "format": "file-path"}},
    },
}


def read_text(path: str) -> str:
    if path not in FILES:
        raise ParameterError(f"no {path}")
    return FILES[path]


def parsed(*words: str, base: str | None = None) -> dict[str, JsonValue]:
    return parse_parameters(words, SCHEMA, read_text, base)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["text=42"], {"text": "42"}),
        (["text="], {"text": ""}),
        (["text=a=b:=c"], {"text": "a=b:=c"}),
        (["text=@a.txt"], {"text": "from a file"}),
        (["text:=7"], {"text": 7}),
        (["count=42"], {"count": 42}),
        (["count=-3"], {"count": -3}),
        (["count=3.0"], {"count": 3}),
        (["count=@five.txt"], {"count": 5}),
        (["ratio=.5"], {"ratio": 0.5}),
        (["ratio=2"], {"ratio": 2}),
        (["loud=yes"], {"loud": True}),
        (["loud=False"], {"loud": False}),
        (["tags=one"], {"tags": ["one"]}),
        (["tags=1", "tags=2"], {"tags": ["1", "2"]}),
        (['tags=["x", "y"]'], {"tags": ["x", "y"]}),
        (["tags:=[]"], {"tags": []}),
        (["sizes=1", "sizes=2"], {"sizes": [1, 2]}),
        (['extra={"a": 1}'], {"extra": {"a": 1}}),
        (["extra=@n.json"], {"extra": {"deep": [1]}}),
        (["extra:=@n.json"], {"extra": {"deep": [1]}}),
        (["size=4"], {"size": 4}),
        (["colour=red"], {"colour": "red"}),
        (["level=2"], {"level": 2}),
        (["maybe=null"], {"maybe": None}),
        (["maybe=3"], {"maybe": 3}),
        (["name=null"], {"name": "null"}),
        (["loop=1"], {"loop": "1"}),
        (["unknown=1"], {"unknown": "1"}),
        (['{"text": "a=b", "count": 2}', "count=3"], {"text": "a=b", "count": 3}),
        (["picture=file_0"], {"picture": "file_0"}),
    ],
)
def test_a_value_is_read_by_its_schema(words: list[str], expected: dict[str, JsonValue]) -> None:
    assert parsed(*words) == expected


@pytest.mark.parametrize(
    "words",
    [
        ["text"],
        ["=x"],
        [":=1"],
        ["count=abc"],
        ["count=1.5"],
        ["count=1e999"],
        ["count=1_000"],
        ["count=" + "9" * 5000],
        ["ratio=nan"],
        ["ratio=1e999"],
        ["loud=maybe"],
        ["text=a", "text=b"],
        ["tags=a", "tags:=[]"],
        ["tags=[oops"],
        ["extra=[1]"],
        ["extra={oops"],
        ["text:=NaN"],
        ["text:=1e999"],
        ["text:={"],
        ["text:=" + "[" * 100_000],
        ["text=@missing"],
        ["{oops}"],
        ["text=\udcff"],
        ["text:=" + json.dumps("\ud800")],
    ],
)
def test_what_cannot_be_read_is_refused(words: list[str]) -> None:
    with pytest.raises(ParameterError):
        parsed(*words)


def test_the_words_override_the_json_given_beside_them() -> None:
    assert parsed("count=2", base='{"count": 1, "text": "x"}') == {"count": 2, "text": "x"}


def test_params_that_are_not_an_object_are_refused() -> None:
    with pytest.raises(ParameterError):
        parsed(base="[1]")


def test_files_for_file_parameters_are_uploaded_in_order_and_nothing_else_is() -> None:
    params = parsed("pictures=@b.png", "pictures=@a.png", "picture=@c.png", "text=@a.txt")
    assert isinstance(params["picture"], Upload)
    assert with_uploads(params, lambda path: f"id of {path}") == {
        "pictures": ["id of b.png", "id of a.png"],
        "picture": "id of c.png",
        "text": "from a file",
    }


def test_one_file_fills_a_list_of_files() -> None:
    assert with_uploads(parsed("pictures=@a.png"), str.upper) == {"pictures": ["A.PNG"]}


def test_the_path_of_an_upload_may_be_any_bytes() -> None:
    assert parsed("picture=@\udcff.png") == {"picture": "\udcff.png"}


texts = st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=10,
)


@given(texts.filter(lambda text: not text.startswith("@")))
def test_a_string_stays_as_it_was_typed(text: str) -> None:
    assert parsed(f"text={text}") == {"text": text}


@given(values)
def test_raw_json_keeps_its_value(value: JsonValue) -> None:
    assert parsed(f"anything:={json.dumps(value)}") == {"anything": value}


@given(st.integers())
def test_an_integer_keeps_its_value(number: int) -> None:
    assert parsed(f"count={number}") == {"count": number}


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_keeps_its_value(number: float) -> None:
    assert parsed(f"ratio={number!r}") == {"ratio": number}


@given(st.lists(texts.filter(lambda text: not text.startswith("@")), min_size=2))
def test_repeated_words_fill_a_list_in_order(items: list[str]) -> None:
    assert parsed(*(f"tags={item}" for item in items)) == {"tags": items}


@given(texts)
def test_no_word_ends_in_anything_but_parameters_or_a_parameter_error(word: str) -> None:
    try:
        parsed(word)
    except ParameterError:
        return


@given(texts)
def test_no_text_breaks_the_json_reader(text: str) -> None:
    try:
        parse_json(text, "text")
    except ParameterError:
        return


plain = ["text", "count", "ratio", "loud", "tags", "extra", "name", "unknown"]


@given(st.dictionaries(st.sampled_from(plain), values))
def test_the_example_line_means_the_example(params: dict[str, JsonValue]) -> None:
    manifest = ToolManifest(tool_id="t", name="T", input_schema=SCHEMA, examples=(ToolExample(input=params),))
    command, verb, tool, *words = shlex.split(call_line(manifest))
    assert (command, verb, tool) == ("toolagent", "run", "t")
    assert parsed(*words) == params


def test_the_example_line_is_made_up_from_what_is_required() -> None:
    schema: JsonSchema = {**SCHEMA, "required": ["text", "count", "colour", "pictures"]}
    line = call_line(ToolManifest(tool_id="t", name="T", input_schema=schema))
    assert shlex.split(line) == ["toolagent", "run", "t", "text=TEXT", "count:=1", "colour=red", "pictures=@FILE"]
