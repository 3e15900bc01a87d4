"""Messages and questions of a running call to its caller."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Literal, TypeAlias

from pydantic import JsonValue

from toolagent.contracts.contract import Contract

__all__ = ["ANSWER_OF", "CallMessage", "Elicitation", "Listener", "LogLevel", "MessageKind", "Question"]

MessageKind: TypeAlias = Literal["progress", "log", "question"]

Question: TypeAlias = Literal["elicitation/create", "sampling/createMessage", "roots/list"]

Answer: TypeAlias = Literal["elicitation", "sampling", "roots"]

Elicitation: TypeAlias = Literal["form", "url"]

ANSWER_OF: dict[Question, Answer] = {
    "elicitation/create": "elicitation",
    "sampling/createMessage": "sampling",
    "roots/list": "roots",
}
"""The kind of answer that each question needs, as in a listener's `answers`."""


class LogLevel(StrEnum):
    """The levels of RFC 5424, the least severe first."""

    DEBUG = "debug"
    INFO = "info"
    NOTICE = "notice"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"
    ALERT = "alert"
    EMERGENCY = "emergency"

    def reaches(self, least: "LogLevel") -> bool:
        """Whether this level is at least as severe as `least`."""
        levels = [*LogLevel]
        return levels.index(self) >= levels.index(least)


class Listener(Contract):
    """Messages that a caller receives, and questions that it answers, while its call runs."""

    progress: bool = False
    log_level: LogLevel | None = None
    """The least severe level of log messages; unset: no log."""
    answers: tuple[Answer, ...] = ()
    """The questions that it can answer."""
    elicits: tuple[Elicitation, ...] = ("form",)
    """The modes of elicitation that it can answer."""

    def can_answer(self, question: Question, params: Mapping[str, JsonValue]) -> bool:
        """Whether the caller answers this question; `params` are those of its method."""
        if ANSWER_OF[question] not in self.answers:
            return False
        return question != "elicitation/create" or params.get("mode", "form") in self.elicits


class CallMessage(Contract):
    """One message of a call. Positions count from 1.

    The payload of `progress` is `{progress, total, message}`, of `log` `{level, logger, data}`, of `question` `{method, params}`, and a
    `key` if the tool gave one. An answer is `{result}` or `{error: {code, message}}`.
    """

    call_id: str
    position: int
    kind: MessageKind
    payload: dict[str, JsonValue]
    answer: dict[str, JsonValue] | None = None
    at: datetime
    answered_at: datetime | None = None
