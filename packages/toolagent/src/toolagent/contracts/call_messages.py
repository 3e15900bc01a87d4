"""What a call says to its caller while it goes on, and what it asks."""

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
"""Which of a listener's `answers` a question asks for."""


class LogLevel(StrEnum):
    """Of RFC 5424, the least severe first."""

    DEBUG = "debug"
    INFO = "info"
    NOTICE = "notice"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"
    ALERT = "alert"
    EMERGENCY = "emergency"

    def reaches(self, least: "LogLevel") -> bool:
        """Whether a message of this level is heard by who hears `least` and what is more severe."""
        levels = [*LogLevel]
        return levels.index(self) >= levels.index(least)


class Listener(Contract):
    """What a caller can hear and answer while its call goes on."""

    progress: bool = False
    log_level: LogLevel | None = None
    """The least severe level that is heard; unset: no log."""
    answers: tuple[Answer, ...] = ()
    """The questions that it can answer."""
    elicits: tuple[Elicitation, ...] = ("form",)
    """The modes of elicitation that it can answer."""

    def can_answer(self, question: Question, params: Mapping[str, JsonValue]) -> bool:
        """Whether it answers this question, which is in the form of its method's params."""
        if ANSWER_OF[question] not in self.answers:
            return False
        return question != "elicitation/create" or params.get("mode", "form") in self.elicits


class CallMessage(Contract):
    """One message of a call. Positions count from 1 in each call.

    The payload of `progress` is `{progress, total, message}`, of `log` `{level, logger, data}`, of `question` `{method, params}`, with a
    `key` where the tool named it. An answer is `{result}` or `{error: {code, message}}`.
    """

    call_id: str
    position: int
    kind: MessageKind
    payload: dict[str, JsonValue]
    answer: dict[str, JsonValue] | None = None
    at: datetime
    answered_at: datetime | None = None
