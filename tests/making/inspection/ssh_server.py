"""A real sshd on 127.0.0.1 with keys of its own, run by the user of the tests."""

import getpass
import os
import subprocess
import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from engine.network.ports import free_port

_SSHD = Path("/usr/sbin/sshd")
_APART = Path("/run/sshd")
"""Where it wants a folder to be when root runs it."""
_READY = "Server listening"


@dataclass(frozen=True, slots=True)
class SshServer:
    """The server accepts `key`, and not `stranger`. `known_hosts` names the server as `host` with its port, `other_hosts` names it with
    another key.
    """

    port: int
    key: Path
    stranger: Path
    known_hosts: Path
    other_hosts: Path
    user: str


@contextmanager
def ssh_server(folder: Path, host: str) -> Generator[SshServer]:
    """Serves all files that the user can read, on a free port, during the block."""
    for name in ("host", "other", "key", "stranger"):
        command = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(folder / name))
        subprocess.run(command, check=True)
    (folder / "authorized").write_text((folder / "key.pub").read_text())
    port = free_port()
    for name, key in (("known_hosts", "host"), ("other_hosts", "other")):
        (folder / name).write_text(f"[{host}]:{port} {(folder / f'{key}.pub').read_text()}")
    options = {
        "Port": port, "ListenAddress": "127.0.0.1", "HostKey": folder / "host", "AuthorizedKeysFile": folder / "authorized",
        "PidFile": "none", "UsePAM": "no", "StrictModes": "no", "PasswordAuthentication": "no", "KbdInteractiveAuthentication": "no",
        "AcceptEnv": "GIT_PROTOCOL", "PermitUserEnvironment": "no", "PrintMotd": "no", "LogLevel": "INFO",
    }  # fmt: skip
    (folder / "config").write_text("".join(f"{name} {value}\n" for name, value in options.items()))
    if os.geteuid() == 0:
        _APART.mkdir(mode=0o755, exist_ok=True)
    command = (str(_SSHD), "-D", "-e", "-f", str(folder / "config"))
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as serving:
        assert serving.stderr is not None
        said: list[str] = []
        for line in serving.stderr:
            said.append(line)
            if line.startswith(_READY):
                break
        else:
            raise AssertionError(f"sshd did not start: {''.join(said)}")
        # Nobody may have to wait for what it says.
        reading = threading.Thread(target=said.extend, args=(serving.stderr,))
        reading.start()
        try:
            user = getpass.getuser()
            yield SshServer(port, folder / "key", folder / "stranger", folder / "known_hosts", folder / "other_hosts", user)
        finally:
            serving.terminate()
            serving.wait(10)
            reading.join(10)
