"""Runs a candidate on this host by the usual runtimes, apart from the version in use."""

import asyncio
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import psutil

from engine.calling.exchange import ask, folder_for, outputs_of
from engine.calls.file_parameters import CallFolder, FileParameters, FileRefused
from engine.disk.leftovers import discard
from engine.making.gate.last_words import log_size, raised_in
from engine.making.gate.replies import answered, failed, misfitting, of_status
from engine.making.gate.sightings import Sightings
from engine.making.gate.subject import Account, Came, Params, Reply, is_of_others
from engine.making.uv.outages import Outage, is_outage
from engine.network.peers import peer_client
from engine.runtimes import RUNTIMES
from engine.runtimes.auditing.audit import Audit
from engine.runtimes.environments.network import through
from engine.runtimes.failures import NotSent, RuntimeFailure
from engine.runtimes.http.exchange import HttpExchange
from engine.runtimes.http.reply import read
from engine.runtimes.parts import RuntimeParts
from engine.runtimes.running.dispatch import Dispatch
from engine.runtimes.running.supervisor import StartBudget, Supervisor
from engine.runtimes.runtime import Progress, ToolRequest
from engine.runtimes.scripts.accounts import ScriptAccounts
from engine.runtimes.scripts.service import ScriptService
from toolagent.contracts.calls import Caller, ErrorType
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.routes import ToolRoute
from toolagent.contracts.sources import HttpSource
from toolagent.core.schemas import with_defaults
from toolagent.validation.schemas import find_issues
from toolagent_service.calls.shared_processes import place_of, place_of_calls

_FOLDER = "trials"
_TOOLS, _CALLS, _VOLUMES = "tools", "calls", "volumes"
_HEALTH_S = 5.0
_GONE_S = 20.0
_MAX_BODY_BYTES = 64 * 1024
_UNIX = "unix:"


@dataclass(frozen=True, slots=True)
class TrialLimits:
    """Times are in seconds. `call_s` limits a call, even if its manifest allows more."""

    start_s: float = 120.0
    call_s: float = 30.0
    remote_requests: int = 200
    """Most requests to others' servers in a whole trial."""


def _unheard(_: str) -> None:
    return


class Trial:
    """An OnTrial. `on_trial` makes and ends it."""

    def __init__(
        self,
        entries: tuple[ToolEntry, ...],
        supervisor: Supervisor,
        sightings: Sightings,
        parts: RuntimeParts,
        files: FileParameters | None,
        limits: TrialLimits,
        progress: Progress,
        caller: Caller,
        *,
        is_patient: bool = False,
    ) -> None:
        self._entries = {entry.manifest.tool_id: entry for entry in entries}
        self._supervisor, self._sightings, self._limits = supervisor, sightings, limits
        self._state, self._calls, self._http, self._files = parts.local.state, parts.local.calls, parts.http, files
        self._progress, self._caller, self._is_patient = progress, caller, is_patient
        self._remote = 0
        self._unanswered: str | None = None
        """The tool whose last call has no answer: its process may stay busy for ever."""

    async def start(self) -> None:
        for number, entry in enumerate(self._entries.values(), 1):
            self._progress(f"starts {number}/{len(self._entries)}")
            budget = StartBudget(entry.manifest.tool_id, self._limits.start_s, self._progress)
            try:
                await budget.spend(self._supervisor.start(entry, budget.tell))
            except NotSent as failure:
                self._require_ours(failure)
                raise

    async def health(self, tool_id: str, path: str) -> int | None:
        route = self._supervisor.route(tool_id)
        if route is None or route.endpoint is None:
            return None
        source = self._entries[tool_id].sources[route.active_source]
        self._remote += source.traits.elsewhere
        health = await self._http.health(route.endpoint, path, _HEALTH_S, only_public=source.traits.only_public)
        return health.status if health else None

    async def call(self, tool_id: str, params: Params, *, withheld: bool = False) -> Reply:
        entry = self._entries[tool_id]
        filled = with_defaults(entry.manifest.input_schema, params)
        if issues := await find_issues(entry.manifest.input_schema, filled):
            return Reply(Came.NOT_SENT, message=f"The input does not fit its input schema: {misfitting(issues)}")
        if withheld:
            self._sightings.withhold()
        # The tool's progress could quote its input.
        return await self._asked(entry, filled, _unheard if withheld else self._progress)

    async def send(self, tool_id: str, content: Params | bytes) -> Reply:
        return await self._asked(self._entries[tool_id], content, self._progress)

    async def kill(self, tool_id: str) -> bool:
        route = self._supervisor.route(tool_id)
        if route is None or route.pid is None:
            return False
        self._sightings.will_be_killed(tool_id)
        try:
            psutil.Process(route.pid).kill()
        except psutil.NoSuchProcess:
            return False
        try:
            async with asyncio.timeout(_GONE_S):
                await self._sightings.gone(tool_id)
        except TimeoutError:
            message = f"It was killed, and {_GONE_S:g} s later it was not seen to have ended."
            if self._is_patient:
                raise Outage(message) from None
            raise NotSent(ErrorType.UNAVAILABLE, message) from None
        return True

    async def renew(self) -> None:
        await self._end()
        for left in (_TOOLS, _VOLUMES):
            await asyncio.to_thread(discard, self._state / left)

    def account(self) -> Account:
        return self._sightings.account()

    async def log_size(self, tool_id: str) -> int:
        return await asyncio.to_thread(log_size, self._logs(tool_id))

    async def raised(self, tool_id: str, since: int) -> str:
        return await asyncio.to_thread(raised_in, self._logs(tool_id), since)

    def tell(self, progress: str) -> None:
        self._progress(progress)

    def _logs(self, tool_id: str) -> Path:
        return self._state / _TOOLS / place_of(tool_id, self._entries[tool_id].sources[0])

    async def _asked(self, entry: ToolEntry, content: Params | bytes, progress: Progress) -> Reply:
        """Makes the request in a process that is not busy: a request that got no answer must not delay the next one."""
        if self._unanswered is not None:
            self._sightings.will_be_killed(self._unanswered)
            await self._end()
        self._unanswered = entry.manifest.tool_id
        reply = await (self._post(entry, content) if isinstance(content, bytes) else self._exchange(entry, content, progress))
        if reply.came is Came.SILENCE:
            # The runtime ends a process that does not answer: that does not count as a death.
            self._sightings.will_be_killed(entry.manifest.tool_id)
        else:
            self._unanswered = None
        return reply

    async def _end(self) -> None:
        self._unanswered = None
        await asyncio.gather(*map(self._supervisor.stop, self._entries))

    async def _exchange(self, entry: ToolEntry, params: Params, progress: Progress) -> Reply:
        if is_of_others(entry):
            if self._remote >= self._limits.remote_requests:
                return Reply(Came.SPARED, message=f"At most {self._limits.remote_requests} requests go to a server of others.")
            self._remote += 1
        # The id looks like any call's, so that the tool does not know that it is on trial.
        call_id = f"call-{secrets.token_hex(16)}"
        try:
            place = place_of_calls(entry)
            async with folder_for(entry.manifest, lambda: CallFolder(self._calls, call_id, entry.manifest, place)) as folder:
                timeout_s = min(entry.manifest.timeout_s, self._limits.call_s)
                request = ToolRequest(
                    call_id, params, timeout_s, outputs_of(folder), progress, manifest=entry.manifest, caller=self._caller
                )
                dispatch = Dispatch(entry, request, start_timeout_s=self._limits.start_s)
                reply = await ask(self._supervisor.call, self._files, dispatch, folder)
        except FileRefused as refused:
            return Reply(Came.NOT_SENT, message=refused.error.message)
        except RuntimeFailure as failure:
            self._require_ours(failure)
            return failed(failure)
        return await answered(entry.manifest.output_schema, reply.output)

    async def _post(self, entry: ToolEntry, body: bytes) -> Reply:
        """Sends a request that no call can produce, without the runtime."""
        try:
            route = await self._supervisor.start(entry, self._progress)
            target = _target(entry, route)
            if target is None:
                return Reply(Came.NOT_SENT, message="It takes no requests over HTTP.")
            # The client's limit is for each read: a server that sends a byte a second would block for ever.
            async with asyncio.timeout(self._limits.call_s):
                return await _posted(target, route, body, self._limits.call_s)
        except RuntimeFailure as failure:
            self._require_ours(failure)
            return failed(failure)
        except (TimeoutError, httpx.TimeoutException):
            return Reply(Came.SILENCE, message=f"It did not answer within {self._limits.call_s:g} s.")
        except httpx.HTTPError as error:
            return Reply(Came.LOST, message=f"The connection broke ({type(error).__name__}).")

    def _require_ours(self, failure: RuntimeFailure) -> None:
        """Raises Outage if a service of ours was away and another attempt may succeed."""
        if self._is_patient and isinstance(failure, NotSent) and is_outage(failure):
            raise Outage(failure.message) from failure


@asynccontextmanager
async def on_trial(
    entries: tuple[ToolEntry, ...],
    parts: RuntimeParts,
    *,
    task_id: str,
    files: FileParameters | None = None,
    limits: TrialLimits | None = None,
    progress: Progress = _unheard,
    is_patient: bool = False,
) -> AsyncGenerator[Trial]:
    """The candidate, with nothing started.

    It has its own homes, logs and processes; only the audit sees it. The block's end stops and removes all of it; `sweep_trials`
    removes what a dead worker left. A source's files have to be in the content store or the data folder. `is_patient`: an outage of our
    own services raises Outage inside the block; otherwise it counts against the candidate.
    """
    folder = parts.local.state / _FOLDER / secrets.token_hex(8)
    await asyncio.to_thread(folder.mkdir, parents=True, mode=0o700)
    sightings, http = Sightings(parts.sandboxing.audit), parts.http.unconnected()
    supervisor: Supervisor | None = None
    try:
        environments = parts.sandboxing.environments.for_task(task_id)
        of_task = replace(parts, sandboxing=replace(parts.sandboxing, environments=environments))
        own = replace(apart(of_task, folder, sightings), http=http)
        tags = {source.type for entry in entries for source in entry.sources}
        supervisor = Supervisor({tag: RUNTIMES[tag](own) for tag in tags & RUNTIMES.keys()}, sightings, parts.local.host)
        await asyncio.to_thread(own.local.calls.mkdir)
        caller = Caller(caller_id=task_id, caller_type="gate")
        yield Trial(entries, supervisor, sightings, own, files, limits or TrialLimits(), progress, caller, is_patient=is_patient)
    finally:
        # A second cancellation must not interrupt the clean-up.
        await asyncio.shield(asyncio.ensure_future(_end(supervisor, http, folder)))


def apart(parts: RuntimeParts, folder: Path, audit: Audit) -> RuntimeParts:
    """Parts that keep everything in this folder, apart from the version in use; the audit sees all they do."""
    docker, calls = parts.docker, folder / _CALLS
    return replace(
        parts,
        local=replace(parts.local, state=folder, calls=calls, observed=True),
        sandboxing=replace(parts.sandboxing, audit=audit),
        docker=docker and replace(docker, audit=audit, settings=replace(docker.settings, observed=True, beside=folder, calls=calls)),
        scripts=_scripts(parts.scripts, parts, folder, audit) if parts.scripts else None,
    )


async def sweep_trials(state: Path) -> None:
    """Removes what dead workers left of trials. Call it at start-up, after the state directory is locked and its processes are swept."""
    await asyncio.to_thread(discard, state / _FOLDER)


def _scripts(scripts: ScriptService, parts: RuntimeParts, folder: Path, audit: Audit) -> ScriptService:
    sandbox = parts.sandboxing.sandbox
    if isinstance(sandbox, str):
        return scripts  # it runs none
    network = through(parts.sandboxing.egress, is_apart=sandbox.level.has_own_network, observed=True)
    return scripts.observed(folder / _TOOLS, parts.sandboxing.environments, network, ScriptAccounts(audit, parts.local.host).ran)


async def _end(supervisor: Supervisor | None, http: HttpExchange, folder: Path) -> None:
    try:
        if supervisor is not None:
            await supervisor.close()
    finally:
        await http.aclose()
        await asyncio.to_thread(discard, folder)


async def _posted(target: tuple[str, str], route: ToolRoute, body: bytes, timeout_s: float) -> Reply:
    headers = {"Content-Type": "application/json"}
    endpoint = route.endpoint or ""
    # The server is on this host and speaks no TLS; reading all certificates takes longer than the request.
    transport = httpx.AsyncHTTPTransport(verify=False, uds=endpoint.removeprefix(_UNIX) if endpoint.startswith(_UNIX) else None)
    async with (
        peer_client(transport, timeout=timeout_s) as client,
        client.stream(*target, content=body, headers=headers) as response,
    ):
        received = await read(response, _MAX_BODY_BYTES)
    return of_status(received.status, received.body.decode(errors="replace"))


def _target(entry: ToolEntry, route: ToolRoute) -> tuple[str, str] | None:
    """Method and URL."""
    match entry.sources[route.active_source], route.endpoint:
        case HttpSource() as source, str() as endpoint if source.traits.on_host:
            base = "http://tool" if endpoint.startswith(_UNIX) else endpoint.rstrip("/")
            return source.http_method, f"{base}{source.endpoint_path}"
        case _:
            return None
