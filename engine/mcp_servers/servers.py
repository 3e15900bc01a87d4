"""MCP servers: registered, refreshed, removed."""

import asyncio
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

import structlog

from engine.mcp_servers.logins import LoginFailed, McpLogins
from engine.mcp_servers.looking import Look, ServerLooks, refused, web_source
from engine.network.addresses import bounded, is_here, resolve
from engine.registry.formats.server_keys import owner_of, with_keys_of_request
from engine.registry.secret_vault import SecretKeeper
from engine.registry.server_secrets import forget_keys
from engine.runtimes.failures import NotSent
from engine.store.mcp_logins import PendingLogin
from engine.store.mcp_servers import McpServerRows
from toolagent.contracts.external_tables import LeftOutTool
from toolagent.contracts.mcp_servers import McpServer, McpServers, McpServerSpec, RemovedMcpServer
from toolagent.contracts.sources import McpSource
from toolagent.core.failures import (
    McpLoginRequiredError,
    McpServerExistsError,
    McpServerNotReachedError,
    McpServerNotStartedError,
    McpServerRefusedError,
    NoSuchMcpServerError,
)
from toolagent.core.mcp_specs import SpecFault
from toolagent_service.contracts.mcp_logins import LoginEnd

_TOLD = 50
_DUE_AT_ONCE = 4
_RESOLVE = bounded(resolve)
_NEVER = datetime(1970, 1, 1, tzinfo=UTC)

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class RegisteredServers:
    """All raise StoreUnavailableError."""

    def __init__(
        self,
        rows: McpServerRows,
        looks: ServerLooks,
        logins: McpLogins,
        keys: SecretKeeper,
        *,
        every_s: float = 3600.0,
        own_ports: Collection[int] = (),
    ) -> None:
        """`own_ports` are the ports of this machine at which the service itself listens."""
        self._rows, self._looks, self._logins, self._keys = rows, looks, logins, keys
        self._every_s, self._own_ports = every_s, own_ports
        self._turns = WeakValueDictionary[str, asyncio.Lock]()
        self._wake = asyncio.Event()
        self._wake.set()

    async def list_all(self) -> McpServers:
        return McpServers(servers=await self._rows.list_all())

    async def get(self, name: str) -> McpServer:
        """Raises NoSuchMcpServerError."""
        server = await self._rows.get(name)
        if server is None:
            raise NoSuchMcpServerError(_none(name))
        return server

    async def register(self, name: str, spec: McpServerSpec, redirect_uri: str) -> McpServer:
        """Start or reach a server, and import its tools. A server that needs a login waits for it and has a `login_url`.

        The browser returns to `redirect_uri`. If this raises McpServerExistsError, McpServerRefusedError, McpServerNotReachedError or
        McpServerNotStartedError, nothing is kept.
        """
        # One at a time for each name: servers of one name share the names of keys, and a failing one removes its keys.
        async with self._turn(name):
            return await self._registered(name, spec, redirect_uri)

    async def _registered(self, name: str, spec: McpServerSpec, redirect_uri: str) -> McpServer:
        if await self._rows.is_taken(name):
            raise McpServerExistsError(_exists(name))
        try:
            spec = await asyncio.to_thread(with_keys_of_request, name, spec, self._keys)
        except SpecFault as fault:
            raise McpServerRefusedError(fault.field, str(fault)) from fault
        kept = False
        try:
            now = datetime.now(UTC)
            server = McpServer(name=name, spec=spec, registered_at=now, refreshed_at=now, attempted_at=now)
            try:
                look = await self._look(name, spec)
            except McpLoginRequiredError as wanted:
                login = await self._begun(name, spec, redirect_uri)
                if not await self._rows.add_unlisted(server.model_copy(update={"refreshed_at": None, "error": str(wanted)})):
                    raise McpServerExistsError(_exists(name)) from wanted
                kept = True
                return await self._waiting(name, login)
            added = await self._rows.add(server.model_copy(update=_told(look.left_out)), look.found)
            if added is None:
                raise McpServerExistsError(_exists(name))
            kept = True
            return await self._with_taken(*added, look)
        finally:
            if not kept:
                await self._logins.forget_unregistered(name)
                await forget_keys(name, spec, self._rows, self._keys)

    async def refresh(self, name: str) -> McpServer:
        """List a server's tools again. If that fails, its tools stay and `error` says why. Raises NoSuchMcpServerError."""
        server = await self.get(name)
        now = datetime.now(UTC)
        try:
            look = await self._look(name, server.spec, await self._rows.source(name))
        except (McpServerRefusedError, McpServerNotReachedError, McpServerNotStartedError, McpLoginRequiredError) as failure:
            _log.warning("mcp_server_not_refreshed", server=name, reason=str(failure), then="its tools stay as they were")
            if not await self._rows.note_failure(server, now, str(failure)):
                raise NoSuchMcpServerError(_none(name)) from failure
            return await self.get(name)
        server = server.model_copy(update={"refreshed_at": now, "attempted_at": now, "error": "", **_told(look.left_out)})
        renewed = await self._rows.renew(server, look.found)
        if renewed is None:
            raise NoSuchMcpServerError(_none(name))
        return await self._with_taken(*renewed, look)

    async def log_in(self, name: str, redirect_uri: str) -> McpServer:
        """Begin a login whose browser returns to `redirect_uri`, or log in as the service itself.

        Raises NoSuchMcpServerError, McpServerRefusedError, McpServerNotReachedError.
        """
        server = await self.get(name)
        login = await self._begun(name, server.spec, redirect_uri)
        return await self._waiting(name, login) if login is not None else await self.refresh(name)

    async def finish_login(self, state: str, code: str, iss: str | None, error: str) -> LoginEnd:
        """Finish a login when the browser returns, and list the server's tools."""
        try:
            name = await self._logins.finish(state, code, iss, error)
            # If the process dies before the tools are listed, the server is due at once.
            await self._rows.note(await self.get(name), attempted_at=None)
            server = await self.refresh(name)
        except (LoginFailed, NoSuchMcpServerError) as failure:
            return LoginEnd(is_done=False, said=str(failure))
        if server.error:
            return LoginEnd(is_done=True, said=f"You are logged in at {name}, but its tools could not be listed: {server.error}")
        return LoginEnd(is_done=True, said=f"You are logged in at {name}, which has {len(server.tool_ids)} tools. This page can be closed.")

    async def _begun(self, name: str, spec: McpServerSpec, redirect_uri: str) -> PendingLogin | None:
        """Raises McpServerRefusedError, McpServerNotReachedError."""
        if spec.url is None:
            raise McpServerRefusedError("name", "It is started here. Logins are for servers at a URL.")
        if any(header.lower() == "authorization" for header in spec.headers):
            raise McpServerRefusedError("name", "It is given a header Authorization. To log in there, add the server without it.")
        try:
            return await self._logins.begin(web_source(name, spec, spec.url), redirect_uri)
        except NotSent as failure:
            raise refused(name, spec, failure) from failure

    async def _waiting(self, name: str, login: PendingLogin | None) -> McpServer:
        if login is not None and not await self._logins.keep(login):
            raise NoSuchMcpServerError(_none(name))
        return await self.get(name)

    async def remove(self, name: str) -> RemovedMcpServer:
        """Remove a server with its tools and keys. Raises NoSuchMcpServerError."""
        await self.get(name)
        async with self._turn(name):
            server, count = await self._rows.get(name), await self._rows.remove(name)
            if server is None or count is None:
                raise NoSuchMcpServerError(_none(name))
            await forget_keys(name, server.spec, self._rows, self._keys)
        return RemovedMcpServer(name=name, tools=count)

    async def look_at_due(self) -> tuple[str, ...]:
        """List the tools of servers that are due, and of new ones. Returns a line about each."""
        slots = asyncio.Semaphore(_DUE_AT_ONCE)

        async def refreshed(name: str) -> str:
            async with slots:
                return await self._refreshed(name)

        return tuple(await asyncio.gather(*map(refreshed, await self._due())))

    def look_again(self) -> None:
        """Let `watch` look at servers that are due."""
        self._wake.set()

    async def refresh_due(self) -> tuple[str, ...]:
        """Let `watch` look at servers that are due: a round has only a minute, and an installation takes longer."""
        if due := await self._due():
            self._wake.set()
        return tuple(f"MCP server {name}: to be asked again" for name in due)

    async def watch(self) -> None:
        """Look at due servers whenever woken, forever."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            await self.look_at_due()

    async def _due(self) -> list[str]:
        """Names of due servers, the longest waiting first."""
        before = datetime.now(UTC) - timedelta(seconds=self._every_s)
        attempts = {server.name: server.attempted_at or _NEVER for server in await self._rows.list_all()}
        return sorted((name for name, at in attempts.items() if at <= before), key=lambda name: attempts[name])

    async def _refreshed(self, name: str) -> str:
        began = datetime.now(UTC)
        try:
            server = await self.refresh(name)
        except NoSuchMcpServerError:
            return f"MCP server {name}: removed"
        except Exception as error:  # noqa: BLE001 - one server must not block the others
            return f"MCP server {name}: {await self._failed(name, error, began)}"
        return f"MCP server {name}: {server.error or f'{len(server.tool_ids)} tools'}"

    async def _failed(self, name: str, error: Exception, began: datetime) -> str:
        """Record our own error as a failed look, so that the server is not tried again before it is due."""
        said = f"It could not be looked at: {type(error).__name__}. The log of the worker says more."
        _log.error("mcp_server_not_refreshed", server=name, exc_info=error, then="its tools stay as they were")
        if server := await self._rows.get(name):
            await self._rows.note_failure(server, began, said)
        return said

    async def _with_taken(self, server: McpServer, taken: frozenset[str], look: Look) -> McpServer:
        """The server with the tools that were left out because their ids are taken."""
        if not taken:
            return server
        reason = "A tool that came from elsewhere has this id. Register the server with another `prefix`."
        left_out = (*look.left_out, *(LeftOutTool(entry=tool_id, reason=reason) for tool_id in sorted(taken)))
        told = _told(left_out)
        await self._rows.note(server, **told)
        return server.model_copy(update=told)

    async def _look(self, name: str, spec: McpServerSpec, known: McpSource | None = None) -> Look:
        """Raises McpServerRefusedError, McpServerNotReachedError, McpServerNotStartedError."""
        if spec.url is not None and await _is_at(spec.url, self._own_ports):
            raise McpServerRefusedError("url", "This is the service itself, whose tools are here already.")
        return await self._looks.look(name, spec, known)

    def _turn(self, name: str) -> asyncio.Lock:
        """The lock of a name. Names that differ only in `-` and `_` share the names of keys."""
        return self._turns.setdefault(owner_of(name).replace("-", "_"), asyncio.Lock())


def _told(left_out: tuple[LeftOutTool, ...]) -> dict[str, object]:
    return {"left_out": left_out[:_TOLD], "left_out_total": len(left_out)}


async def _is_at(url: str, ports: Collection[int]) -> bool:
    """Whether the URL leads to one of these ports of this machine, by its current addresses."""
    parts = urlsplit(url)
    port = parts.port or {"http": 80}.get(parts.scheme, 443)
    if port not in ports or not parts.hostname:
        return False
    try:
        found = [ip_address(address) for address in await _RESOLVE(parts.hostname, port)]
    except (OSError, UnicodeError):
        # The look itself reports an unknown host.
        return False
    return any(map(is_here, found))


def _exists(name: str) -> str:
    return f"There is an MCP server, or a group, {name!r} already. Refresh it, remove it first, or choose another name."


def _none(name: str) -> str:
    return f"There is no MCP server {name!r}; GET /mcp_servers lists them."
