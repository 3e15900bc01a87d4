"""Our model answers questions of tools for a model."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from pydantic import JsonValue

from engine.calling.sampling import ModelSampling
from engine.roles.prices import Prices
from engine.roles.provider import BusyKind, ModelBusy
from engine.store.content.folder import FolderContent
from engine.store.database import Database
from engine.store.files import FileStore
from engine.store.messages import MessageTable
from engine.store.model_turns import ModelTurnTable
from toolagent_service.contracts.model import ModelRequest, ModelTurn, Text, Usage

CALL = "call-00000001"
ASKED: dict[str, JsonValue] = {"messages": [{"role": "user", "content": {"type": "text", "text": "Capital?"}}], "maxTokens": 100_000}


class Model:
    """A provider that answers every question, or is always busy."""

    name, model = "own", "model-1"

    def __init__(self, *, is_busy: bool = False) -> None:
        self._is_busy = is_busy
        self.asked: list[ModelRequest] = []

    async def ask(self, request: ModelRequest, beat: Callable[[str], None], hear: Callable[[str], None] | None = None) -> ModelTurn:  # noqa: ARG002 - it is over at once
        if self._is_busy:
            raise ModelBusy(BusyKind.OVERLOADED, "It is busy.")
        self.asked.append(request)
        usage = Usage(input_tokens=3, output_tokens=1)
        return ModelTurn(content=(Text(text="Paris"),), stop_reason="end_turn", model="model-1", usage=usage)

    async def aclose(self) -> None: ...


def turns_of(database: Database, folder: Path) -> ModelTurnTable:
    return ModelTurnTable(database, MessageTable(database, FileStore(database, FolderContent(folder), folder, 1000)))


async def test_a_question_is_answered_within_our_bounds_and_stands_in_the_ledger(database: Database, tmp_path: Path) -> None:
    model, turns = Model(), turns_of(database, tmp_path)
    sampling = ModelSampling(model, Prices(), turns)
    answers = [await sampling.answer(CALL, number, ASKED) for number in (1, 2, 9)]
    said = {"role": "assistant", "content": {"type": "text", "text": "Paris"}, "model": "model-1", "stopReason": "endTurn"}
    assert answers[:2] == [{"result": said}] * 2
    assert "error" in answers[2]
    assert [request.max_tokens for request in model.asked] == [4096, 4096]
    assert (await turns.spent(CALL)).tokens == 8


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"messages": [], "maxTokens": 1},
        {**ASKED, "tools": [{"name": "t"}]},
        {"messages": [{"role": "user", "content": {"type": "image", "data": "AAAA"}}], "maxTokens": 1},
        {"messages": ["text"], "maxTokens": 1},
        {"messages": [{"role": "user", "content": {"type": "text", "text": "x" * 70_000}}], "maxTokens": 1},
    ],
)
async def test_what_our_model_is_not_asked_is_refused(database: Database, tmp_path: Path, params: dict[str, JsonValue]) -> None:
    sampling = ModelSampling(Model(), Prices(), turns_of(database, tmp_path))
    assert cast("dict[str, JsonValue]", (await sampling.answer(CALL, 1, params))["error"])["code"] == -32602


async def test_a_model_that_does_not_answer_is_an_error_of_the_protocol(database: Database, tmp_path: Path) -> None:
    sampling = ModelSampling(Model(is_busy=True), Prices(), turns_of(database, tmp_path))
    assert await sampling.answer(CALL, 1, ASKED) == {"error": {"code": -32603, "message": "It is busy."}}
