"""The paths of a session, with a provider that acts as the test says."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from pydantic import JsonValue
from temporalio import activity

from tests.workflows.ends import Walk
from tests.workflows.stage import AnyHandle, Stage
from tests.workflows.steps import cancelled as cancelled_call
from tests.workflows.steps import plan_of
from toolagent.client import names
from toolagent.contracts.calls import ErrorType, ToolError, ToolResult
from toolagent.contracts.groups import GroupRole, ToolGroup
from toolagent.contracts.sessions import GroupUse, OpenSession, SessionEnd, SessionRun, SessionState, SessionView
from toolagent.core.calls.results import failed, succeeded
from toolagent_service import step_names
from toolagent_service.contracts.sessions import OpenStep, SessionLife, SessionStep
from toolagent_service.contracts.steps import Admission, AdmitRequest, Admitted, Answered, CallRequest, Finished, Grouped, SettleRequest
from toolagent_service.groups.roles import session_for

__all__ = ["CALLS", "PATHS", "USES", "Provider", "group_of", "life_of", "opened"]

LOST = ToolError(type=ErrorType.TIMEOUT, message="There was no answer.", details={"outcome": "unknown"})
REFUSED = ToolError(type=ErrorType.PERMISSION_DENIED, message="The key is wrong.")
BUSY = ToolError(type=ErrorType.EXECUTION_ERROR, message="The provider fails.", details={"status_code": 500})
NOWHERE = ToolError(type=ErrorType.EXECUTION_ERROR, message="There is no such launch.", details={"cause": "not_found"})
STRANGE = ToolError(type=ErrorType.UNAVAILABLE, message="It is away.", details={"status_code": [404]})
GONE = ToolError(type=ErrorType.EXECUTION_ERROR, message="There is no such server.", details={"status_code": 404})


@dataclass
class Provider:
    """Rents servers. `launches`, `lists` and `stops` say how each fails, in order; after that all succeed.

    A `LOST` launch has launched a server if `is_found`.
    """

    launches: list[ToolError] = field(default_factory=list[ToolError])
    lists: list[ToolError] = field(default_factory=list[ToolError])
    stops: list[ToolError] = field(default_factory=list[ToolError])
    is_found: bool = True
    unnamed: int = 0
    """How many lists do not name the servers, but for the calls that launched them."""
    has_room: bool = True
    has_row: bool = True
    """Whether its database knows the session."""
    running: dict[str, str] = field(default_factory=dict[str, str])
    """The calls that launched what runs."""
    launched: list[str] = field(default_factory=list[str])
    stopped: list[str] = field(default_factory=list[str])
    worked: list[str] = field(default_factory=list[str])
    alerts: list[str] = field(default_factory=list[str])
    views: list[SessionView] = field(default_factory=list[SessionView])
    hosts: dict[str, str | None] = field(default_factory=dict[str, str | None])
    """Where each tool was to be called."""
    versions: dict[str, str | None] = field(default_factory=dict[str, str | None])
    """Which version of each tool was to be called. Those that are active when it is asked have the number 1.0.0."""
    answers: dict[str, ToolResult] = field(default_factory=dict[str, ToolResult])
    """What is recorded of calls."""
    group: ToolGroup = field(default_factory=lambda: group_of())
    lasts_s: float = 60.0
    """How long a call of a run may take."""
    works: asyncio.Event = field(default_factory=asyncio.Event)
    may_work: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def steps(self) -> list[Callable[..., object]]:
        return [self.admit, self.open_session, self.note_session, self.pin_versions, self.find_group, self.call_tool, self.settle]

    @activity.defn(name=step_names.FIND_GROUP)
    async def find_group(self, group_id: str) -> ToolGroup | None:
        return self.group if group_id == "servers" else None

    @activity.defn(name=step_names.OPEN_SESSION)
    async def open_session(self, step: OpenStep) -> bool | SessionView:
        """A session that has launched before is as recorded."""
        self.has_row = True
        begun = [view for view in self.views if view.session_id == step.view.session_id and view.launch_call_id is not None]
        return begun[-1] if begun and step.view.launch_call_id is None else self.has_room

    @activity.defn(name=step_names.PIN_VERSIONS)
    async def pin_versions(self, group: ToolGroup) -> dict[str, str]:
        return dict.fromkeys((*group.all_tool_ids, "list"), "1.0.0")

    @activity.defn(name=step_names.NOTE_SESSION)
    async def note_session(self, step: SessionStep) -> bool | None:
        self.views.append(step.view)
        self.alerts += [step.alert] if step.alert else []
        return self.has_row

    @activity.defn(name=step_names.ADMIT)
    async def admit(self, request: AdmitRequest) -> Admission:
        if request.alone:
            return self._grouped(request)
        self.hosts[request.call.tool_id] = request.prefer
        self.versions[request.call.tool_id] = request.prefer_version
        if request.instead is not None or request.call_id in self.answers:
            return Answered(result=self._told(request))
        if request.call.params.get("lasts") or request.call.params.get("holds"):
            return Admitted(plan=plan_of(request, queue=activity.info().task_queue))
        if request.call.params.get("slow"):
            await asyncio.sleep(0.5)
        made = {"launch": self._launch, "work": self._work, "stop": self._stop, "list": self._list}
        result = await made[request.call.tool_id](request)
        return Answered(result=self.answers.setdefault(request.call_id, _of_session(request, result)))

    @activity.defn(name=step_names.CALL)
    async def call_tool(self, request: CallRequest) -> Finished:
        """A run lasts until it is cancelled. One that holds, and a launch that has launched, end once they may work."""
        is_launch = request.plan.tool_id == "launch"
        error = self.launches.pop(0) if is_launch and self.launches else None
        server = f"server-{len(self.launched)}" if is_launch and error is None else ""
        if server:
            self.launched.append(server)
            self.running[server] = request.plan.call_id
        self.works.set()
        try:
            while not (self.may_work.is_set() and (is_launch or request.plan.params.get("holds"))):
                activity.heartbeat()
                await asyncio.sleep(0.05)
        except asyncio.CancelledError:
            return cancelled_call()
        if error is not None:
            return Finished(error=error)
        if not is_launch:
            self.worked.append(str(request.plan.params["server_id"]))
        return Finished(output={"server_id": server})

    @activity.defn(name=step_names.SETTLE)
    async def settle(self, request: SettleRequest) -> ToolResult:
        error, plan, at = request.outcome.error, request.plan, activity.info().started_time
        if error is None:
            return succeeded(plan.call_id, plan.tool_id, request.outcome.output, at, execution_time=0.01, metadata={"host": "host-1"})
        return failed(plan.call_id, plan.tool_id, error, at)

    def _told(self, request: AdmitRequest) -> ToolResult:
        """As in a record: the first answer stays."""
        end = request.instead
        if end is None:
            return self.answers[request.call_id]
        result = _failed(request, end.error) if end.error else _made(request, end.output)
        return self.answers.setdefault(request.call_id, _of_session(request, result))

    def _grouped(self, request: AdmitRequest) -> Admission:
        """As admission does: the call has an answer, or a role in a living session."""
        if request.call_id in self.answers:
            return Answered(result=self.answers[request.call_id])
        role = {"launch": GroupRole.LAUNCH, "work": GroupRole.RUN, "stop": GroupRole.STOP}[request.call.tool_id]
        session_id = session_for("servers", request.call_id)
        if role is not GroupRole.LAUNCH:
            server = request.call.params["server_id"]
            named = [view for view in self.views if isinstance(view.launched, dict) and view.launched.get("server_id") == server]
            if not named or named[-1].ended_at is not None:
                return Answered(result=self.answers.setdefault(request.call_id, _failed(request, GONE)))
            session_id = named[-1].session_id
        return Grouped(role=role, group=self.group, session_id=session_id, host="host-1", lasts_s=self.lasts_s)

    async def _launch(self, request: AdmitRequest) -> ToolResult:
        if "launched_by" in request.call.params:
            return _failed(request, NOWHERE)
        if request.call.params.get("waits"):
            self.works.set()
            await self.may_work.wait()
        error = self.launches.pop(0) if self.launches else None
        server = f"server-{len(self.launched)}"
        if error is None or (error is LOST and self.is_found):
            self.launched.append(server)
            self.running[server] = request.call_id
        return _failed(request, error, host="host-1") if error else _made(request, {"server_id": server})

    async def _work(self, request: AdmitRequest) -> ToolResult:
        self.works.set()
        if request.call.params.get("waits"):
            await self.may_work.wait()
        if request.call.params.get("fails"):
            return _failed(request, BUSY)
        self.worked.append(str(request.call.params["server_id"]))
        return _made(request, request.call.params.get("gives", {"worked": True}))

    async def _stop(self, request: AdmitRequest) -> ToolResult:
        if self.stops:
            return _failed(request, self.stops.pop(0))
        self.stopped.append(str(request.call.params["server_id"]))
        self.running.pop(self.stopped[-1], None)
        return _made(request, {})

    async def _list(self, request: AdmitRequest) -> ToolResult:
        if self.lists:
            return _failed(request, self.lists.pop(0))
        self.unnamed, name = max(self.unnamed - 1, 0), "name" if self.unnamed else "server_id"
        servers: list[JsonValue] = [{name: server, "launched_by": call_id} for server, call_id in self.running.items()]
        return _made(request, {"servers": [{"server_id": "of-others"}, *servers]})


def _made(request: AdmitRequest, output: JsonValue) -> ToolResult:
    return succeeded(
        request.call_id, request.call.tool_id, output, activity.info().started_time, execution_time=0.01, metadata={"host": "host-1"}
    )


def _of_session(request: AdmitRequest, result: ToolResult) -> ToolResult:
    session = request.session.model_dump() if request.session is not None else {}
    return result.model_copy(update={"metadata": {**result.metadata, **session}})


def _failed(request: AdmitRequest, error: ToolError, **metadata: JsonValue) -> ToolResult:
    return failed(request.call_id, request.call.tool_id, error, activity.info().started_time, metadata=metadata)


def group_of(*, is_seen: bool = True, parallel: bool = False, **limits: float | None) -> ToolGroup:
    bound: JsonValue = {"server_id": "$.server_id"}
    return ToolGroup.model_validate(
        {
            "group_id": "servers",
            "name": "Servers",
            "tool_ids": ["launch", "work", "stop"],
            "lifecycle": True,
            "steps": [
                {"tool_id": "launch", "role": "launch"},
                {"tool_id": "work", "role": "run", "bindings": bound},
                {"tool_id": "stop", "role": "stop", "bindings": bound},
            ],
            "parallel": parallel,
            "verify": {"tool_id": "list", "items": "$.servers", "launched_by": "$.launched_by"} if is_seen else None,
            "limits": limits,
        }
    )


def life_of(group: ToolGroup, session_id: str, **more: object) -> SessionLife:
    request = OpenSession.model_validate({"session_id": session_id, "group": group, **more})
    return SessionLife(request=request)


async def opened(stage: Stage, provider: Provider, life: SessionLife) -> AnyHandle:
    return await stage.start(names.TOOL_GROUP, life, workflow_id=names.session_workflow("servers", life.request.session_id))


async def _played(stage: Stage, provider: Provider, group: ToolGroup, **more: object) -> AnyHandle:
    """A session that ends by itself."""
    async with stage.workers(provider.steps):
        handle = await opened(stage, provider, life_of(group, f"session-{stage.queue}", **more))
        await handle.result()
    return handle


async def _ready(handle: AnyHandle) -> SessionView:
    """Asks by query, because an update would be at another place in the history each time."""
    async with asyncio.timeout(60):
        while True:
            view = await handle.query(names.SESSION, result_type=SessionView)
            if view.state is SessionState.READY:
                return view
            await asyncio.sleep(0.05)


async def used(stage: Stage) -> AnyHandle:
    provider = Provider()
    async with stage.workers(provider.steps):
        handle = await opened(stage, provider, life_of(group_of(), f"session-{stage.queue}"))
        await _ready(handle)
        await handle.execute_update(names.SESSION)
        await handle.execute_update(names.RUN_IN_SESSION, SessionRun(key="one"), id="run-one")
        await handle.execute_update(names.STOP_SESSION)
        await handle.result()
    return handle


async def scripted(stage: Stage) -> AnyHandle:
    return await _played(stage, Provider(), group_of(parallel=True), runs=[SessionRun(), SessionRun(key="two")])


async def cancelled(stage: Stage) -> AnyHandle:
    provider = Provider()
    async with stage.workers(provider.steps):
        handle = await opened(stage, provider, life_of(group_of(), f"session-{stage.queue}"))
        await _ready(handle)
        await handle.cancel()
        await handle.result()
    return handle


async def restored(stage: Stage) -> AnyHandle:
    """While it lives, an older database is restored."""
    provider = Provider()
    async with stage.workers(provider.steps):
        handle = await opened(stage, provider, life_of(group_of(), f"session-{stage.queue}"))
        await _ready(handle)
        provider.has_row = False
        await handle.cancel()
        await handle.result()
    return handle


async def gone_on(stage: Stage) -> AnyHandle:
    """Its workflow was terminated, and this one makes the stop."""
    provider, life = Provider(), life_of(group_of(), f"session-{stage.queue}")
    async with stage.workers(provider.steps):
        first = await opened(stage, provider, life)
        view = await _ready(first)
        await first.terminate()
        handle = await opened(stage, provider, life.model_copy(update={"view": view, "end": SessionEnd.CANCELLED}))
        await handle.result()
    return handle


async def by_another(stage: Stage, group_id: str) -> AnyHandle:
    async with stage.workers(Provider().steps):
        use = GroupUse(group_id=group_id, runs=(SessionRun(),))
        handle = await stage.start(names.USE_GROUP, use, workflow_id=f"use-{stage.queue}")
        await asyncio.gather(handle.result(), return_exceptions=True)
    return handle


async def one_by_one(stage: Stage, wanted: str) -> AnyHandle:
    """The workflow `wanted` among calls that are made one after the other; slow, so that its waiter waits."""
    async with stage.workers(Provider().steps):
        calls: dict[str, AnyHandle] = {}
        for tool_id in ("launch", "work", "stop"):
            call = {"tool_id": tool_id, "params": {"server_id": "server-0", "slow": True}}
            calls[tool_id] = await stage.start(names.INVOKE_TOOL, call, workflow_id=f"call-{stage.queue}-{tool_id}")
            await calls[tool_id].result()
        session = session_for("servers", calls["launch"].id)
        calls["session"] = stage.client.get_workflow_handle(names.session_workflow("servers", session))
        await calls["session"].result()
    return calls[wanted]


async def leased(stage: Stage) -> AnyHandle:
    provider = Provider()
    async with stage.workers(provider.steps):
        handle = await opened(stage, provider, life_of(group_of(), f"session-{stage.queue}", lease_s=4.0))
        await _ready(handle)
        await asyncio.sleep(2)  # what is left of the lease after the first timer is as long as a busy machine may need to start the next
        await handle.execute_update(names.RENEW_SESSION)
        await handle.result()
    return handle


CALLS: Mapping[str, Walk] = {
    "launches-a-session": Walk(partial(one_by_one, wanted="launch"), "success"),
    "runs-in-a-session": Walk(partial(one_by_one, wanted="work"), "success"),
    "stops-a-session": Walk(partial(one_by_one, wanted="stop"), "success"),
}
"""Of `InvokeTool`."""

USES: Mapping[str, Walk] = {
    "made": Walk(partial(by_another, group_id="servers"), "stopped done"),
    "unknown": Walk(partial(by_another, group_id="others"), "failed"),
}

PATHS: Mapping[str, Walk] = {
    "adopted": Walk(partial(one_by_one, wanted="session"), "stopped asked"),
    "leased": Walk(leased, "stopped lease_expired"),
    "used": Walk(used, "stopped asked"),
    "scripted": Walk(scripted, "stopped done"),
    "cancelled": Walk(cancelled, "stopped cancelled"),
    "restored": Walk(restored, "stopped cancelled"),
    "gone-on": Walk(gone_on, "stopped cancelled"),
    "idle": Walk(lambda stage: _played(stage, Provider(), group_of(idle_timeout_s=2.0)), "stopped idle"),
    "refused": Walk(lambda stage: _played(stage, Provider(launches=[REFUSED]), group_of()), "failed launch_failed"),
    "no-room": Walk(lambda stage: _played(stage, Provider(has_room=False), group_of(max_sessions=1)), "failed refused"),
    "found": Walk(lambda stage: _played(stage, Provider(launches=[LOST]), group_of(idle_timeout_s=2.0)), "stopped idle"),
    "unseen": Walk(lambda stage: _played(stage, Provider(launches=[LOST]), group_of(is_seen=False)), "failed launch_failed"),
    "stopped-late": Walk(lambda stage: _played(stage, Provider(stops=[BUSY, GONE]), group_of(idle_timeout_s=2.0)), "stopped idle"),
}
