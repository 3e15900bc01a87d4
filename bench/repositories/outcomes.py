"""What became of one repository: a task that is waited for, and one call."""

import json
import time
from dataclasses import dataclass, field

import httpx
from pydantic import JsonValue

from bench.repositories.wanted import Wanted, by_hand_of
from bench.service import OurService
from toolagent.contracts.making import Tried
from toolagent.contracts.making_views import MakingTask

_LOOK_S = 0.5
_ENDED = ("completed", "failed", "cancelled")


@dataclass(frozen=True, slots=True)
class Outcome:
    """`called` is None where no call is named for it; `by_hand`, where nobody has tried."""

    wanted: Wanted
    status: str
    seconds: float
    ways: tuple[Tried, ...] = ()
    tool_ids: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    reason: str = ""
    called: bool | None = None
    answer: str = ""
    notes: tuple[str, ...] = field(default=())
    by_hand: bool | None = None
    why: str = ""

    @property
    def line(self) -> str:
        call = {None: "no call", True: "answered rightly", False: f"wrong: {self.answer[:300]}"}[self.called]
        return f"{self.wanted.label:70} {self.status:10} {self.seconds:6.1f} s  {len(self.tool_ids):3} tools  {call}  {self.cause[:90]}"

    @property
    def cause(self) -> str:
        """Of one that became none: the first way that failed, or why there was none."""
        if self.status == "completed":
            return next((f"by {one.found}" for one in self.ways if one.outcome == "passed"), "")
        failed = [f"{one.found}: {one.reason}" for one in self.ways if one.outcome == "failed" and one.way != "coding"]
        return " ".join((failed or [self.reason])[0].split())


def tried(
    service: OurService, wanted: Wanted, url: str, call: dict[str, JsonValue] | None, server: dict[str, JsonValue], seconds: float
) -> Outcome:
    """`server` is what the task says of a server that was started for it."""
    began = time.monotonic()
    by_hand, why = by_hand_of(call)
    spec: dict[str, JsonValue] = {"type": "github_deploy", "repo_url": url, "tool_name": wanted.tool_name}
    extra = (call or {}).get("task")
    spec |= server | (extra if isinstance(extra, dict) else {})
    answer = service.http.post("/create_tool", json={"description": "", "task_spec": spec})
    if answer.is_error:
        return Outcome(wanted, "refused", time.monotonic() - began, reason=answer.text[:500], by_hand=by_hand, why=why)
    task = _ended(service, answer.json()["task_id"], seconds)
    took = time.monotonic() - began
    called, said = _called(service, wanted, call) if task.status == "completed" and call is not None and "params" in call else (None, "")
    evidence = task.evidence
    outcome = Outcome(
        wanted, task.status.value, took, task.tried, task.tool_ids, evidence.left_out if evidence else (), task.reason, called, said,
        evidence.notes if evidence else (), by_hand, why,
    )  # fmt: skip
    for tool_id in task.tool_ids if task.built else ():
        service.http.delete(f"/tools/{tool_id}")
    return outcome


def _ended(service: OurService, task_id: str, seconds: float) -> MakingTask:
    until = time.monotonic() + seconds + 60
    while True:
        task = MakingTask.model_validate(service.http.get(f"/tasks/{task_id}").json())
        if task.status.value in _ENDED:
            return task
        if time.monotonic() > until:
            service.http.post(f"/tasks/{task_id}/cancel")
            until += 60
        time.sleep(_LOOK_S)


def _called(service: OurService, wanted: Wanted, call: dict[str, JsonValue]) -> tuple[bool, str]:
    """Whether what came has what is expected in it."""
    suffix = call.get("tool", "")
    tool_id = f"{wanted.tool_name}_{suffix}" if suffix else wanted.tool_name
    try:
        answer = service.http.post("/run_tool", json={"tool_id": tool_id, "params": call["params"]})
    except httpx.HTTPError as error:
        return False, f"{type(error).__name__}: {error}"
    told: JsonValue = answer.json()
    text = json.dumps(told, ensure_ascii=False)
    return not answer.is_error and all(str(one) in text for one in _list(call.get("expects"))), text[:2_000]


def _list(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else [] if value is None else [value]
