"""One more check and one more effect are one file and one line each, and every call uses them."""

from typing import TYPE_CHECKING

import pytest
from pydantic import JsonValue

from engine.calls.checks import CHECKS
from engine.calls.effects import EFFECTS
from tests.calls import second_check, second_effect
from tests.calls.test_admission import admitted, refused
from toolagent.contracts.calls import ErrorType

if TYPE_CHECKING:
    from tests.calls.conftest import Desk


async def test_a_check_and_an_effect_are_a_file_and_a_line_each(desk: "Desk", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("engine.calls.admission.CHECKS", (*CHECKS, second_check.CHECK))
    monkeypatch.setattr("engine.calls.settlement.EFFECTS", (*EFFECTS, second_effect.EFFECT))
    stranger: dict[str, JsonValue] = {"caller_id": "somebody-else"}
    admitted(await desk.admit("pure", {"a": 1}, "call-11111111"))
    result = refused(await desk.admit("pure", {"a": 1}, "call-22222222", caller=stranger))
    assert result.error_type is ErrorType.PERMISSION_DENIED
    assert second_effect.SEEN == ["call-22222222"]
    assert (await desk.calls.get("call-22222222")) is not None
