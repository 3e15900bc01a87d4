"""The error of a faulty scenario file names the place and the remedy."""

from pathlib import Path

import jsonschema_rs
import pytest
import yaml

from toolagent.testing.servers.documents import DocumentError
from toolagent.testing.servers.scenario import load_scenario, scenario_schema

GOOD = """
name: everything
key: sk-1
models: [one]
seconds: 0.1
conversations:
  - name: first
    when: slugs
    turns:
      - text: hi
        tool_use: {name: look, input: {at: sky}}
        usage: {input_tokens: 1}
        seconds: 2
        fault: rate_limit
        expect: {last_result: found, is_error: false}
      - tool_use: [{name: look}, {name: fly}]
        fault: [cut, {kind: slow, seconds: 1, times: forever}]
        repeat: 3
  - turns: [{content: [{type: text, text: x}], stop_reason: max_tokens}]
"""


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ("turns: [{tex: hi}]", ["$.turns[0].tex: there is no such field. Did you mean 'text'?"]),
        ("turns: [{text: hi, tool_us: {name: a}}]", ["$.turns[0].tool_us: there is no such field. Did you mean 'tool_use'?"]),
        ("turns: [{text: hi, zzz: 1}]", ["$.turns[0].zzz: there is no such field. Remove it"]),
        ("turns: [{text: 5}]", ["$.turns[0].text: must be text, and YAML reads 5; put it in quotes."]),
        ("turns: [{tool_use: {input: {}}}]", ["$.turns[0].tool_use.name: is missing. Add it."]),
        ("turns: [{tool_use: [{name: a}, {name: a b}]}]", ["$.turns[0].tool_use[1].name: String should match pattern"]),
        ("turns: [{text: hi, fault: explode}]", ["$.turns[0].fault: Input should be 'rate_limit', 'overloaded'", "it is 'explode'"]),
        ("turns: [{text: hi, fault: {kind: cut, times: 0}}]", ["$.turns[0].fault.times: Input should be greater than 0; it is 0."]),
        ("turns: [{text: hi, stop_reason: tired}]", ["$.turns[0].stop_reason: Input should be 'end_turn'", "it is 'tired'"]),
        ("turns: [{text: hi, seconds: -1}]", ["$.turns[0].seconds: Input should be greater than or equal to 0; it is -1."]),
        ("turns: [{}]", ["$.turns[0]: Value error, a turn says nothing; give it text or tool_use"]),
        ("turns: [{text: a, content: [{type: text, text: b}]}]", ["a turn has content, or text and tool_use; remove one"]),
        ("turns: [{text: a, content: [{type: picture}]}]", ["$.turns[0].content[0]", "'text', 'tool_use', 'thinking'"]),
        ("turns: [{text: a, repeat: forever}, {text: b}]", ["repeated forever is followed by another; make it the last"]),
        ("turns: [{text: a, fault: [{kind: cut, times: forever}, cut]}]", ["comes forever is followed by another; make it the last"]),
        (
            "turns: [{content: [{type: tool_use, nam: a}]}]",
            ["$.turns[0].content[0].name: is missing", "$.turns[0].content[0].nam: there is"],
        ),
        ("name: empty", ["$: Value error, a scenario has either turns or conversations; give one of them"]),
        ("{turns: [{text: a}], conversations: [{turns: [{text: a}]}]}", ["a scenario has either turns or conversations"]),
        ("conversations: [{turns: []}]", ["$.conversations[0].turns: Tuple should have at least 1 item"]),
        ("conversations: [{turns: [{text: a}]}, {when: b, turns: [{text: a}]}]", ["the same name"]),
        ("conversations: [{name: a, turns: [{text: a}]}, {name: b, when: b, turns: [{text: a}]}]", ["only the last conversation may do"]),
        ("turns: [{text: a: b}]", ["this is not YAML", "line 1", "quote text"]),
        ("just text", ["$: Input should be a valid dictionary"]),
        ("", ["$: Input should be a valid dictionary"]),
    ],
)
def test_a_fault_names_file_place_and_remedy(text: str, faults: list[str], tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(text, "utf-8")
    with pytest.raises(DocumentError) as error:
        load_scenario(file)
    assert str(error.value).startswith(f"{file}: ")
    assert [fault for fault in faults if fault not in str(error.value)] == [], str(error.value)


def test_a_file_that_is_not_there_or_no_text_says_so(tmp_path: Path) -> None:
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    for name in ("missing.yaml", "binary.yaml"):
        with pytest.raises(DocumentError, match=rf"{name}: cannot be read: .*Name a UTF-8 text file"):
            load_scenario(tmp_path / name)


def test_many_faults_are_all_said_up_to_ten(tmp_path: Path) -> None:
    file = tmp_path / "wrong.yaml"
    file.write_text(f"turns: [{', '.join(f'{{text: hi, zz{number}: 1}}' for number in range(12))}]", "utf-8")
    with pytest.raises(DocumentError) as error:
        load_scenario(file)
    assert str(error.value).count("there is no such field") == 10
    assert str(error.value).endswith("… and 2 more.")


def test_the_schema_takes_what_the_loader_takes(tmp_path: Path) -> None:
    file = tmp_path / "good.yaml"
    file.write_text(GOOD, "utf-8")
    load_scenario(file)
    validator = jsonschema_rs.validator_for(scenario_schema())
    validator.validate(yaml.safe_load(GOOD))
    wrong = ["tex: hi", "text: hi, fault: explode", "tool_use: {nam: a}", "tool_use: [{name: a}, a]", "text: hi, expect: {tools: [1]}"]
    assert [turn for turn in wrong if validator.is_valid(yaml.safe_load(f"turns: [{{{turn}}}]"))] == []
