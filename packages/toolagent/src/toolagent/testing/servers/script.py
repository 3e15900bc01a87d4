"""Which turn a request is given, what goes wrong before, and how often each was asked for and served."""

import hashlib
import json
import threading
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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
"""So many blocks before a mark the API looks for what is cached."""

PromptTokens = tuple[int, int, int]
"""Tokens that are new, written to the cache, read from it."""


class TurnCount(BaseModel):
    """How often a turn (from 1) was asked for, met a fault, and was served to its end."""

    conversation: str
    turn: int
    asked: int
    faults: int
    served: int


@dataclass(frozen=True)
class Step:
    """What a request is answered with: the turn, after the fault if there is one. `seconds` is how long the answer takes."""

    key: _Key
    answer: Answer
    seconds: float
    fault: Fault | None


class Script:
    """A scenario as it is played; asked by the server's thread, looked at by others."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self._conversations = tuple(scenario.all_conversations())
        self._lock = threading.Lock()
        self._cache = PromptCache()
        self._asked: Counter[_Key] = Counter()
        self._faults: Counter[_Key] = Counter()
        self._served: Counter[_Key] = Counter()
        self._unmet: dict[str, None] = {}

    def step(self, request: MessagesRequest) -> Step:
        """Raises ApiError when the scenario expects another request, and remembers that."""
        try:
            return self._step(request)
        except _Unexpected as error:
            message = f"Scenario {self.scenario.name!r}: {error}"
            with self._lock:
                if len(self._unmet) < _REMEMBERED:
                    self._unmet[message] = None
            raise ApiError("invalid_request_error", message) from error

    def tokens(self, request: MessagesRequest) -> int:
        """What the prompt takes: as its turn says, else estimated."""
        conversation = self._chosen(request)
        turn = conversation.turn(request.position) if conversation else None
        given = turn.usage if turn else None
        if given is None or given.input_tokens is None:
            return sum(PromptCache().asked(request))
        return given.input_tokens + (given.cache_creation_input_tokens or 0) + (given.cache_read_input_tokens or 0)

    def served(self, step: Step) -> None:
        with self._lock:
            self._served[step.key] += 1

    def turns(self) -> tuple[TurnCount, ...]:
        """All turns in order; of one that is repeated forever those that were asked for."""
        with self._lock:
            keys = (key for one in self._conversations for key in _keys(one, self._asked))
            return tuple(
                TurnCount(conversation=key[0], turn=key[1] + 1, asked=self._asked[key], faults=self._faults[key], served=self._served[key])
                for key in keys
            )

    def unmet(self) -> tuple[str, ...]:
        """Each request that the scenario did not expect: what it expected, and what came."""
        with self._lock:
            return tuple(self._unmet)

    def forget(self) -> None:
        """Count anew: faults come again, too."""
        with self._lock:
            for counter in (self._asked, self._faults, self._served):
                counter.clear()
            self._unmet.clear()

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
            self._asked[key] += 1
        expectations = (self.scenario.expect, conversation.expect, turn.expect)
        if failed := [fault for expected in expectations for fault in unmet(expected, request)]:
            raise _Unexpected(f"{where}: {'; '.join(failed)}")
        answer = self._answer(turn, request, where, _ids(turn, *key))
        seconds = self.scenario.seconds if turn.seconds is None else turn.seconds
        return Step(key, answer, seconds, self._fault(turn, key))

    def _chosen(self, request: MessagesRequest) -> Conversation | None:
        return next((one for one in self._conversations if one.when is None or one.when in request.opening), None)

    def _fault(self, turn: Turn, key: _Key) -> Fault | None:
        """The next that is due, if any."""
        with self._lock:
            came = self._faults[key]
            for fault in turn.fault:
                if fault.times == "forever" or came < fault.times:
                    self._faults[key] += 1
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
            # Who says what goes in says all of it.
            estimated.update(cache_creation_input_tokens=0, cache_read_input_tokens=0)
        return estimated | given


class _Unexpected(Exception):
    """The scenario has nothing for this request."""


def _keys(conversation: Conversation, asked: Iterable[_Key]) -> Sequence[_Key]:
    beyond = {position for name, position in asked if name == conversation.name}
    return [(conversation.name, position) for position in sorted(beyond.union(range(conversation.length)))]


def _resolved(block: Block, values: Mapping[str, JsonValue]) -> Block:
    match block:
        case TextBlock(text=text):
            return TextBlock(text=filled(text, values))
        case ToolUseBlock():
            return block.model_copy(update={"input": cast("dict[str, JsonValue]", resolved(block.input, values))})
        case _:
            return block


def _values(request: MessagesRequest) -> dict[str, JsonValue]:
    """What references may name."""
    rounds = request.outcomes
    values: dict[str, JsonValue] = {"turn": request.position + 1}
    latest = {result.tool: result for results in rounds for result in results}
    values["results"] = {tool: result.value for tool, result in latest.items()}
    if rounds:
        values["last_results"] = [result.value for result in rounds[-1]]
        values["last_result"] = rounds[-1][-1].value
    return values


def _ids(turn: Turn, conversation: str, position: int) -> tuple[str, ...]:
    """A name for each tool use: the same whenever the turn is given."""
    count = sum(isinstance(block, ToolUseBlock) for block in turn.blocks)
    return tuple(f"toolu_{hashlib.sha256(f'{conversation}/{position}/{place}'.encode()).hexdigest()[:24]}" for place in range(count))


def tokens_of(text: str) -> int:
    return -(-len(text) // _CHARACTERS)


class PromptCache:
    """As the API's, but without its least length and its expiry, and for one process."""

    def __init__(self) -> None:
        self._known: set[bytes] = set()

    def asked(self, request: MessagesRequest) -> PromptTokens:
        """What the prompt costs; what its marks say is kept from now on."""
        ends, marks = _prefixes(request)
        total = ends[-1][1] if ends else 0
        if not marks:
            return total, 0, 0
        read = max((self._read(ends, mark) for mark in marks), default=0)
        self._known.update(ends[mark][0] for mark in marks)
        last = ends[marks[-1]][1]
        return total - last, last - read, read

    def _read(self, ends: list[tuple[bytes, int]], mark: int) -> int:
        near = ends[max(0, mark - _LOOK_BACK) : mark + 1]
        return max((tokens for digest, tokens in near if digest in self._known), default=0)


def _prefixes(request: MessagesRequest) -> tuple[list[tuple[bytes, int]], list[int]]:
    """For each block what the prompt is up to its end, and how many tokens; and at which blocks there are marks."""
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
