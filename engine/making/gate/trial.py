"""A candidate on trial on this host: run by the runtimes that run every tool, apart from the version that is in use."""

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
from engine.runtimes.docker.parts import DockerParts
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
    """In seconds. A call may take as long as its manifest says, but no longer than `call_s`."""

    start_s: float = 120.0
    call_s: float = 30.0
    remote_requests: int = 200
    """To servers of others, all that is asked of a candidate taken together."""


def _unheard(_: str) -> None:
    return


class Trial:
    """An OnTrial. Made by `on_trial`, which ends it."""

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
        """The tool whose last call has no answer: its process may be busy with it for ever."""

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
        if not withheld:
            return await self._asked(entry, filled, self._progress)
        self._sightings.withhold()
        # What the tool says of its progress could quote what it was given.
        return await self._asked(entry, filled, _unheard)

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
        """In a process that is busy with nothing else: what took too long, or was given up, must not keep others from their answers."""
        if self._unanswered is not None:
            self._sightings.will_be_killed(self._unanswered)
            await self._end()
        self._unanswered = entry.manifest.tool_id
        reply = await (self._post(entry, content) if isinstance(content, bytes) else self._exchange(entry, content, progress))
        if reply.came is Came.SILENCE:
            # A runtime ends what answers nothing at all: that is not its own death.
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
        # Its id is like any call's: that must not tell a tool that it is on trial.
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
        """A request that no call can produce, so it does not go through the runtime."""
        try:
            route = await self._supervisor.start(entry, self._progress)
            target = _target(entry, route)
            if target is None:
                return Reply(Came.NOT_SENT, message="It takes no requests over HTTP.")
            # The client's limit holds for each read: a server that sends a byte a second would hold us for ever.
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
        """Raises Outage when something of ours was away, and it is worth trying again."""
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
    """The candidate, nothing of it started yet.

    It has homes, logs and processes of its own, and only the audit hears of it. All of it has ended and gone after the block;
    what a dead worker left is removed by `sweep_trials`, and its processes by the sweep of all tools. `parts` are those of this host;
    files of a source have to be in the content store, or below the data folder. When it `is_patient`, what of ours is away is raised from
    within the block (Outage); else the candidate is judged by it.
    """
    folder = parts.local.state / _FOLDER / secrets.token_hex(8)
    await asyncio.to_thread(folder.mkdir, parents=True, mode=0o700)
    sightings, http = Sightings(parts.sandboxing.audit), parts.http.unconnected()
    supervisor: Supervisor | None = None
    try:
        own = replace(apart(_of_task(parts, task_id), folder, sightings), http=http)
        tags = {source.type for entry in entries for source in entry.sources}
        supervisor = Supervisor({tag: RUNTIMES[tag](own) for tag in tags & RUNTIMES.keys()}, sightings, parts.local.host)
        await asyncio.to_thread(own.local.calls.mkdir)
        caller = Caller(caller_id=task_id, caller_type="gate")
        yield Trial(entries, supervisor, sightings, own, files, limits or TrialLimits(), progress, caller, is_patient=is_patient)
    finally:
        # A second cancellation must not interrupt the clean-up.
        await asyncio.shield(asyncio.ensure_future(_end(supervisor, http, folder)))


def apart(parts: RuntimeParts, folder: Path, audit: Audit) -> RuntimeParts:
    """The same, for what keeps nothing but in this folder, and finds nothing of the version in use; the audit hears of all it does."""
    return replace(
        parts,
        local=replace(parts.local, state=folder, calls=folder / _CALLS, observed=True),
        sandboxing=replace(parts.sandboxing, audit=audit),
        docker=_observed(parts.docker, folder, audit) if parts.docker else None,
        scripts=_scripts(parts.scripts, parts, folder, audit) if parts.scripts else None,
    )


def _of_task(parts: RuntimeParts, task_id: str) -> RuntimeParts:
    """With environments that go when the task does not come to its end."""
    return replace(parts, sandboxing=replace(parts.sandboxing, environments=parts.sandboxing.environments.for_task(task_id)))


async def sweep_trials(state: Path) -> None:
    """To be called at start-up, once the state directory is locked and its processes are swept: what dead workers left of trials."""
    await asyncio.to_thread(discard, state / _FOLDER)


def _observed(docker: DockerParts, folder: Path, audit: Audit) -> DockerParts:
    return replace(docker, audit=audit, settings=replace(docker.settings, observed=True, beside=folder, calls=folder / _CALLS))


def _scripts(scripts: ScriptService, parts: RuntimeParts, folder: Path, audit: Audit) -> ScriptService:
    sandbox = parts.sandboxing.sandbox
    if isinstance(sandbox, str):
        return scripts  # they are not run
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
    async with (
        peer_client(_transport(route), timeout=timeout_s) as client,
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


def _transport(route: ToolRoute) -> httpx.AsyncHTTPTransport:
    endpoint = route.endpoint or ""
    # It is of this host and speaks no TLS; reading all certificates takes longer than the request.
    return httpx.AsyncHTTPTransport(verify=False, uds=endpoint.removeprefix(_UNIX) if endpoint.startswith(_UNIX) else None)
