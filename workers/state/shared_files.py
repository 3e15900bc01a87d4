"""Checks that all hosts see the same files: several state directories cannot share a folder of one."""

from api.ports import NotReadyError
from engine.store.hosts import HostTable
from workers.settings.kept import ContentSettings
from workers.state.directory import StateDirectory


async def require_shared_files(hosts: HostTable, settings: ContentSettings, state: StateDirectory) -> None:
    """Raises NotReadyError if files are kept in this state directory while a host with another one is alive."""
    if settings.content_store != "folder":
        return
    others = sorted(host.host for host in await hosts.list_all() if host.is_alive and host.origin != state.origin)
    if others:
        raise NotReadyError(
            f"Files are kept in a folder of this state directory, where the hosts on other ones do not see them ({', '.join(others)}). "
            "Set TOOL_AGENT_CONTENT_STORE to `database` or `s3` on all hosts and front doors."
        )
