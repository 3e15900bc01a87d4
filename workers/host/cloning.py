"""The cloner of repositories on this host."""

from pathlib import Path

from engine.making.repositories.cloning import CloneLimits, Cloner
from engine.making.repositories.ssh import SshAccess, SshClient
from engine.runtimes.process.processes import Launcher
from engine.runtimes.sandbox.socket_folder import SocketFolders
from workers.failures import CannotRun, cannot_run_on
from workers.host.scripts import Tooling
from workers.settings.environment import environment
from workers.settings.making import RepositorySettings
from workers.state.directory import StateDirectory

SHORTER_PATH = " Set TOOL_AGENT_STATE_DIR or TMPDIR to a folder with a shorter path."


def cloner_of(settings: RepositorySettings, state: StateDirectory, launcher: Launcher, tooling: Tooling) -> Cloner:
    """Raises CannotRun if a file that a setting names does not exist, or there is no place for sockets."""
    variables = environment()
    path = variables.get("PATH")
    access = SshAccess(
        key=_file("TOOL_AGENT_REPO_SSH_KEY", settings.repo_ssh_key),
        known_hosts=_file("TOOL_AGENT_REPO_SSH_KNOWN_HOSTS", settings.repo_ssh_known_hosts),
        agent=variables.get("SSH_AUTH_SOCK"),
        path=path,
    )
    with cannot_run_on(OSError, remedy=SHORTER_PATH):
        # `Egress` uses the same folders, and sweeps and closes them.
        folders = SocketFolders(state.root, None)
    limits = CloneLimits(settings.repo_max_bytes, settings.repo_max_files, settings.repo_timeout_s)
    ssh = SshClient(launcher, folders, access)
    return Cloner(tooling.executor, tooling.network, schemes=settings.repo_schemes, limits=limits, path=path, ssh=ssh)


def _file(setting: str, file: Path | None) -> Path | None:
    if file is None:
        return None
    if not file.is_file():
        raise CannotRun(f"{setting} is {str(file)!r}, and there is no such file.")
    return file.absolute()
