"""Rents a server with ComfyUI from RunComfy, and waits until it is ready."""

import asyncio
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal

import structlog
from pydantic import AwareDatetime, BeforeValidator, Field, JsonValue

from engine.runtimes.builtin.options import BuiltinOptions
from engine.runtimes.builtin.runcomfy.cloud import Cloud, LaunchUnknown, Order, Server
from engine.runtimes.builtin.runcomfy.service import AT_ONCE, START_S, RunComfy, ServerId, manifest_of
from engine.runtimes.builtin.tool import BuiltinTool, ToolArguments, ToolContext, ToolOutput, TypedTool
from engine.runtimes.failures import CallFailed
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.identifiers import CallId
from toolagent.contracts.manifest import ToolExample

_UNSEEN_S = 60.0
"""How long after its launch the provider may not know a server."""
_LOOK_AGAIN = 6
_ANSWER_S = 40.0
"""How long a cancelled call waits for the answer to its launch, and for the stop."""
_MARGIN_S = 25.0
"""Time before the call's time-out to stop a server that did not become ready."""

_SKEW = timedelta(minutes=1)
"""Allowed difference between the provider's clock and ours."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def _text(value: object) -> str:
    """Refuses numbers: pydantic would read them as seconds since 1970, which the schema does not say."""
    if not isinstance(value, str):
        raise ValueError("a time is a text (ISO 8601)")  # noqa: TRY004 - pydantic takes ValueError
    return value


class Arguments(ToolArguments):
    workflow_version_id: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=200,
            description="Version id of a workflow of the account, whose nodes and models the server has; unset: the one changed last.",
        ),
    ] = None
    server_type: Annotated[
        Literal["medium", "large", "extra-large", "2x-large", "2xl-turbo"], Field(description="How large a GPU; it decides the price.")
    ] = "medium"
    estimated_duration: Annotated[
        int,
        Field(ge=60, le=86_400, description="Seconds after which RunComfy ends the server; up to 5 % less, to recognise it."),
    ] = 3600
    launched_by: Annotated[
        CallId | None,
        Field(
            description="Launches nothing, and waits for nothing: finds the server of an earlier call of unknown end, "
            "by its id and the same parameters, in whatever state it is."
        ),
    ] = None
    others: Annotated[
        tuple[ServerId, ...],
        Field(strict=False, max_length=1000, description="With `launched_by`: servers that are known to be of other calls."),
    ] = ()
    launched_after: Annotated[
        Annotated[AwareDatetime, BeforeValidator(_text)] | None,
        Field(strict=False, description="With `launched_by`: a server that was ready by then is of another call (ISO 8601)."),
    ] = None


class Result(ToolOutput):
    server_id: Annotated[str, Field(description="For runcomfy_workflow_executor and runcomfy_stop_env.")]
    status: str
    url: Annotated[str, Field(description="ComfyUI's address; empty while it is not ready. It asks for no key: do not publish it.")]
    started_at: Annotated[str, Field(description="When it became ready, from which on it costs money (ISO 8601); empty until then.")]
    stopping_at: Annotated[str | None, Field(description="When RunComfy ends it by itself.")] = None
    server_type: str


_MANIFEST = manifest_of(
    Arguments,
    Result,
    tool_id="launch_comfy_env",
    name="启动 ComfyUI 环境 Launch a ComfyUI server",
    description=(
        "在 RunComfy 租用一台带 ComfyUI 的 GPU 服务器并等待就绪;用完必须调用 runcomfy_stop_env。"
        "Rents a GPU server with ComfyUI from RunComfy and waits until it is ready, which takes minutes. "
        "It costs money until runcomfy_stop_env stops it."
    ),
    tag="launch",
    idempotent=False,
    example=ToolExample(description="The smallest server, for half an hour", input={"server_type": "medium", "estimated_duration": 1800}),
    timeout_s=START_S,
    concurrency=AT_ONCE,
)


def tool(options: BuiltinOptions) -> BuiltinTool:
    return TypedTool(_MANIFEST, Arguments, Launch(RunComfy(options)).run)


class Launch:
    """Launches one server at a time: if an answer is lost, the new server in the list is the launched one."""

    def __init__(self, service: RunComfy) -> None:
        self._service = service
        self._turn = asyncio.Lock()
        self._own: set[str] = set()
        """Ids of servers that this process has launched."""

    async def run(self, arguments: Arguments, context: ToolContext) -> Result:
        """Raises CallFailed. A launched server that does not become ready is stopped; with `launched_by` nothing is stopped."""
        async with self._service.cloud() as cloud:
            if arguments.launched_by is not None:
                # No wait until it is ready: the caller may want to stop a server that never becomes ready.
                return _result(await _found(cloud, arguments, arguments.launched_by))
            launched = await self._new(cloud, arguments, context)
            try:
                return await self._ready(cloud, launched, context)
            except CallFailed as failure:
                raise await self._ended(cloud, launched.server_id, failure, context.call_id) from failure
            except asyncio.CancelledError:
                await self._stopped(cloud, launched.server_id, context.call_id)
                raise

    async def _new(self, cloud: Cloud, arguments: Arguments, context: ToolContext) -> Server:
        version = await _version(arguments, cloud)
        order = Order.by(context.call_id, arguments.server_type, arguments.estimated_duration, version)
        async with self._turn:
            context.progress(f"launching a {order.server_type} server")
            launched = await self._launched(cloud, order, context.call_id)
            self._own.add(launched.server_id)
        return launched

    async def _launched(self, cloud: Cloud, order: Order, call_id: str) -> Server:
        """Raises CallFailed, of an unknown outcome when the answer was lost and the server is not found."""
        before = {one.server_id for one in await cloud.listed()}
        asking = asyncio.create_task(self._asked(cloud, before, order), name=f"launch for {call_id}")
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            # The request was sent: wait for the answer, to stop the server that it starts.
            with suppress(CallFailed, TimeoutError):
                async with asyncio.timeout(_ANSWER_S):
                    await self._stopped(cloud, (await asking).server_id, call_id)
            raise

    async def _asked(self, cloud: Cloud, before: set[str], order: Order) -> Server:
        asked_at = datetime.now(UTC).isoformat()
        try:
            return await cloud.launch(order)
        except LaunchUnknown as lost:
            found = await self._new_since(cloud, before, order)
            if len(found) == 1:
                return found[0]
            details: dict[str, JsonValue] = {"asked_at": asked_at, "candidates": [one.server_id for one in found], "outcome": "unknown"}
            message = "RunComfy's answer to the launch was lost, and its list does not tell whether a server was started"
            raise CallFailed(ErrorType.EXECUTION_ERROR, f"{message}: {lost}.", details, "unknown") from lost

    async def _new_since(self, cloud: Cloud, before: set[str], order: Order) -> list[Server]:
        """Servers that are new, fit the order, and are of no other launch of this process."""
        for asked in range(_LOOK_AGAIN):
            try:
                every = await cloud.listed()
            except CallFailed:
                every = []
            if found := [one for one in every if one.server_id not in before | self._own and order.resembles(one)]:
                return found
            await asyncio.sleep(self._service.pause_s(asked))
        return []

    async def _ready(self, cloud: Cloud, launched: Server, context: ToolContext) -> Result:
        limit_s = max(context.timeout_s - _MARGIN_S, context.timeout_s / 2)
        try:
            async with asyncio.timeout(limit_s):
                return await self._watched(cloud, launched, context)
        except TimeoutError as error:
            message = f"The server was not ready within {limit_s:g} s."
            raise CallFailed(ErrorType.TIMEOUT, message, {"timeout_s": context.timeout_s}) from error

    async def _watched(self, cloud: Cloud, launched: Server, context: ToolContext) -> Result:
        began, asked, was_seen = asyncio.get_running_loop().time(), 0, False
        while True:
            server, is_known = await cloud.seen(launched.server_id)
            waited_s = asyncio.get_running_loop().time() - began
            if server is not None and server.is_ready:
                return _result(server)
            if server is not None and not server.is_coming:
                raise CallFailed(ErrorType.EXECUTION_ERROR, f"The server did not start: RunComfy says {server.current_status!r}.")
            if is_known and server is None and (was_seen or waited_s > _UNSEEN_S):
                raise CallFailed(ErrorType.EXECUTION_ERROR, "The server disappeared before it was ready.", {"cause": "server_gone"})
            was_seen = was_seen or server is not None
            context.progress(f"server {launched.server_id} is {(server and server.current_status) or 'Starting'} ({waited_s:.0f} s)")
            await asyncio.sleep(self._service.pause_s(asked))
            asked += 1

    async def _ended(self, cloud: Cloud, server_id: str, failure: CallFailed, call_id: str) -> CallFailed:
        """The failure, with what happened to the server."""
        is_stopped = await self._stopped(cloud, server_id, call_id)
        said = "It was stopped." if is_stopped else "It could not be stopped: call runcomfy_stop_env with its id, or it costs money."
        told: dict[str, JsonValue] = {**failure.details, "server_id": server_id, "stopped": is_stopped}
        return CallFailed(failure.error_type, f"{failure.message} {said}", told, "failed" if is_stopped else "unknown")

    async def _stopped(self, cloud: Cloud, server_id: str, call_id: str) -> bool:
        is_stopped = False
        try:
            is_stopped = await self._service.stopped(cloud, server_id)
        finally:
            if not is_stopped:
                _log.error("runcomfy_server_left", server_id=server_id, call_id=call_id)
        return is_stopped


async def _version(arguments: Arguments, cloud: Cloud) -> str:
    version = arguments.workflow_version_id or await cloud.newest_version()
    if version is None:
        message = "The account has no workflow to launch a server with. Save one at RunComfy, or give `workflow_version_id`."
        raise CallFailed(ErrorType.VALIDATION_ERROR, message, {"field": "workflow_version_id"})
    return version


async def _found(cloud: Cloud, arguments: Arguments, call_id: str) -> Server:
    """The one server that fits the order of that call. Raises CallFailed (`rejected`) if there is none or several."""
    order = Order.by(call_id, arguments.server_type, arguments.estimated_duration)
    every = [one for one in await cloud.listed() if order.resembles(one) and one.server_id not in arguments.others]
    since = arguments.launched_after
    found = [one for one in every if since is None or one.ready_at is None or one.ready_at >= since - _SKEW]
    if len(found) == 1:
        return found[0]
    what = "Several servers are" if found else "No server is"
    candidates: list[JsonValue] = [one.server_id for one in found]
    message = f"{what} as that call would have launched it."
    raise CallFailed(ErrorType.REJECTED, message, {"cause": "ambiguous" if found else "not_found", "candidates": candidates})


def _result(server: Server) -> Result:
    return Result(
        server_id=server.server_id,
        status=server.current_status,
        url=server.main_service_url or "",
        started_at=(server.service_ready_at or datetime.now(UTC).isoformat()) if server.is_ready else "",
        stopping_at=server.estimated_stopping_at,
        server_type=server.server_type,
    )
