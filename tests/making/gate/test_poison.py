"""The input that ended the process of a version is tried first on its repair."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest
from pydantic import JsonValue

from engine.making.gate import CHECKS
from engine.making.gate.judging import judge
from engine.making.mending.poison import NAME, poison_of
from tests.making.gate.conftest import Court, entry_of
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.making import CheckResult
from toolagent.contracts.manifest import SideEffectScope
from toolagent.contracts.quarantine import QuarantinedInput
from toolagent.contracts.task_specs import Example

PRESENT = entry_of().manifest
ZERO: dict[str, JsonValue] = {"numbers": [0], "operation": "sum"}
ENDS = ("total = sum(numbers)", "total = os._exit(3) if numbers == [0] else sum(numbers)")


def quarantined(params: dict[str, JsonValue] | None) -> QuarantinedInput:
    at = datetime(2026, 11, 24, tzinfo=UTC)
    return QuarantinedInput(tool_id="reckoner", version="1.0.0", input="0", params=params, crashes=2, error="It ended.", quarantined_at=at)


async def asked(court: Court, entry: ToolEntry, *inputs: QuarantinedInput) -> CheckResult:
    async with court.subject(entry, given=(), withheld=()) as subject:
        judgement = await judge(subject, checks=(CHECKS[0], poison_of(PRESENT, inputs)))
    return judgement.checks[-1]


@pytest.mark.promise("quarantined-inputs")
async def test_a_candidate_that_still_ends_is_refused(court: Court, spoilt: Callable[..., ToolEntry]) -> None:
    told = await asked(court, spoilt(ENDS), quarantined(ZERO))
    assert (told.check, told.passed, told.applies) == (NAME, False, True)
    assert "0 of 1 inputs that ended its process before were answered" in told.details


async def test_one_that_answers_or_refuses_them_as_wrong_passes(court: Court, spoilt: Callable[..., ToolEntry]) -> None:
    told = await asked(court, spoilt(), quarantined(ZERO), quarantined({"numbers": [], "operation": "mean"}))
    assert (told.passed, told.applies) == (True, True), told.details


def test_secrets_files_examples_and_what_was_too_large_are_left_out() -> None:
    secret, file = quarantined({"numbers": "***"}), quarantined({"numbers": ["file_" + "0" * 32]})
    poison = poison_of(PRESENT, (quarantined(None), secret, file, quarantined(ZERO)), (Example(input=ZERO, expected_output={"result": 0}),))
    assert poison.inputs == ()
    assert poison.left_out is not None
    assert sum(poison.left_out.values()) == 4


async def test_a_tool_that_acts_elsewhere_is_not_asked_without_a_test_mode(court: Court) -> None:
    acts = entry_of()
    manifest = acts.manifest.model_copy(update={"side_effect_scope": SideEffectScope.NETWORK})
    hosts = manifest.security_context.network_access.model_copy(update={"allow_hosts": ("example.com",)})
    context = manifest.security_context.model_copy(update={"network_access": hosts})
    entry = acts.model_copy(update={"manifest": manifest.model_copy(update={"security_context": context})})
    async with court.subject(entry, given=(), withheld=()) as subject:
        told = await poison_of(entry.manifest, (quarantined(ZERO),))(subject)
    assert (told.passed, told.applies) == (True, False)
