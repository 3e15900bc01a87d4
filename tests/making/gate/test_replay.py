"""A repaired version answers earlier successful calls as before, or it is refused."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
from pydantic import JsonValue

from engine.making.gate import CHECKS
from engine.making.gate.judging import Judgement, judge
from engine.making.mending.repairs import Repairs
from engine.making.mending.replay import NAME, ReplayLimits, recorded_calls
from engine.store.calls import CallTable
from engine.store.database import Database
from engine.store.evidence import EvidenceTable
from engine.store.quarantine import QuarantineTable
from tests.making.gate.conftest import INPUT, Court, entry_of, failed_checks
from tests.parts import tool_registry
from toolagent.contracts.calls import ToolResult
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.making import Candidate, CheckResult
from toolagent.contracts.manifest import SideEffectScope, ToolManifest
from toolagent.contracts.records import CallRecord
from toolagent.contracts.task_specs import Example, RepairTool

Spoilt = Callable[..., ToolEntry]

AT = datetime(2026, 11, 21, 12, tzinfo=UTC)
TASK = "repair_00000001"
SUM: dict[str, JsonValue] = {"numbers": [1, 2, 3], "operation": "sum"}
SIX: JsonValue = {"result": 6, "count": 3}
PRESENT = entry_of().manifest
TESTED = PRESENT.model_copy(
    update={
        "side_effect_scope": SideEffectScope.NETWORK,
        "test_mode": {"dry_run": True},
        "input_schema": {**INPUT, "properties": {**cast("JsonSchema", INPUT["properties"]), "dry_run": {"type": "boolean"}}},
    }
)
"""It acts, but for calls with `dry_run`."""

DRY = (
    ('set(params) != {"numbers", "operation"}', 'set(params) - {"dry_run"} != {"numbers", "operation"}'),
    ("def reckon(numbers: list, operation: str)", "def reckon(numbers: list, operation: str, dry_run: bool = False)"),
    ("    total = sum(numbers)\n", '    if not dry_run:\n        raise ValueError("it acts")\n    total = sum(numbers) + MORE\n'),
)


def record(
    number: int, params: dict[str, JsonValue], result: JsonValue, version: str = "1.0.0", *, is_reference: bool = False
) -> CallRecord:
    at, call_id = AT + timedelta(seconds=number), f"call-{number:08}"
    ended = ToolResult(status="success", result=result, is_reference=is_reference, executed_at=at, call_id=call_id, tool_id="reckoner")
    return CallRecord(
        call_id=call_id,
        tool_id="reckoner",
        version=version,
        fingerprint="f",
        workflow_id="w",
        run_id="r",
        params=params,
        created_at=at,
        settled_at=at,
        result=ended,
    )


@pytest.fixture
def repairs(database: Database) -> Repairs:
    return Repairs(tool_registry(database), CallTable(database), EvidenceTable(database), QuarantineTable(database))


async def judged(court: Court, repairs: Repairs, made: ToolEntry, *recorded: CallRecord, manifest: ToolManifest = PRESENT) -> Judgement:
    """The judgement of a replacement of the good tool, after these calls."""
    present = entry_of().model_copy(update={"manifest": manifest})
    await repairs.registry.register(present.manifest, present.sources)
    for one in recorded:
        assert one.result is not None
        await repairs.calls.settle(one, one.result, ())
    entry = await repairs.successor(TASK, "reckoner", "1.0.0", Candidate(entries=(made,)))
    replay = await repairs.replay(RepairTool(tool_id="reckoner"), "1.0.0")
    async with court.subject(entry, given=(), withheld=()) as subject:
        return await judge(subject, checks=(CHECKS[0], replay))


def of_replay(judgement: Judgement) -> CheckResult:
    (found,) = (check for check in judgement.checks if check.check == NAME)
    return found


@pytest.mark.promise("good-answers-stay")
async def test_a_repair_that_breaks_a_recorded_good_call_is_refused(court: Court, repairs: Repairs, spoilt: Spoilt) -> None:
    breaks = spoilt(("total = sum(numbers)", "total = sum(numbers) + (numbers == [1, 2, 3])"))
    mean: dict[str, JsonValue] = {"numbers": [2, 4], "operation": "mean"}
    judgement = await judged(court, repairs, breaks, record(1, SUM, SIX), record(2, mean, {"result": 3.0, "count": 2}))
    assert failed_checks(judgement) == [NAME]
    assert "1 of 2 calls were answered as before." in judgement.for_the_maker
    assert "at $.result 6 came before and 7 now" in judgement.for_the_maker


async def test_a_repair_that_changes_nothing_else_passes(court: Court, repairs: Repairs, spoilt: Spoilt) -> None:
    judgement = await judged(court, repairs, spoilt(), record(1, SUM, SIX))
    assert (judgement.for_the_maker, of_replay(judgement).applies) == ("", True)


async def test_what_was_answered_and_is_refused_now_is_broken_and_so_is_a_field_more(
    court: Court, repairs: Repairs, spoilt: Spoilt
) -> None:
    refuses = spoilt(
        ('if operation == "mean" and not numbers:', "if numbers:"), ('"count": len(numbers)', '"count": len(numbers), "new": 1')
    )
    empty: dict[str, JsonValue] = {"numbers": [], "operation": "sum"}
    judgement = await judged(court, repairs, refuses, record(1, SUM, SIX), record(2, empty, {"result": 0, "count": 0}))
    assert "0 of 2 calls" in judgement.for_the_maker
    assert "it refused the input" in judgement.for_the_maker
    assert "at $.new null came before and 1 now" in judgement.for_the_maker


async def test_where_results_differed_among_themselves_only_their_shape_counts(court: Court, repairs: Repairs, spoilt: Spoilt) -> None:
    differing = record(1, SUM, SIX), record(2, SUM, {"result": 60, "count": 3})
    passed = await judged(court, repairs, spoilt(("total = sum(numbers)", "total = sum(numbers) + 1")), *differing)
    assert (passed.for_the_maker, of_replay(passed).applies) == ("", True)


async def test_a_shape_that_its_schema_does_not_allow_is_broken(court: Court, repairs: Repairs, spoilt: Spoilt) -> None:
    differing = record(1, SUM, SIX), record(2, SUM, {"result": 60, "count": 3})
    failed = await judged(court, repairs, spoilt(('"count": len(numbers)', '"count": "many"')), *differing)
    assert failed_checks(failed) == [NAME]


async def test_without_calls_it_does_not_apply(court: Court, repairs: Repairs, spoilt: Spoilt) -> None:
    judgement = await judged(court, repairs, spoilt())
    assert (judgement.for_the_maker, of_replay(judgement).applies) == ("", False)


async def test_a_call_that_may_change_something_is_not_made_again(court: Court, spoilt: Spoilt) -> None:
    acting = PRESENT.model_copy(update={"side_effect_scope": SideEffectScope.NETWORK})
    async with court.subject(spoilt()) as subject:
        result = await recorded_calls(acting, [record(1, SUM, {"result": 7})], ["1.0.0"])(subject)
    assert (result.passed, result.applies) == (True, False)
    assert "network" in result.details


def acting(spoilt: Spoilt, *changes: tuple[str, str], more: int = 0, **said: object) -> ToolEntry:
    """A candidate that fails in real calls; `more` is added to its sums."""
    made = spoilt(*DRY, *changes, ("HOME = Path(", f"MORE = {more}\nHOME = Path("))
    return made.model_copy(update={"manifest": TESTED.model_copy(update=said)})


NINE = record(1, {"numbers": [9], "operation": "sum"}, {"result": 90, "count": 10})
"""A call that did something. In test mode another result comes of it."""


@pytest.mark.parametrize(("more", "passed"), [(0, True), (1, False)])
async def test_a_tool_with_a_test_mode_is_asked_in_that_and_gives_what_it_gave_in_it(
    court: Court, repairs: Repairs, spoilt: Spoilt, more: int, *, passed: bool
) -> None:
    tested = record(2, {**SUM, "dry_run": True}, SIX)
    judgement = await judged(court, repairs, acting(spoilt, more=more), NINE, tested, manifest=TESTED)
    found = of_replay(judgement)
    assert (not judgement.for_the_maker, found.passed, found.applies) == (passed, passed, True)
    assert f"{1 + passed} of 2 calls" in found.details
    assert passed or "at $.result 6 came before and 7 now" in found.details


async def test_what_comes_in_test_mode_has_the_form_that_the_version_in_use_says(court: Court, repairs: Repairs, spoilt: Spoilt) -> None:
    """The output schema of the candidate does not count."""
    made = acting(spoilt, ('"count": len(numbers)', '"count": "many"'), output_schema={"type": "object"})
    judgement = await judged(court, repairs, made, NINE, manifest=TESTED)
    assert failed_checks(judgement) == [NAME]
    assert "not what the output schema in use allows, at $.count" in of_replay(judgement).details


async def test_without_an_output_schema_it_is_of_the_kind_that_came_before(court: Court, spoilt: Spoilt) -> None:
    said = TESTED.model_copy(update={"output_schema": {}})
    replay = recorded_calls(said, [record(1, NINE.params, [90])], ["1.0.0"])
    async with court.subject(acting(spoilt, output_schema={})) as subject:
        result = await replay(subject)
    assert not result.passed
    assert "the result is an object, and a list came before" in result.details


def test_in_test_mode_calls_are_made_once_and_those_that_do_not_fit_with_it_are_left_out() -> None:
    alone: JsonSchema = {**TESTED.input_schema, "dependentSchemas": {"dry_run": {"properties": {"operation": {"const": "sum"}}}}}
    mean: dict[str, JsonValue] = {"numbers": [2], "operation": "mean"}
    records = [record(3, SUM, 1), record(2, {**SUM, "dry_run": True}, SIX), record(1, mean, {"result": 2.0, "count": 1})]
    replay = recorded_calls(TESTED.model_copy(update={"input_schema": alone}), records, ["1.0.0"])
    (call,) = replay.calls
    assert (call.params, call.results, call.is_new) == ({**SUM, "dry_run": True}, (SIX,), False)
    assert [*replay.left_out.values()] == [1]
    example = Example(input=SUM, expected_output={"result": 7})
    assert recorded_calls(TESTED, records[:2], ["1.0.0"], [example]).calls == ()


def test_a_tool_that_changes_nothing_is_asked_as_it_was() -> None:
    harmless = TESTED.model_copy(update={"side_effect_scope": SideEffectScope.NONE})
    assert [call.params for call in recorded_calls(harmless, [record(1, SUM, SIX)], ["1.0.0"]).calls] == [SUM]


def test_each_input_is_asked_once_and_no_more_than_a_number_of_them() -> None:
    records = [record(number, {"numbers": [number % 40], "operation": "sum"}, {"result": number % 40}) for number in range(100, 0, -1)]
    replay = recorded_calls(PRESENT, records, ["1.0.0"], limits=ReplayLimits(calls=25))
    assert [call.params["numbers"] for call in replay.calls][:2] == [[20], [19]]
    assert len(replay.calls) == 25
    assert all(call.is_steady for call in replay.calls)


def test_calls_with_secrets_files_and_references_are_left_out_and_counted() -> None:
    properties: JsonValue = {"key": {"type": "string", "writeOnly": True}, "image": {"type": "string", "format": "file-path"}}
    present = ToolManifest(tool_id="reckoner", name="R", side_effect_scope=SideEffectScope.NONE, input_schema={"properties": properties})
    records = [
        record(1, {"key": "***"}, 1),
        record(2, {"image": "a.png"}, 1),
        record(3, {"other": f"file_{'0' * 32}"}, 1),
        record(4, {"other": 1}, {"file": "x"}, is_reference=True),
        record(5, {"other": 2}, 2),
    ]
    replay = recorded_calls(present, records, ["1.0.0"])
    assert [call.params for call in replay.calls] == [{"other": 2}]
    assert sorted(replay.left_out.values()) == [1, 1, 2]


def test_answers_of_versions_out_of_use_and_to_examples_count_for_nothing() -> None:
    records = [record(1, SUM, {"result": 60}, "1.1.0"), record(2, {**SUM, "numbers": [5]}, {"result": 5})]
    example = Example(input={"numbers": [5], "operation": "sum"}, expected_output={"result": 50})
    replay = recorded_calls(PRESENT, records, ["1.0.0"], [example])
    assert (replay.calls, sum(replay.left_out.values())) == ((), 1)


def test_what_the_mended_version_answered_counts_more_than_what_others_did() -> None:
    records = [record(1, SUM, {"result": 60}, "0.9.0"), record(2, SUM, SIX)]
    assert [call.results for call in recorded_calls(PRESENT, records, ["1.0.0", "0.9.0"]).calls] == [(SIX,)]


def test_a_call_whose_result_holds_a_secret_is_left_out() -> None:
    """It is known by its name, its form or its schema: the agent that repairs the tool sees these results."""
    schema: JsonSchema = {"properties": {"pin": {"type": "string", "format": "password"}}}
    results: list[JsonValue] = [{"token": "abcd-old"}, [{"note": "use sk-abcdefghijklmnopqrst"}], {"pin": "1234"}, {"max_token": 3}]
    records = [record(number, {"numbers": [number], "operation": "sum"}, result) for number, result in enumerate(results)]
    replay = recorded_calls(PRESENT.model_copy(update={"output_schema": schema}), records, ["1.0.0"])
    assert [call.results for call in replay.calls] == [({"max_token": 3},)]
    assert replay.left_out == {"held a secret, which is not kept": 3}


async def test_a_secret_in_what_comes_now_is_not_told(court: Court, repairs: Repairs, spoilt: Spoilt) -> None:
    made = spoilt(('"count": len(numbers)', '"count": len(numbers), "token": "abcd-new-s3cret"'))
    replay = of_replay(await judged(court, repairs, made, record(1, SUM, SIX)))
    assert not replay.passed
    assert "$.token" in replay.details
    assert "s3cret" not in replay.details
