"""What the model of the measurements says, turn by turn: a build of ten turns, and one that talks for a long time."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from pydantic import JsonValue

from toolagent.testing.servers.scenario import Conversation, Scenario, ToolUseBlock, Turn

BUILD = "bench_build"
TALK = "bench_talk"
TURN_S = 0.2
BUILD_TURNS = 10
BUILD_COMMANDS: Sequence[str] = tuple(f"sleep 0.4; echo {number}" for number in range(1, 7))
"""Most of them wait: what they take is theirs, and the same with and without us."""

_MAIN = Path(__file__).with_name("made") / "main.py"
_PROJECT = "counter"
_TALKED = 4_000
"""Characters of a use of a tool, or of its outcome: a thousand tokens."""


def conversations(calls: int) -> Scenario:
    """For tasks named `BUILD` and `TALK`; the second uses tools `calls` times."""
    return Scenario(
        name="the measurements",
        conversations=(
            Conversation(name=BUILD, when=BUILD, turns=tuple(_turns(_build(), TURN_S))),
            Conversation(name=TALK, when=TALK, turns=tuple(_turns(_talk(calls), 0.0))),
        ),
    )


def _turns(uses: Iterator[ToolUseBlock], seconds: float) -> Iterator[Turn]:
    return (Turn(text="Then this.", tool_use=(use,), seconds=seconds) for use in uses)


def _build() -> Iterator[ToolUseBlock]:
    yield from _beginning()
    for command in BUILD_COMMANDS:
        yield _use("run_in_uv", project_dir=f"/work/{_PROJECT}", command=command)
    yield _use("read_file", path=f"/work/{_PROJECT}/main.py")
    yield _end(BUILD)


def _talk(calls: int) -> Iterator[ToolUseBlock]:
    """Writes a page and reads it again, until all but one call are made."""
    yield from _beginning()
    for number in range(calls - 3):
        path = f"/work/{_PROJECT}/notes/{number // 2}.txt"
        yield _use("read_file", path=path) if number % 2 else _use("write_file", path=path, content=_page(number))
    yield _end(TALK)


def _beginning() -> Iterator[ToolUseBlock]:
    yield _use("create_uv_project", name=_PROJECT)
    yield _use("write_file", path=f"/work/{_PROJECT}/main.py", content=_MAIN.read_text("utf-8"))


def _end(tool_id: str) -> ToolUseBlock:
    words: JsonValue = {"type": "object", "properties": {"words": {"type": "integer", "minimum": 0}}, "required": ["words"]}
    text: JsonValue = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"], "additionalProperties": False}
    return _use(
        "register_tool",
        tool_id=tool_id,
        name="Word counter",
        description="Counts the words of a text.",
        runtime_type="uv",
        internal_port=0,
        host_dir=f"/work/{_PROJECT}",
        input_schema=text,
        output_schema=words,
        side_effect_scope="none",
    )


def _page(number: int) -> str:
    """No two are alike, or the agent would be told that it goes round in circles."""
    line = f"What was thought of at step {number}, and is to be remembered for later.\n"
    return (line * (_TALKED // len(line) + 1))[:_TALKED]


def _use(name: str, /, **given: JsonValue) -> ToolUseBlock:
    return ToolUseBlock(name=name, input=given)
