"""`python -m tests.system.killed_builds`: makes tools while the service is killed, or the task cancelled, at random moments.

Ends with 1 if a promise was broken. The tests do the same with fewer builds.
"""

import argparse
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from bench.processes import end_in_order
from tests.system.catalog import make_catalog
from tests.system.making_tasks import (
    asked,
    conversation,
    cost_of_turns,
    ended,
    evidence,
    key_that_withholds,
    left_of,
    rows,
    serving,
    task,
    word_counter,
)
from tests.system.service_process import ServiceProcess, run_tool
from tests.system.waiting import wait_until
from toolagent.contracts.making import Stage
from toolagent.contracts.making_views import MakingTask
from toolagent.contracts.tasks import TaskState
from toolagent.testing.servers.model_server import ModelServer
from toolagent.testing.servers.scenario import Scenario

__all__ = ["LINES", "Outcome", "cancelled_build", "killed_build", "scripted"]

LINES = 30
"""So many, at least, the log of a task has when its tool is registered."""

_TURN_S = 0.2
_TURNS = 5
"""Of the scenario."""

_BETWEEN_S = 0.3
_REACHED_S, _LOOK_S = 180.0, 0.05
_TOO_LATE = (Stage.REGISTER, Stage.ANNOUNCE)


@dataclass
class Outcome:
    """The outcome of one build: the `moments` when it was disturbed, and the broken promises (`faults`)."""

    tool_id: str
    moments: list[str] = field(default_factory=list[str])
    status: TaskState = TaskState.PENDING
    seconds: float = 0.0
    faults: list[str] = field(default_factory=list[str])

    def require(self, what: str, seen: object, meant: object) -> None:
        if seen != meant:
            self.faults.append(f"{what}: {seen!r}, not {meant!r}")


def scripted(tool_ids: Sequence[str]) -> Scenario:
    """A model that makes a word counter with each of these names, in slow turns."""
    return Scenario(seconds=_TURN_S, conversations=tuple(conversation("word_counter", tool_id) for tool_id in tool_ids))


def killed_build(service: ServiceProcess, model: ModelServer, tool_id: str, kills: int, chance: random.Random) -> Outcome:
    """One build whose service is killed by SIGKILL this number of times and restarted. The result is checked, and the tool removed."""
    outcome, began = Outcome(tool_id), time.monotonic()
    task_id, paid, made_before = _begun(service, tool_id), list[tuple[set[int], dict[int, int]]](), _environments(service)
    for _ in range(kills):
        there = _wait(service, task_id, chance.randrange(LINES // kills), chance.random() * _BETWEEN_S)
        if there.ended_at is not None:
            break
        outcome.moments.append(_told(there))
        service.kill()
        # What is served to its end but not recorded is paid again, as the page says; what is recorded is not.
        paid.append((_recorded(service, task_id), _served(model, tool_id)))
        service.start()
    made = ended(service, task_id)
    outcome.status, outcome.seconds = made.status, time.monotonic() - began
    outcome.require("status", (made.status, made.reason), (TaskState.COMPLETED, f"{tool_id} can be called."))
    if outcome.faults:
        return outcome
    _require_one(service, outcome, task_id)
    served = _served(model, tool_id)
    for recorded, then in paid:
        outcome.require("turns that were recorded and paid again", [turn for turn in recorded if served[turn] > then[turn]], [])
    outcome.require("turns in the ledger", _recorded(service, task_id), {*served})
    outcome.require("cost", round(made.cost_usd, 9), cost_of_turns(len(served)))
    outcome.require("more than one environment", len(_environments(service) - made_before) > 1, False)
    _require_proof(service, outcome, made)
    # The scenario says which words may be nowhere in what the model is asked.
    outcome.require("what the model was to be asked", [fault for fault in model.unmet() if tool_id in fault], [])
    result = run_tool(service.http, tool_id, {"text": "b a b c"})[1].result
    outcome.require("its answer", result, {"words": 4, "most_common": "b"})
    service.http.delete(f"/tools/{tool_id}").raise_for_status()
    outcome.require("left", left_of(service, task_id, tool_id).keys() - {"tools", "calls/"}, set[str]())
    return outcome


def cancelled_build(service: ServiceProcess, tool_id: str, chance: random.Random) -> Outcome:
    """One build that is cancelled at a moment, and what is left of it. If the build ended before, its tool is removed."""
    outcome, began = Outcome(tool_id), time.monotonic()
    task_id = _begun(service, tool_id)
    there = _wait(service, task_id, chance.randrange(LINES), chance.random() * _BETWEEN_S)
    outcome.moments.append(_told(there))
    answer = service.http.post(f"/tasks/{task_id}/cancel")
    heard = task(service, task_id)
    made = ended(service, task_id)
    outcome.status, outcome.seconds = made.status, time.monotonic() - began
    if made.status is TaskState.COMPLETED:
        # What is being registered is not taken back; before that a cancellation holds.
        outcome.require(f"completed though cancelled at {heard.stage}", heard.ended_at is not None or heard.stage in _TOO_LATE, True)
        _require_one(service, outcome, task_id)
        service.http.delete(f"/tools/{tool_id}").raise_for_status()
        return outcome
    outcome.require("the cancel's answer", answer.is_success, True)
    outcome.require("status", (made.status, made.reason.partition(".")[0]), (TaskState.CANCELLED, "It was cancelled"))
    outcome.require("left", left_of(service, task_id, tool_id), {})
    outcome.require("its log", bool(made.log), True)
    return outcome


def _begun(service: ServiceProcess, tool_id: str) -> str:
    spec = word_counter(tool_id)
    # The scenario says which example must be nowhere in what the model is asked.
    return asked(service, spec, key_that_withholds(spec, 2))


def _require_one(service: ServiceProcess, outcome: Outcome, task_id: str) -> None:
    """Requires one environment, one registration and one announcement."""
    versions = evidence(service, outcome.tool_id).versions
    outcome.require("versions", [one.evidence is not None and one.evidence.task_id for one in versions], [task_id])
    for table in ("sources", "evidence"):
        found = rows(service, f"SELECT count(*) FROM {table} WHERE tool_id = ?", outcome.tool_id)  # noqa: S608
        outcome.require(table, found[0][0], 1)
    found = rows(service, "SELECT count(*) FROM task_notes WHERE task_id = ? AND kind = 'tool_ready'", task_id)
    outcome.require("announcements", found[0][0], 1)


def _require_proof(service: ServiceProcess, outcome: Outcome, made: MakingTask) -> None:
    """Requires the evidence of the version."""
    proof = evidence(service, outcome.tool_id).versions[0].evidence
    if proof is None:
        outcome.faults.append("It has no evidence.")
        return
    outcome.require("behaviour", proof.behaviour, "verified")
    outcome.require("its model", (proof.provider, proof.model), ("anthropic", "claude-sonnet-5"))
    outcome.require("its prompts", [prompt.partition("@")[0] for prompt in proof.prompts], ["coding"])
    outcome.require("turns, cost and tokens", (proof.turns, proof.cost_usd, proof.tokens), (_TURNS, made.cost_usd, made.tokens))
    outcome.require("a lock", proof.lock is not None, True)
    outcome.require("checks that failed", [check.check for check in proof.checks if not check.passed], [])


def _wait(service: ServiceProcess, task_id: str, lines: int, more_s: float) -> MakingTask:
    """Wait until the log of the task is this number of lines longer, and a little more; or until the task has ended."""
    before = _lines(service, task_id)

    def reached() -> bool:
        return _lines(service, task_id) >= before + lines or task(service, task_id).ended_at is not None

    wait_until(reached, f"the log of {task_id} is {lines} lines longer", _REACHED_S, _LOOK_S)
    time.sleep(more_s)  # anywhere between two lines
    return task(service, task_id)


def _lines(service: ServiceProcess, task_id: str) -> int:
    return int(str(rows(service, "SELECT count(*) FROM task_notes WHERE task_id = ?", task_id)[0][0]))


def _told(there: MakingTask) -> str:
    return f"{there.stage or there.status.value}: {(there.progress or there.log[-1] if there.log else '')[-60:]}"


def _recorded(service: ServiceProcess, task_id: str) -> set[int]:
    """The recorded turns by number. Each has one line in the ledger, with its key."""
    turns = rows(service, "SELECT key FROM model_turns WHERE conversation_id = ?", task_id)
    return {int(str(key).removeprefix("turn-")) for (key,) in turns}


def _served(model: ModelServer, tool_id: str) -> dict[int, int]:
    return {turn.turn: turn.served for turn in model.turns() if turn.conversation == tool_id}


def _environments(service: ServiceProcess) -> set[str]:
    """Complete environments of tools. They are named by their content, so another tool may have the same."""
    return {path.name for path in service.environments.glob("*.json")}


def main(arguments: Sequence[str]) -> int:
    """Returns 1 if a promise was broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.system.killed_builds", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the moments follow from it")
    parser.add_argument("--killed", type=int, default=10, help="builds whose service is killed")
    parser.add_argument("--kills", type=int, default=1, help="how often in each of them")
    parser.add_argument("--cancelled", type=int, default=10, help="builds that are cancelled")
    given = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, end_in_order)
    console, faults, cancelled = Console(width=200, highlight=False, markup=False), 0, 0
    for outcome in _outcomes(given.seed, given.killed, given.kills, given.cancelled):
        faults += len(outcome.faults)
        cancelled += outcome.status is TaskState.CANCELLED
        moments = " | ".join(outcome.moments) or "no moment"
        console.print(f"{outcome.tool_id} {outcome.status.value} in {outcome.seconds:.1f} s; at {moments}")
        for fault in outcome.faults:
            console.print(f"  BROKEN {fault}")
    if given.cancelled and not cancelled:
        faults += 1
        console.print("BROKEN no build was cancelled")
    console.print(f"{faults} promises broken.")
    return 1 if faults else 0


def _outcomes(seed: int, killed: int, kills: int, cancelled: int) -> Iterator[Outcome]:
    chance = random.Random(seed)  # noqa: S311 - moments
    to_kill = [f"killed_{number:02}" for number in range(1, killed + 1)]
    to_cancel = [f"cancelled_{number:02}" for number in range(1, cancelled + 1)]
    with tempfile.TemporaryDirectory(prefix="tool-agent-builds-") as name:
        folder = Path(name)
        # Tools are run as somebody else, who has to find the way in.
        folder.chmod(0o711)
        with serving(folder, make_catalog(folder), scripted([*to_kill, *to_cancel])) as (service, model):
            for tool_id in to_kill:
                yield killed_build(service, model, tool_id, kills, chance)
            for tool_id in to_cancel:
                yield cancelled_build(service, tool_id, chance)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
