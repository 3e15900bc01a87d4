"""Reaches repositories over ssh: the machine's client runs outside the sandbox, where the keys are; git in the sandbox gets a socket."""

import asyncio
import contextlib
import shutil
import socket
import sys
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from engine.making.repositories.addresses import CloneFailed, CloneFailure, RepositoryAddress
from engine.network.addresses import Address, Resolve, resolve
from engine.network.proxy_refusal import Refused
from engine.network.proxy_rules import Rules
from engine.runtimes.process.box import Box, Mount
from engine.runtimes.process.launching import launched
from engine.runtimes.process.processes import Launcher, Process
from engine.runtimes.sandbox.levels.holding import readable
from engine.runtimes.sandbox.socket_folder import SocketFolder, SocketFolders

_RELAY = Path(__file__).with_name("ssh_relay.py")
_PYTHON = Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}")
_PROGRAM = "ssh"
_LAST_WORDS_S = 5.0
_PORT = 22
_OPTIONS = (
    "BatchMode=yes",
    "StrictHostKeyChecking=yes",
    "UpdateHostKeys=no",
    "CheckHostIP=no",
    "ClearAllForwardings=yes",
    "ForwardAgent=no",
    "ForwardX11=no",
    "PermitLocalCommand=no",
    "ControlMaster=no",
    "ControlPath=none",
    "EscapeChar=none",
    "LogLevel=ERROR",
    "SendEnv=GIT_PROTOCOL",
    "ConnectionAttempts=1",
    "ConnectTimeout=20",
    "ServerAliveInterval=15",
    "ServerAliveCountMax=3",
)


@dataclass(frozen=True, slots=True)
class SshAccess:
    """The operator's settings. Unset `key` and `known_hosts` are those of our user; `agent` is the socket of the ssh agent.

    `path` is the search path for the client.
    """

    key: Path | None = None
    known_hosts: Path | None = None
    agent: str | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True)
class SshWay:
    """A box in which git can reach the ssh client."""

    box: Box
    serving: asyncio.Task[str]

    async def last_words(self) -> str:
        """The client's output. Waits a little for its end, because git ends first."""
        done, _ = await asyncio.wait([self.serving], timeout=_LAST_WORDS_S)
        return self.serving.result() if done else ""


class SshClient:
    """Opens ways to one repository each, for one connection, at an address that the rules of the sandbox's proxy allow."""

    def __init__(self, launcher: Launcher, folders: SocketFolders, access: SshAccess | None = None, *, resolve: Resolve = resolve) -> None:
        self._launcher, self._folders, self._resolve = launcher, folders, resolve
        self._access = access or SshAccess()

    @contextlib.asynccontextmanager
    async def open(self, address: RepositoryAddress, box: Box, private_hosts: Sequence[str], logs: Path) -> AsyncGenerator[SshWay]:
        """Hosts among `private_hosts` may have addresses that are not public. Raises CloneFailed, OSError."""
        argv = self._command(address, await self._judged(address, private_hosts))
        folder = await asyncio.to_thread(self._folders.make, box.name)
        try:
            with contextlib.closing(await asyncio.to_thread(self._laid_out, folder)) as listening:
                serving = asyncio.create_task(self._served(listening, argv, logs))
                try:
                    mounts = (*box.mounts, Mount(folder.box, folder.box, is_handed_over=True))
                    variables = {**box.environment, "GIT_SSH": str(folder.box / _PROGRAM), "GIT_SSH_VARIANT": "ssh"}
                    yield SshWay(replace(box, mounts=mounts, environment=variables), serving)
                finally:
                    serving.cancel()
                    await asyncio.wait([serving])
        finally:
            folder.remove()

    async def _judged(self, address: RepositoryAddress, private_hosts: Sequence[str]) -> Address:
        """The host's address to connect to, whatever its name server says later. Raises CloneFailed."""
        try:
            found = await Rules((address.pattern,), private_hosts, self._resolve).addresses(_bare(address.host), address.port)
        except Refused as refusal:
            if refusal.error != "destination_ip_prohibited":
                raise CloneFailed(CloneFailure.UNAVAILABLE, refusal.message) from refusal
            raise CloneFailed(
                CloneFailure.NOT_ALLOWED,
                f"{address.pattern} is at an address that is not public, or at this machine. If that is meant, name {address.pattern} "
                "among the private_hosts of the sandbox policy.",
            ) from refusal
        if not found:
            raise CloneFailed(CloneFailure.UNAVAILABLE, f"The host {address.host} has no address.")
        # ssh tries only one address, and there may be no route by IPv6.
        return min(found, key=lambda one: one.version)

    def _command(self, address: RepositoryAddress, at: Address) -> list[str]:
        """Raises CloneFailed if there is no client."""
        client = shutil.which("ssh", path=self._access.path)
        if client is None:
            raise CloneFailed(
                CloneFailure.UNAVAILABLE,
                "There is no ssh client on this host. Install it (Debian: apt-get install openssh-client), or give an https address.",
            )
        host = _bare(address.host)
        # The form of known_hosts.
        alias = host if address.port == _PORT else f"[{host}]:{address.port}"
        options = [*_OPTIONS, f"HostName={at}", f"HostKeyAlias={alias}"]
        # No configuration file is read, which could forward, run commands, or ask.
        flags = ["-F", "none", "-T", "-p", str(address.port), *(["-l", address.user] if address.user else [])]
        if self._access.known_hosts is not None:
            options += [f'UserKnownHostsFile="{_named(self._access.known_hosts)}"', "GlobalKnownHostsFile=none"]
        if self._access.key is not None:
            options.append("IdentitiesOnly=yes")
            flags += ["-i", _named(self._access.key)]
        return [client, *flags, *(part for option in options for part in ("-o", option)), "--", host, _uploading(address.path)]

    def _laid_out(self, folder: SocketFolder) -> socket.socket:
        """Writes the program that git starts, and opens the socket for it. Raises OSError. Blocks."""
        program = folder.box / _PROGRAM
        program.write_text(f"#!{_PYTHON} -IS\n{_RELAY.read_text()}")
        program.chmod(0o755)
        path = folder.box / f"{_PROGRAM}.sock"
        listening = socket.socket(socket.AF_UNIX)
        try:
            path.unlink(missing_ok=True)
            listening.bind(str(path))
            path.chmod(0o600)
            self._folders.hand_over(path)
            listening.listen(1)
            listening.setblocking(False)
        except OSError:
            listening.close()
            raise
        return listening

    async def _served(self, listening: socket.socket, argv: Sequence[str], logs: Path) -> str:
        """Connects the client to the only connection. Returns the client's output."""
        await readable(listening.fileno())
        # Not `sock_accept`: a cancellation at that moment would leave the connection open.
        connection, _ = listening.accept()
        with connection:
            connection.setblocking(True)
            environment = {"GIT_PROTOCOL": "version=2", "LC_ALL": "C"}
            if self._access.agent is not None:
                environment["SSH_AUTH_SOCK"] = self._access.agent
            launch = self._launcher.launch(argv, folder=Path("/"), logs=logs, environment=environment, stdio=connection.fileno())
            try:
                process = await launched(launch, Process.kill)
            except OSError as error:
                return f"ssh cannot be started: {error.strerror}"
        try:
            await process.wait()
        finally:
            await process.kill()
        return process.stderr.tail()


def _bare(host: str) -> str:
    return host.strip("[]")


def _named(file: Path) -> str:
    """The path for ssh, which expands `%`."""
    return str(file).replace("%", "%%")


def _uploading(path: str) -> str:
    """The command for the other side's shell, quoted as git does. `/~name` is the home folder of that user."""
    path = path.removeprefix("/") if path.startswith("/~") else path
    quoted = path.replace("'", r"'\''").replace("!", r"'\!'")
    return f"git-upload-pack '{quoted}'"
