"""One look at a server: starts or reaches it and lists its tools."""

import asyncio
import hashlib
import json
import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import cast
from weakref import WeakValueDictionary

import httpx
import structlog

from engine.mcp_servers.entries import NoTool, definition_of, entry_of, rights_of
from engine.mcp_servers.packages import package_command
from engine.mcp_servers.preparing import PackageServers
from engine.runtimes.failures import RuntimeFailure
from engine.runtimes.mcp.listing import Listing
from engine.runtimes.mcp.oauth.logins import LOGIN_REQUIRED
from engine.runtimes.mcp.remote import RemoteMcpRuntime
from engine.store.mcp_servers import Definitions
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.external_tables import LeftOutTool
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.mcp_servers import McpServerSpec, McpTransport
from toolagent.contracts.sources import McpSource
from toolagent.core.failures import (
    McpLoginRequiredError,
    McpServerNotReachedError,
    McpServerNotStartedError,
    McpServerRefusedError,
    McpServersBusyError,
)
from toolagent.core.mcp_specs import SpecFault

_RIGHTS = {"read": "read", "write": "write", "hosts": "reach"}
"""Items of a sandbox policy, with the verb for messages."""

_INSTALLED_AT_ONCE = 2
_ASKED_AT_ONCE = 16
"""More than are installed at once: a silent server only waits."""

_PATIENCE_S = 10.0
_LISTING = "(the listing)"
_TOLD = 300
_PYTHON_RUNNERS = ("uvx", "uv", "pipx")
_NO_PROGRAM = re.compile(r"^setpriv: failed to execute (.{1,200}): No such file or directory$", re.MULTILINE)
_LACKS = re.compile(r"^(?:AttributeError|ImportError|ModuleNotFoundError|TypeError)\b", re.MULTILINE)

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_NOT_IN_AN_ID = re.compile(r"[^a-z0-9_-]+")
_LONGEST = 128
_HASH = 8


@dataclass(frozen=True, slots=True)
class Look:
    """The usable definitions, and the entries that were left out."""

    found: Definitions
    left_out: tuple[LeftOutTool, ...] = ()


class ServerLooks:
    """`packages` is None at a front door without a host, which starts no servers."""

    def __init__(self, runtime: RemoteMcpRuntime, packages: PackageServers | None) -> None:
        self._runtime, self._packages = runtime, packages
        self._installing, self._asking = asyncio.Semaphore(_INSTALLED_AT_ONCE), asyncio.Semaphore(_ASKED_AT_ONCE)
        self._turns = WeakValueDictionary[str, asyncio.Lock]()

    async def look(self, name: str, spec: McpServerSpec, known: McpSource | None = None) -> Look:
        """Look at a server. `known` is the source of an earlier look.

        Raises McpServerRefusedError, McpServerNotReachedError, McpServerNotStartedError, McpLoginRequiredError.
        """
        self._require_granted(name, spec)
        source = known or await self._source(name, spec, is_older=False)
        try:
            listing = await self._listed(name, spec, source)
        except RuntimeFailure as failure:
            if known is not None or not _may_be_too_new(spec, failure):
                raise refused(name, spec, failure) from failure
            source, listing = await self._with_older(name, spec, failure)
        spoken = source.model_copy(update={"revision": source.revision or listing.revision})
        return await asyncio.to_thread(_taken, name, spec, spoken, listing)

    def _require_granted(self, name: str, spec: McpServerSpec) -> None:
        """Check that the sandbox policy grants all requested rights: without them the server would fail later, less clearly.

        Raises McpServerRefusedError, McpServerNotStartedError.
        """
        if spec.url is not None:
            return
        try:
            differences = self._runtime.not_granted(_manifest(name, spec))
        except RuntimeFailure as failure:
            raise refused(name, spec, failure) from failure
        for one in differences:
            if one.item in _RIGHTS:
                asked, given = cast("list[str]", one.requested), cast("list[str]", one.enforced)
                missing = [right for right in asked if right not in given]
                raise McpServerRefusedError(f"allow_{one.item}", _not_granted(one.item, missing))

    async def _listed(self, name: str, spec: McpServerSpec, source: McpSource) -> Listing:
        """Raises RuntimeFailure, McpServersBusyError."""
        manifest, source = _manifest(name, spec), source.model_copy(update={"process": None})
        # One at a time for each name, before it takes a slot: a slow server that many ask for must not keep the others out.
        async with self._turns.setdefault(name, asyncio.Lock()), self._slot():
            if source.url is not None:
                return await self._runtime.listed(manifest, source, lambda _: None)
            # In a process of its own, apart from the one that answers calls. All of a name have the same folders.
            try:
                return await self._runtime.listed(manifest, source, lambda _: None)
            finally:
                await asyncio.to_thread(self._runtime.discard, manifest.tool_id)

    @asynccontextmanager
    async def _slot(self) -> AsyncGenerator[None]:
        """Raises McpServersBusyError."""
        try:
            async with asyncio.timeout(_PATIENCE_S):
                await self._asking.acquire()
        except TimeoutError:
            message = f"{_ASKED_AT_ONCE} MCP servers are being asked for their tools, and have not answered. Try again in a minute."
            raise McpServersBusyError(message) from None
        try:
            yield
        finally:
            self._asking.release()

    async def _with_older(self, name: str, spec: McpServerSpec, failure: RuntimeFailure) -> tuple[McpSource, Listing]:
        """Try again with the older SDK. If that fails too, raises the first failure."""
        try:
            source = await self._source(name, spec, is_older=True)
            listing = await self._listed(name, spec, source)
        except (RuntimeFailure, McpServerRefusedError, McpServerNotStartedError):
            raise refused(name, spec, failure) from failure
        _log.info("mcp_server_with_older_sdk", server=name, reason=failure.message, then="it runs with mcp<2")
        return source, listing

    async def _source(self, name: str, spec: McpServerSpec, *, is_older: bool) -> McpSource:
        if spec.url is not None:
            return web_source(name, spec, spec.url)
        try:
            command = package_command(spec)
        except SpecFault as fault:
            raise McpServerRefusedError(fault.field, str(fault)) from fault
        if self._packages is None:
            message = "This front door starts no servers. Register it at one that runs with a host, or put it into mcp.json of a host."
            raise McpServerNotStartedError(message)
        if command is None:
            source = McpSource(tool_name="-", command=(spec.command or "", *spec.args))
        else:
            async with self._installing:
                source = await self._packages.prepare(command.older if is_older else command, name)
        return source.model_copy(update={"process": name, "server": name, "environment": spec.env})


def web_source(name: str, spec: McpServerSpec, url: str) -> McpSource:
    """The source of a server at a URL, without a tool."""
    sse = spec.type is McpTransport.SSE
    source = McpSource(tool_name="-", url=url, transport="sse" if sse else "streamable_http", headers=spec.headers, oauth=spec.oauth)
    return source.model_copy(update={"only_public": True, "process": name, "server": name})


def _taken(name: str, spec: McpServerSpec, source: McpSource, listing: Listing) -> Look:
    """Make definitions of the listed tools. Blocks."""
    left_out = [LeftOutTool(entry=fault.name[:128] or _LISTING, reason=fault.reason[:500]) for fault in listing.faults]
    ids = tool_ids_of(spec.prefix if spec.prefix is not None else name, [tool.name for tool in listing.tools])
    by_id: dict[str, str] = {}
    others: set[str] = set()
    for tool in listing.tools:
        tool_id, definition = ids[tool.name], definition_of(tool)
        try:
            entry_of(definition, tool_id, spec, source)
        except NoTool as why:
            left_out.append(LeftOutTool(entry=tool.name[:128], reason=str(why)[:500]))
            others.add(tool_id)
        else:
            by_id[tool_id] = definition

    def entry(tool_id: str, definition: str) -> ToolEntry | None:
        try:
            return entry_of(definition, tool_id, spec, source)
        except (NoTool, ValueError):
            return None

    is_whole = all(fault.name for fault in listing.faults)
    return Look(Definitions(source, by_id, entry, frozenset(others), is_whole), tuple(left_out))


def _manifest(name: str, spec: McpServerSpec) -> ToolManifest:
    return ToolManifest(tool_id=f"mcp:{name}", name=name, security_context=rights_of(spec))


def _not_granted(item: str, missing: Sequence[str]) -> str:
    said = json.dumps(missing, ensure_ascii=False)
    told = f"The sandbox policy of this host does not let tools {_RIGHTS[item]} {', '.join(missing)}."
    remedy = f"Add it to `{item}` in the file that TOOL_AGENT_SANDBOX_POLICY names ({item}: {said}), and start the service again."
    return f"{told} {remedy}"


def _may_be_too_new(spec: McpServerSpec, failure: RuntimeFailure) -> bool:
    """Whether a Python package fails with an error typical of an SDK of another major version."""
    log = failure.details.get("stderr")
    is_python = spec.command is not None and (spec.command, *spec.args)[0] in _PYTHON_RUNNERS
    return is_python and isinstance(log, str) and _LACKS.search(log) is not None


def refused(name: str, spec: McpServerSpec, failure: RuntimeFailure) -> Exception:
    if failure.error_type is ErrorType.SECURITY_ERROR:
        return McpServerRefusedError("url", failure.message, is_private=True)
    if failure.details.get("reason") == LOGIN_REQUIRED:
        return McpLoginRequiredError(failure.message)
    if failure.details.get("field") == "oauth":
        return McpServerRefusedError("oauth", failure.message)
    log = failure.details.get("stderr")
    if spec.url is None and isinstance(log, str) and (missing := _NO_PROGRAM.search(log)):
        return McpServerRefusedError(
            "command", f"There is no program {missing[1]!r} in the sandbox, which sees those of this machine's /usr only."
        )
    last = [line.strip() for line in log.splitlines() if line.strip()][-1:] if isinstance(log, str) else []
    said = " ".join((failure.message.replace(f"mcp:{name}", name), *(f"It said last: {line[:_TOLD]}" for line in last)))
    if failure.details.get("missing") == "sandbox" or failure.error_type is ErrorType.EXECUTOR_NOT_FOUND:
        return McpServerNotStartedError(said)
    # An unknown other host, such as the authorization server's, is no fault of the URL.
    is_nowhere = failure.details.get("no_such_host") and spec.url is not None and failure.details["host"] == httpx.URL(spec.url).host
    if failure.error_type is ErrorType.VALIDATION_ERROR or is_nowhere:
        return McpServerRefusedError("url" if spec.url is not None else "command", said)
    return McpServerNotReachedError(said)


def tool_ids_of(prefix: str, names: Sequence[str]) -> dict[str, str]:
    """Tool ids by the server's own names, which are unique: `<prefix>_<tool>`, or the name alone without a prefix.

    If several names make the same id, a name that equals the id keeps it. The others get a digest of the name, so that their ids do not
    depend on the rest of the list.
    """
    made = {name: _tool_id(prefix, name) for name in names}
    plain = {name for name in names if _prefixed(prefix, name) == made[name]}
    counts: dict[str, int] = {}
    for name in names:
        counts[made[name]] = counts.get(made[name], 0) + 1
    return {name: one if name in plain or counts[one] == 1 else _with_digest(one, name) for name, one in made.items()}


def _tool_id(prefix: str, name: str) -> str:
    word = _NOT_IN_AN_ID.sub("_", _HUMP.sub("_", name).lower()).strip("_-")
    if not word:
        return _with_digest(_prefixed(prefix, "tool"), name)
    whole = _prefixed(prefix, word if prefix or word[0].isalpha() else f"t_{word}")
    return whole if len(whole) <= _LONGEST else _with_digest(whole, name)


def _prefixed(prefix: str, word: str) -> str:
    return f"{prefix}_{word}" if prefix else word


def _with_digest(tool_id: str, name: str) -> str:
    return f"{tool_id[: _LONGEST - _HASH - 1]}_{hashlib.sha256(name.encode()).hexdigest()[:_HASH]}"
