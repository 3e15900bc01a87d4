"""Network access of a sandbox, by sockets in a folder of the run: out to allowed hosts, and in to the server it runs."""

import contextlib
import py_compile
import resource
import socket
import ssl
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from engine.network.addresses import Resolve, resolve
from engine.network.ports import LOOPBACK, free_port
from engine.network.proxy import Proxy, ProxyLimits, Room
from engine.network.proxy_rules import Asked, Asks, Rules
from engine.runtimes.process.box import PYTHON, Box, Mount
from engine.runtimes.sandbox.door import Door
from engine.runtimes.sandbox.identity import Identity
from engine.runtimes.sandbox.socket_folder import SocketFolder, SocketFolders
from toolagent.core.loopback import LOOPBACK_NAMES

PROXY_PORT = 3128
"""On the sandbox's own loopback."""

_SOURCE = Path(__file__).with_name("inside.py")
_SEEN = Path("/run/tool-agent")
_PROXY, _DOOR = "proxy.sock", "door.sock"
_CERTIFICATES = Path("/run/certificates.pem")
_BUNDLES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem")
_CERTIFICATE_VARIABLES = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "GIT_SSL_CAINFO", "PIP_CERT")
_PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")

_MOST_AT_ONCE = 2048


@dataclass(frozen=True, slots=True)
class Opening:
    """The network access that a run needs. `hosts` are patterns; `private_hosts` may have addresses that are not public.

    `port`: the port that the program serves on its loopback; `others`: further ports that it may serve. `lasting`: the sandbox outlives
    this worker, and a later one finds it by the same name; `Egress.forget` removes its folder. `python`: the sandbox's interpreter, if
    not ours; 3.10 or newer. `is_apart`: the sandbox has its own loopback and file system; otherwise (level `rlimits`) those of the host
    are used, and the program can bypass the proxy. `observed`: open a proxy even if no host is allowed, to record requests.
    `identity`: the run's own user, if it has one.
    """

    hosts: Sequence[str] = ()
    private_hosts: Sequence[str] = ()
    port: int | None = None
    others: Sequence[int] = ()
    tell: Callable[[Asked], None] | None = None
    lasting: bool = False
    python: str | None = None
    is_apart: bool = True
    observed: bool = False
    identity: Identity | None = None

    @property
    def has_proxy(self) -> bool:
        return self.observed or bool(self.hosts)


@dataclass(frozen=True, slots=True)
class SandboxNetwork:
    """The opened network access, to be added to the Box. `endpoint` (`unix:/path`) leads to the served port; empty without one.
    `others` are the sockets of the other ports.

    `asks` grows during the run. `ports` are the loopback ports that the program needs.
    """

    mounts: tuple[Mount, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    prefix: tuple[str, ...] = ()
    endpoint: str = ""
    others: Mapping[int, Path] = field(default_factory=dict[int, Path])
    asks: Asks = field(default_factory=Asks)
    ports: tuple[int, ...] = ()

    def argv(self, program: Sequence[str]) -> list[str]:
        """The command line of the program, run by our forwarder."""
        return [*self.prefix, *program]

    def around(self, box: Box) -> Box:
        """The box with the network access added."""
        return replace(box, mounts=(*box.mounts, *self.mounts), environment={**box.environment, **self.environment}, ports=self.ports)


class Egress:
    """Opens network access for sandboxes; one per worker. `private_hosts` are those of the policy.

    Raises OSError if there is no path for sockets.
    """

    def __init__(
        self,
        state: Path,
        private_hosts: Sequence[str] = (),
        identity: Identity | None = None,
        *,
        limits: ProxyLimits | None = None,
        resolve: Resolve = resolve,
    ) -> None:
        self._folders = SocketFolders(state, identity)
        self._private_hosts, self._limits, self._resolve = tuple(private_hosts), limits or ProxyLimits(), resolve
        self._certificates = _bundle()
        self._room = Room(_places())
        self._compiled: Path | None = None

    @contextlib.asynccontextmanager
    async def open(self, name: str, opening: Opening) -> AsyncGenerator[SandboxNetwork]:
        """Open the network access of the run `name`. Without hosts and ports nothing is opened. Raises OSError."""
        if not opening.has_proxy and opening.port is None and not opening.others:
            yield SandboxNetwork()
            return
        folder = self._folders.make(name, opening.identity)
        asks = Asks(opening.tell)
        try:
            async with contextlib.AsyncExitStack() as stack:
                if opening.has_proxy:
                    await self._open_proxy(folder, opening, asks, stack)
                if opening.port is not None:
                    self._open_door(folder.box / _DOOR, folder.tool, opening, stack)
                for port in opening.others:
                    self._open_door(folder.box / _socket_of(port), folder.path / _socket_of(port), opening, stack)
                yield self._way(folder, opening, asks)
        finally:
            if not opening.lasting:
                folder.remove()

    def forget(self, name: str) -> None:
        """Remove the folder of a lasting sandbox that is gone. Idempotent."""
        self._folders.make(name).remove()

    def sweep(self, keep: Collection[str] = ()) -> tuple[str, ...]:
        """Remove leftovers of dead workers, except those of the runs in `keep`. Call it at start-up, with the state directory locked."""
        return self._folders.sweep(keep)

    def close(self) -> None:
        """Call this once all runs have ended, except lasting ones."""
        self._folders.close()

    async def _open_proxy(self, folder: SocketFolder, opening: Opening, asks: Asks, stack: contextlib.AsyncExitStack) -> None:
        rules = Rules(opening.hosts, (*self._private_hosts, *opening.private_hosts), self._resolve)
        proxy = Proxy(rules, asks, self._limits, self._room)
        await proxy.start(self._bound(folder.box / _PROXY, opening))
        stack.push_async_callback(proxy.aclose)

    def _open_door(self, path: Path, tool: Path, opening: Opening, stack: contextlib.AsyncExitStack) -> None:
        listening = self._bound(path, opening)
        listening.listen()
        door = Door(listening, tool)
        door.start()
        stack.callback(door.close)

    def _bound(self, path: Path, opening: Opening) -> socket.socket:
        path.unlink(missing_ok=True)
        with contextlib.ExitStack() as stack:
            bound = stack.enter_context(socket.socket(socket.AF_UNIX))
            bound.bind(str(path))
            path.chmod(0o600)
            self._folders.hand_over(path, opening.identity)
            stack.pop_all()
        return bound

    def _way(self, folder: SocketFolder, opening: Opening, asks: Asks) -> SandboxNetwork:
        # The compiled program suits our own interpreter only.
        program = self._program() if opening.python is None else _SOURCE
        mounts: list[Mount] = []

        def seen(source: Path, target: Path, *, is_handed_over: bool = False) -> Path:
            """Mount the source; returns where the program sees it."""
            mounts.append(Mount(source, target if opening.is_apart else source, is_handed_over=is_handed_over))
            return mounts[-1].target

        sockets = seen(folder.box, _SEEN, is_handed_over=True)
        prefix = [opening.python or PYTHON, "-I", "-S", str(seen(program, Path("/run", program.name)))]
        environment: dict[str, str] = {}
        ports: list[int] = []
        if opening.has_proxy:
            port = PROXY_PORT if opening.is_apart else free_port()
            ports.append(port)
            prefix += ["--proxy", str(port), str(sockets / _PROXY)]
            environment |= _proxy_variables(port, opening.private_hosts)
            if self._certificates is not None:
                environment |= dict.fromkeys(_CERTIFICATE_VARIABLES, str(seen(self._certificates, _CERTIFICATES)))
        if opening.port is not None:
            ports.append(opening.port)
            prefix += ["--serve", str(sockets / _DOOR), str(opening.port)]
        for port in opening.others:
            prefix += ["--serve", str(sockets / _socket_of(port)), str(port)]
        endpoint = f"unix:{folder.tool}" if opening.port is not None else ""
        others = {port: folder.path / _socket_of(port) for port in opening.others}
        return SandboxNetwork(tuple(mounts), environment, (*prefix, "--"), endpoint, others, asks, tuple(ports))

    def _program(self) -> Path:
        """The forwarder, compiled once: otherwise Python would compile it at each run."""
        if self._compiled is None or not self._compiled.is_file():
            self._compiled = self._folders.root / "inside.pyc"
            py_compile.compile(str(_SOURCE), str(self._compiled), doraise=True)
            self._compiled.chmod(0o644)
        return self._compiled


def _socket_of(port: int) -> str:
    return f"{port}.sock"


def _proxy_variables(port: int, private_hosts: Sequence[str]) -> dict[str, str]:
    address = f"http://{LOOPBACK}:{port}"
    both = {spelling: address for name in _PROXY_VARIABLES for spelling in (name, name.lower())}
    # A package index on this machine's loopback must be reached through the proxy.
    own = ",".join(name for name in LOOPBACK_NAMES if not any(host.startswith((name, f"[{name}]")) for host in private_hosts))
    return both | {"NO_PROXY": own, "no_proxy": own, "NODE_USE_ENV_PROXY": "1"}


def _bundle() -> Path | None:
    """The certificates that this machine trusts."""
    found = (ssl.get_default_verify_paths().cafile, *_BUNDLES)
    return next((Path(path).resolve() for path in found if path and Path(path).is_file()), None)


def _places() -> int:
    """The number of proxied connections: a quarter of our file limit, at two files each."""
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _MOST_AT_ONCE if files == resource.RLIM_INFINITY else min(_MOST_AT_ONCE, files // 8)
