"""Turns a real session into a scenario while it goes on."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

import yaml
from pydantic import JsonValue

from toolagent.core.calls.masking import without_secret
from toolagent.testing.servers.api_errors import STATUS_FAULTS, STATUSES
from toolagent.testing.servers.references import with_texts
from toolagent.testing.servers.requests import MessagesRequest, ToolOutcomeView
from toolagent.testing.servers.scenario import (
    Block,
    Conversation,
    Fault,
    FaultKind,
    Scenario,
    TextBlock,
    ThinkingBlock,
    ToolUseBlock,
    Turn,
    TurnUsage,
)

__all__ = ["Recording", "with_references"]

_HEADER = "# Recorded from a real session. References stand for values that tools gave: they may differ when this is played.\n"
_NOT_RECORDED = Turn(text="This turn was not recorded.")
_USUAL = {"end_turn", "tool_use"}
_FAULTS = {STATUSES[error]: kind for kind, (error, _) in STATUS_FAULTS.items()}

_LEAST = 6
"""Shorter values may be equal by chance."""


@dataclass
class _Heard:
    faults: list[Fault] = field(default_factory=list[Fault])
    turn: Turn | None = None


class Recording:
    """Keeps conversations by their first user message and turns by their position, so a repeated request is recorded once."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._heard: dict[str, dict[int, _Heard]] = {}
        self._secrets: set[str] = set()

    def hide(self, secret: str) -> None:
        """Never write this text, wherever it occurs."""
        if secret:
            self._secrets.add(secret)

    def answered(self, request: MessagesRequest, message: dict[str, JsonValue], seconds: float | None = None) -> None:
        """A complete turn came. With `seconds` it takes as long when it is played."""
        self._place(request).turn = _turn(request, message, seconds)

    def refused(self, request: MessagesRequest, status: int, retry_after: str | None) -> None:
        """An error came instead of a turn."""
        kind = _FAULTS.get(status, FaultKind.SERVER_ERROR if status >= 500 else FaultKind.INVALID_REQUEST)
        self._failed(request, Fault(kind=kind, retry_after=_seconds(retry_after)))

    def cut(self, request: MessagesRequest) -> None:
        """The answer broke off."""
        self._failed(request, Fault(kind=FaultKind.CUT))

    def scenario(self) -> Scenario:
        """Raises ValueError while nothing is recorded."""
        whens = _whens([*self._heard])
        conversations = tuple(
            Conversation(name=f"conversation_{number}", when=when, turns=tuple(_in_order(heard)))
            for number, (when, heard) in enumerate(zip(whens, self._heard.values(), strict=True), 1)
        )
        alone = len(conversations) == 1
        return Scenario(name=self._name, turns=conversations[0].turns) if alone else Scenario(name=self._name, conversations=conversations)

    def text(self) -> str:
        """The scenario as YAML, without hidden texts of 8 characters or more. Shorter ones occur in ordinary words."""
        text = _HEADER + yaml.dump(_described(self.scenario()), Dumper=_Readable, sort_keys=False, allow_unicode=True, width=120)
        for secret in self._secrets:
            # Asterisks have a meaning in YAML.
            text = without_secret(text, secret, "(hidden)")
        return text

    def _place(self, request: MessagesRequest) -> _Heard:
        return self._heard.setdefault(request.opening, {}).setdefault(request.position, _Heard())

    def _failed(self, request: MessagesRequest, fault: Fault) -> None:
        faults = self._place(request).faults
        last = faults[-1] if faults else None
        if last is not None and isinstance(last.times, int) and last.model_copy(update={"times": 1}) == fault:
            faults[-1] = fault.model_copy(update={"times": last.times + 1})
        else:
            faults.append(fault)


def _described(scenario: Scenario) -> dict[str, object]:
    """The scenario as a person writes it: without defaults, and a single value for a list of one."""
    if scenario.turns:
        return {"name": scenario.name, "turns": [*map(_turn_described, scenario.turns)]}
    every = [{"name": one.name, "when": one.when, "turns": [*map(_turn_described, one.turns)]} for one in scenario.conversations]
    return {"name": scenario.name, "conversations": every}


def _turn_described(turn: Turn) -> dict[str, object]:
    fields: dict[str, object] = turn.model_dump(mode="json", exclude_defaults=True)
    for name in ("tool_use", "fault"):
        several = cast("list[object]", fields.get(name, []))
        if len(several) == 1:
            fields[name] = several[0]
    if turn.content:
        # A `type` is a default, but a block needs it.
        fields["content"] = [{"type": block.type, **block.model_dump(mode="json", exclude_defaults=True)} for block in turn.content]
    return fields


class _Readable(yaml.SafeDumper):
    """Writes text of several lines as a block."""


_Readable.add_representer(
    str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)
)


def _turn(request: MessagesRequest, message: dict[str, JsonValue], seconds: float | None) -> Turn:
    blocks = tuple(_blocks(message.get("content"), request))
    given = message.get("stop_reason")
    uses = tuple(block for block in blocks if isinstance(block, ToolUseBlock))
    texts = tuple(block for block in blocks if isinstance(block, TextBlock))
    fields: dict[str, object] = {"content": blocks}
    if len(texts) <= 1 and blocks == (*texts, *uses):
        fields = {"text": texts[0].text if texts else "", "tool_use": uses}
    if given not in _USUAL or (given == "tool_use") is not bool(uses) or not blocks:
        fields["stop_reason"] = given
    if isinstance(sequence := message.get("stop_sequence"), str):
        fields["stop_sequence"] = sequence
    if seconds is not None:
        fields["seconds"] = round(seconds, 2)
    usage = message.get("usage")
    # With `input_tokens` given, the other counts are 0 by default.
    known = {name: tokens for name in TurnUsage.model_fields if (tokens := usage.get(name))} if isinstance(usage, dict) else {}
    return Turn.model_validate({**fields, "usage": {"input_tokens": 0, **known} if known else {}})


def _blocks(content: JsonValue, request: MessagesRequest) -> Iterator[Block]:
    """Blocks of other kinds cannot be played."""
    for block in content if isinstance(content, list) else ():
        match block:
            case {"type": "text", "text": str(text)} if text:
                yield TextBlock(text=text)
            case {"type": "tool_use", "name": str(name), "input": dict(values)}:
                yield ToolUseBlock(name=name, input=cast("dict[str, JsonValue]", with_references(values, request)))
            case {"type": "thinking", "thinking": str(thinking), "signature": str(signature)}:
                yield ThinkingBlock(thinking=thinking, signature=signature)
            case _:
                continue


def _in_order(heard: dict[int, _Heard]) -> Iterator[Turn]:
    """All positions up to the last. The recording of a session may begin in its middle."""
    for position in range(max(heard) + 1):
        found = heard.get(position, _Heard())
        turn = found.turn or _NOT_RECORDED
        yield turn.model_copy(update={"fault": tuple(found.faults)})


def _whens(openings: Sequence[str]) -> Iterable[str | None]:
    """The text that distinguishes each conversation: its first line that no other has."""
    if len(openings) == 1:
        return (None,)
    return tuple(_own_line(opening, [other for other in openings if other != opening]) for opening in openings)


def _own_line(opening: str, others: Sequence[str]) -> str:
    lines = (line.strip() for line in opening.splitlines())
    return next((line for line in lines if line and not any(line in other for other in others)), opening)


def _seconds(retry_after: str | None) -> float | None:
    try:
        return float(retry_after) if retry_after else None
    except ValueError:
        return None  # a date


def with_references(value: JsonValue, request: MessagesRequest) -> JsonValue:
    """The value with a reference for each string that is in the latest result of a tool and was in no message before.

    The tool made up such a string, so its value differs the next time.
    """
    rounds = request.outcomes
    now = {path: found for results in rounds for one in results for path, found in _leaves(one.value, one.tool)}
    known = {found: path for path, found in _made_up(request, iter(rounds)) if now.get(path) == found}
    return with_texts(value, lambda text: f"{{{{ results.{known[text]} }}}}" if text in known else text)


def _made_up(request: MessagesRequest, rounds: Iterator[Sequence[ToolOutcomeView]]) -> Iterator[tuple[str, str]]:
    """Values that first occur in a tool result, with their places."""
    said = [request.system_text]
    for message in request.messages:
        results = next(rounds) if message.of_type("tool_result") else ()
        for result in results:
            yield from ((path, found) for path, found in _leaves(result.value, result.tool) if not any(found in text for text in said))
        said.append(message.text)
        said.extend(json.dumps(use.get("input"), ensure_ascii=False) for use in message.of_type("tool_use"))


def _leaves(value: JsonValue, path: str) -> Iterator[tuple[str, str]]:
    match value:
        case dict():
            for key, item in value.items():
                # A key with a dot cannot be named.
                if key.replace("_", "").replace("-", "").isalnum():
                    yield from _leaves(item, f"{path}.{key}")
        case list():
            for place, item in enumerate(value):
                yield from _leaves(item, f"{path}.{place}")
        case str() if len(value) >= _LEAST and "." in path:
            yield path, value
        case _:
            return
