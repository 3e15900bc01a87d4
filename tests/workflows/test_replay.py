"""Recorded histories of every workflow can be replayed, in Temporal's sandbox."""

import getpass
import json
import re
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest
from temporalio import workflow
from temporalio.client import Client, WorkflowHistory
from temporalio.worker import Replayer
from temporalio.workflow import NondeterminismError

from tests.workflows.changed import Changed
from tests.workflows.ends import end_of
from tests.workflows.fingerprints import difference, fingerprint
from tests.workflows.record import BEFORE, FINGERPRINTS, FOLDER, IDENTITY, ROOT, keep, stored, with_unplayed
from tests.workflows.scenarios import SCENARIOS, Scenario, play
from toolagent_service.plugin import service_plugin
from workers.temporal.host_workers import WORKFLOWS
from workflows.outcome import OutcomeInterceptor

NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))
REMEDY = "If the change is meant: calls that are under way during an update need `workflow.patched`; then run `make histories`."


@cache
def histories() -> Mapping[str, WorkflowHistory]:
    """The histories by name, read on demand, because reading takes a second and every process collects the tests."""
    return stored()


def names_of(kinds: tuple[type, ...]) -> set[str]:
    return {str(definition.name) for kind in kinds if (definition := workflow._Definition.from_class(kind))}


def committed() -> dict[str, list[str]]:
    return json.loads(FINGERPRINTS.read_text("utf-8"))


async def failures_of(workflows: Sequence[type], histories: Mapping[str, WorkflowHistory]) -> dict[str, Exception]:
    """The failures of a replay by the name of the history. One worker replays all, because making its sandbox takes longest."""

    async def each() -> AsyncIterator[WorkflowHistory]:
        for history in histories.values():
            yield history

    runs = {history.run_id: name for name, history in histories.items()}
    assert len(runs) == len(histories)
    replayer = Replayer(workflows=workflows, plugins=[service_plugin()], interceptors=[OutcomeInterceptor()])
    results = await replayer.replay_workflows(each(), raise_on_replay_failure=False)
    return {runs[run]: failure for run, failure in results.replay_failures.items()}


async def test_every_recorded_history_is_replayed() -> None:
    assert await failures_of(WORKFLOWS, histories()) == {}, REMEDY


async def test_what_began_before_a_patch_is_replayed() -> None:
    before = stored(BEFORE)
    assert before
    assert await failures_of(WORKFLOWS, before) == {}


@pytest.mark.parametrize(
    ("patch", "name"),
    [
        ("launched-by-outcome", "ToolGroup-refused-after-it-was-sent"),
        ("unlisted-if-all-are-of-others", "ToolGroup-stopped-by-a-list-without-names"),
        ("stops-answered-once", "ToolGroup-stopped-by-three"),
        ("row-written-again", "ToolGroup-asked-for-its-row"),
    ],
)
async def test_what_began_before_a_patch_is_not_replayed_without_its_old_side(
    monkeypatch: pytest.MonkeyPatch, patch: str, name: str
) -> None:
    """Else its history would show nothing."""
    is_patched = workflow.patched

    def is_new(asked: str) -> bool:
        return asked == patch or is_patched(asked)

    monkeypatch.setattr(workflow, "patched", is_new)
    failures = await failures_of(WORKFLOWS, {name: stored(BEFORE)[name]})
    # The result of another step cannot be read as that of the one that is new.
    assert {failed: isinstance(failure, NondeterminismError | RuntimeError) for failed, failure in failures.items()} == {name: True}


async def test_a_workflow_that_does_something_else_fails_replay() -> None:
    one_of_each = {name.partition("-")[0]: (name, history) for name, history in histories().items()}
    failures = await failures_of([Changed], dict(one_of_each.values()))
    assert {name: type(failure) for name, failure in failures.items()} == {name: NondeterminismError for name, _ in one_of_each.values()}


def test_every_workflow_and_every_path_is_recorded() -> None:
    recorded = {history.events[0].workflow_execution_started_event_attributes.workflow_type.name for history in histories().values()}
    assert recorded == names_of(WORKFLOWS)
    assert sorted(histories()) == sorted(scenario.name for scenario in SCENARIOS), "Run `make histories`."


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_path_ends_as_is_said_beside_it(scenario: Scenario) -> None:
    assert end_of(histories()[scenario.name]).startswith(scenario.walk.ends)


@pytest.mark.parametrize("name", NAMES)
def test_a_history_carries_the_flags_without_which_replay_does_not_look(name: str) -> None:
    assert any(event.workflow_task_completed_event_attributes.sdk_metadata.core_used_flags for event in histories()[name].events)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_a_history_names_no_machine(path: Path) -> None:
    text = path.read_text("utf-8")
    places = [str(ROOT), str(Path.home()), socket.gethostname(), f"{getpass.getuser()}@"]
    assert [place for place in places if len(place) > 3 and place in text] == []
    assert IDENTITY in (identities := {*re.findall(r'"identity": "([^"]*)"', text)})
    assert identities <= {IDENTITY, "history-service"}


def test_the_recorded_histories_have_the_committed_fingerprints() -> None:
    found = {name: fingerprint(history) for name, history in histories().items()}
    assert not (changes := difference(committed(), found)), f"Run `make histories`:\n{changes}"


async def test_the_workflows_of_today_issue_the_committed_commands(temporal: Client) -> None:
    played = {scenario.name: scenario.walk.ends for scenario in SCENARIOS if not scenario.slow}
    histories = await play(temporal, [scenario for scenario in SCENARIOS if scenario.name in played])
    assert {name: end for name, history in histories.items() if not (end := end_of(history)).startswith(played[name])} == {}
    found = {name: fingerprint(history) for name, history in histories.items()}
    expected = {name: lines for name, lines in committed().items() if name in found}
    assert not (changes := difference(expected, found)), f"A workflow asks Temporal for something else.\n{changes}\n{REMEDY}"


def test_a_difference_of_fingerprints_is_shown_command_by_command() -> None:
    shown = difference({"A": ["admit", "settle"]}, {"A": ["admit", "call", "settle"], "B": []})
    assert {"+  call", "+B:"} <= set(shown.splitlines())
    assert difference({"A": ["admit"]}, {"A": ("admit",)}) == ""


def test_a_history_whose_commands_are_the_same_is_not_recorded_anew(tmp_path: Path) -> None:
    folder, fingerprints = tmp_path / "histories", tmp_path / "fingerprints.json"
    first, alike, other = (histories()[f"InvokeTool-{path}"] for path in ("fast", "refused", "ordinary"))
    assert fingerprint(first) == fingerprint(alike) != fingerprint(other)
    assert keep({"a": first, "b": first, "gone": first}, folder, fingerprints) == ["a", "b", "gone"]
    assert keep({"a": alike, "b": other}, folder, fingerprints) == ["b"]
    assert stored(folder) == {"a": histories()["InvokeTool-fast"], "b": other}
    assert json.loads(fingerprints.read_text("utf-8")) == {"a": [*fingerprint(first)], "b": [*fingerprint(other)]}


def test_a_path_that_was_not_played_stays_recorded_as_long_as_there_is_one() -> None:
    first, other = (histories()[f"InvokeTool-{path}"] for path in ("fast", "ordinary"))
    assert with_unplayed({"a": other}, {"a": first, "b": first, "gone": first}, {"a", "b"}) == {"a": other, "b": first}
