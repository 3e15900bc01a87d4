"""The health path answers."""

from engine.making.gate.subject import Subject, not_asked
from engine.making.gate.wording import listed
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.making import CheckResult
from toolagent.contracts.sources import HttpSource

NAME = "health"
_OURS = "/health"
_OK = 200
_NOT_FOUND = 404
_SERVER_ERROR = 500
_UNREACHED = "The server has to be reachable from this host, and well. Is that its address? The task's `server_url` can name another."


async def check(subject: Subject) -> CheckResult:
    """Tools that we write answer 200 at `/health`. Others answer 200 at their health path; without one, no server error."""
    faults: dict[str, str] = {}
    servers: dict[str, list[str]] = {}
    asked = 0
    for entry in subject.each(NAME):
        source = entry.sources[0]
        if not isinstance(source, HttpSource):
            continue
        asked += 1
        server = next(iter(source.traits.servers), "")
        if not server or server not in servers:
            servers[server] = await _faults(subject, entry, source)
        if told := " ".join(servers[server]):
            faults[entry.manifest.tool_id] = f"{server}: {told} {_UNREACHED}" if server else told
    if not asked:
        return not_asked(NAME, "It is no server, so it has no health path.")
    # A fault of a server is reported once, however many tools it serves.
    details = listed([*dict.fromkeys(faults.values())], subject.limits.told) or "It answered."
    return CheckResult(check=NAME, passed=not faults, details=details, faults=faults)


async def _faults(subject: Subject, entry: ToolEntry, source: HttpSource) -> list[str]:
    tool_id, path = entry.manifest.tool_id, source.health_path
    if subject.written_by_us:
        status = await subject.trial.health(tool_id, _OURS)
        return [] if status == _OK else [f"GET {_OURS} of {tool_id!r} {_said(status)}; it has to answer 200 as soon as it can serve."]
    status = await subject.trial.health(tool_id, path)
    if status == _NOT_FOUND:
        path, status = "/", await subject.trial.health(tool_id, "/")
    elif not (source.traits.elsewhere or path == _OURS):
        return [] if status == _OK else [f"GET {path} of {tool_id!r} {_said(status)} instead of 200."]
    # The path is not declared: a remote server may refuse it, or a request without a key.
    is_well = status is not None and status < _SERVER_ERROR
    return [] if is_well else [f"GET {path} of {tool_id!r} {_said(status)}."]


def _said(status: int | None) -> str:
    return "did not answer" if status is None else f"answered {status}"
