"""The tool used no host, path or secret that it does not declare."""

from engine.making.gate.subject import Account, Subject, not_asked
from toolagent.contracts.making import CheckResult
from toolagent.contracts.sandbox import SandboxLevel
from toolagent_service.calls.hosts import host_matches

NAME = "stays within"
_FIELD = "securityContext.networkAccess.allowHosts"
_NAMED = 10


async def check(subject: Subject) -> CheckResult:
    """The proxy sees hosts. Undeclared paths and secrets are not in the sandbox, so the tool works without them."""
    # Refusals outside of calls are reported when its processes end.
    await subject.trial.renew()
    account = subject.trial.account()
    if account.sandbox is None:
        return not_asked(NAME, "It does not run in a sandbox of this host.")
    undeclared = [host for host in account.hosts if not _is_declared(subject, host)]
    if undeclared or account.unnamed:
        # Nothing was reached. Only tools of our agent must declare what they need: others' programs often ask for more.
        return CheckResult(check=NAME, passed=not subject.written_by_us, details=_told(subject, undeclared, unnamed=account.unnamed))
    seen = "It asked for nothing that it does not declare." if account.calls else "It was not called, so this shows little."
    return CheckResult(check=NAME, passed=True, applies=account.calls > 0, details=" ".join([seen, *_limits(account)]))


def _is_declared(subject: Subject, host: str) -> bool:
    """A declared host may be refused too: by the policy, or because its address is not public."""
    name, _, port = host.rpartition(":")
    patterns = (pattern for entry in subject.entries for pattern in entry.manifest.security_context.network_access.allow_hosts)
    return any(host_matches(pattern, name, int(port)) for pattern in patterns)


def _told(subject: Subject, hosts: list[str], *, unnamed: bool) -> str:
    named = f"It asked for {', '.join(hosts[:_NAMED])}, and does not declare that. " if hosts else ""
    more = "With examples that were kept back it asked for hosts that it does not declare. " if unnamed else ""
    if not subject.written_by_us:
        return f"{named}{more}It was refused. A task that is to let it says so in `hosts`."
    return f"{named}{more}Name the hosts in {_FIELD} of its manifest, or do without them."


def _limits(account: Account) -> list[str]:
    """Limits of this check, and rights that the tool declares and does not have."""
    said: list[str] = []
    if account.sandbox is not None and account.sandbox.level is SandboxLevel.RLIMITS:
        said.append("At the level rlimits a program can go around the proxy and see files of this machine, so this shows little.")
    items = ("hosts", "read", "write", "environment")
    unmet = [f"{one.item} {one.requested}" for one in account.sandbox.differences if one.item in items] if account.sandbox else []
    if unmet:
        said.append(f"Declared, but not had here: {'; '.join(unmet)}.")
    return said
