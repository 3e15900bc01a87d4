"""Chooses the turn for a request and the fault before it, and counts how often each turn was asked for and served."""

import hashlib
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from pydantic import BaseModel, JsonValue

from toolagent.testing.servers.answers import Answer
from toolagent.testing.servers.api_errors import ApiError
from toolagent.testing.servers.expectations import unmet
from toolagent.testing.servers.references import Unresolved, filled, resolved
from toolagent.testing.servers.requests import MessagesRequest
from toolagent.testing.servers.scenario import Block, Conversation, Fault, Scenario, TextBlock, ToolUseBlock, Turn

__all__ = ["PromptCache", "PromptTokens", "Script", "Step", "TurnCount", "tokens_of"]

_REMEMBERED = 100
_Key = tuple[str, int]

_CHARACTERS = 4
_LOOK_BACK = 20
"""The number of blocks before a mark in which the API looks for a cached prefix."""

PromptTokens = tuple[int, int, int]
"""Tokens that are new, written to the cache, and read from it."""


class TurnCount(BaseModel):
    """How often a turn (from 1) was asked for, met a fault, and was served to its end."""

    conversation: str
    turn: int
    asked: int = 0
    faults: int = 0
    served: int = 0


@dataclass(frozen=True)
class Step:
    """The answer to a request, and the fault to apply, if any. `seconds` is how long the answer takes."""

    key: _Key
    answer: Answer
    seconds: float
    fault: Fault | None


class Script:
    """A scenario while it is played. The server's thread asks; other threads read the counts."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self._conversations = tuple(scenario.all_conversations())
        self._lock = threading.Lock()
        self._cache = PromptCache()
        self.forget()

    def step(self, request: MessagesRequest) -> Step:
        """Raises ApiError, and remembers it, if the scenario expects another request."""
        try:
            return self._step(request)
        except _Unexpected as error:
            message = f"Scenario {self.scenario.name!r}: {error}"
            with self._lock:
                if len(self._unmet) < _REMEMBERED:
                    self._unmet[message] = None
            raise ApiError("invalid_request_error", message) from error

    def tokens(self, request: MessagesRequest) -> int:
        """The tokens of the prompt: those of its turn, else an estimate."""
        conversation = self._chosen(request)
        turn = conversation.turn(request.position) if conversation else None
        given = turn.usage if turn else None
        if given is None or given.input_tokens is None:
            return sum(PromptCache().asked(request))
        return given.input_tokens + (given.cache_creation_input_tokens or 0) + (given.cache_read_input_tokens or 0)

    def served(self, step: Step) -> None:
        with self._lock:
            self._count(step.key).served += 1

    def turns(self) -> tuple[TurnCount, ...]:
        """All turns in order. A turn that is repeated forever counts as often as it was asked for."""
        names = [one.name for one in self._conversations]
        with self._lock:
            counts = sorted(self._counts.values(), key=lambda one: (names.index(one.conversation), one.turn))
            return tuple(one.model_copy() for one in counts)

    def unmet(self) -> tuple[str, ...]:
        """Each unexpected request: what the scenario expected, and what came."""
        with self._lock:
            return tuple(self._unmet)

    def forget(self) -> None:
        """Starts all counts again, so faults also come again."""
        with self._lock:
            self._unmet: dict[str, None] = {}
            self._counts: dict[_Key, TurnCount] = {}
            for one in self._conversations:
                for position in range(one.length):
                    self._count((one.name, position))

    def _count(self, key: _Key) -> TurnCount:
        return self._counts.setdefault(key, TurnCount(conversation=key[0], turn=key[1] + 1))

    def _step(self, request: MessagesRequest) -> Step:
        conversation = self._chosen(request)
        if conversation is None:
            known = [one.when for one in self._conversations]
            raise _Unexpected(f"no conversation fits: the first user message holds none of {known}; it is {request.opening[:500]!r}")
        position = request.position
        turn = conversation.turn(position)
        key = (conversation.name, position)
        where = f"conversation {conversation.name!r}, turn {position + 1}"
        if turn is None:
            raise _Unexpected(f"{where} was asked for, but there are only {conversation.length}")
        with self._lock:
            self._count(key).asked += 1
        expectations = (self.scenario.expect, conversation.expect, turn.expect)
        if failed := [fault for expected in expectations for fault in unmet(expected, request)]:
            raise _Unexpected(f"{where}: {'; '.join(failed)}")
        answer = self._answer(turn, request, where, _ids(turn, *key))
        seconds = self.scenario.seconds if turn.seconds is None else turn.seconds
        return Step(key, answer, seconds, self._fault(turn, key))

    def _chosen(self, request: MessagesRequest) -> Conversation | None:
        return next((one for one in self._conversations if one.when is None or one.when in request.opening), None)

    def _fault(self, turn: Turn, key: _Key) -> Fault | None:
        """The next fault of the turn, if any is left."""
        with self._lock:
            count = self._count(key)
            came = count.faults
            for fault in turn.fault:
                if fault.times == "forever" or came < fault.times:
                    count.faults += 1
                    return fault
                came -= fault.times
        return None

    def _answer(self, turn: Turn, request: MessagesRequest, where: str, ids: tuple[str, ...]) -> Answer:
        values = _values(request)
        try:
            blocks = tuple(_resolved(block, values) for block in turn.blocks)
        except Unresolved as error:
            raise _Unexpected(f"{where}: {error}") from error
        uses = any(isinstance(block, ToolUseBlock) for block in blocks)
        reason = turn.stop_reason or ("tool_use" if uses else "end_turn")
        return Answer(request.model, blocks, ids, reason, turn.stop_sequence, self._usage(turn, request, blocks))

    def _usage(self, turn: Turn, request: MessagesRequest, blocks: tuple[Block, ...]) -> dict[str, JsonValue]:
        fresh, written, read = self._cache.asked(request)
        estimated: dict[str, JsonValue] = {
            "input_tokens": fresh,
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": read,
            "output_tokens": max(1, sum(tokens_of(block.model_dump_json()) for block in blocks)),
        }
        given = turn.usage.model_dump(exclude_none=True)
        if turn.usage.input_tokens is not None:
            # A turn that gives its input tokens gives all of them.
            estimated.update(cache_creation_input_tokens=0, cache_read_input_tokens=0)
        return estimated | given


class _Unexpected(Exception):
    """The scenario does not expect this request."""


def _resolved(block: Block, values: Mapping[str, JsonValue]) -> Block:
    match block:
        case TextBlock(text=text):
            return TextBlock(text=filled(text, values))
        case ToolUseBlock():
            return block.model_copy(update={"input": cast("dict[str, JsonValue]", resolved(block.input, values))})
        case _:
            return block


def _values(request: MessagesRequest) -> dict[str, JsonValue]:
    """The values that references can name."""
    rounds = request.outcomes
    values: dict[str, JsonValue] = {"turn": request.position + 1}
    latest = {result.tool: result for results in rounds for result in results}
    values["results"] = {tool: result.value for tool, result in latest.items()}
    if rounds:
        values["last_results"] = [result.value for result in rounds[-1]]
        values["last_result"] = rounds[-1][-1].value
    return values


def _ids(turn: Turn, conversation: str, position: int) -> tuple[str, ...]:
    """An id for each tool use, the same each time the turn is given."""
    count = sum(isinstance(block, ToolUseBlock) for block in turn.blocks)
    return tuple(f"toolu_{hashlib.sha256(f'{conversation}/{position}/{place}'.encode()).hexdigest()[:24]}" for place in range(count))


def tokens_of(text: str) -> int:
    return -(-len(text) // _CHARACTERS)


class PromptCache:
    """The API's prompt cache, without its minimum length and its expiry."""

    def __init__(self) -> None:
        self._known: set[bytes] = set()

    def asked(self, request: MessagesRequest) -> PromptTokens:
        """The tokens of the prompt. Its marked prefixes are cached from now on."""
        ends, marks = _prefixes(request)
        total = ends[-1][1] if ends else 0
        if not marks:
            return total, 0, 0
        read = max(self._read(ends, mark) for mark in marks)
        self._known.update(ends[mark][0] for mark in marks)
        last = ends[marks[-1]][1]
        return total - last, last - read, read

    def _read(self, ends: list[tuple[bytes, int]], mark: int) -> int:
        near = ends[max(0, mark - _LOOK_BACK) : mark + 1]
        return max((tokens for digest, tokens in near if digest in self._known), default=0)


def _prefixes(request: MessagesRequest) -> tuple[list[tuple[bytes, int]], list[int]]:
    """For each block the digest and tokens of the prompt up to its end; and the places of the marked blocks."""
    digest, characters = hashlib.sha256(request.model.encode()), 0
    ends: list[tuple[bytes, int]] = []
    marks: list[int] = []
    for place, (block, marked) in enumerate(request.parts()):
        text = json.dumps(block, ensure_ascii=False)
        digest.update(text.encode())
        characters += len(text)
        ends.append((digest.digest(), -(-characters // _CHARACTERS)))
        if marked:
            marks.append(place)
    return ends, marks
