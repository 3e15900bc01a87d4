"""The rights that a policy grants to a tool in its sandbox."""

from collections.abc import Callable, Iterable

from pydantic import JsonValue

from toolagent.contracts.sandbox import Difference, SandboxGrant, SandboxLimits, SandboxPolicy
from toolagent_service.calls.hosts import parted, ports_of


def granted(asking: SandboxGrant, policy: SandboxPolicy) -> tuple[SandboxGrant, tuple[Difference, ...]]:
    """The rights within the policy, and the differences from those requested."""
    differences: list[Difference] = []
    limits = _limits(asking.limits, policy, differences)
    return (
        SandboxGrant(
            read=_kept("read", asking.read, lambda path: _is_within(path, policy.read), differences),
            write=_kept("write", asking.write, lambda path: _is_within(path, policy.write), differences),
            hosts=_kept("hosts", asking.hosts, lambda host: _covers(policy.hosts, host), differences),
            environment=_kept("environment", asking.environment, lambda name: name in policy.environment, differences),
            limits=limits,
        ),
        tuple(differences),
    )


def _covers(allowed: Iterable[str], pattern: str) -> bool:
    """Whether one allowed pattern matches everything that this pattern matches."""
    name, port = parted(pattern)
    for outer_name, outer_port in map(parted, allowed):
        # A policy that allows every host, without a port, allows every port too.
        is_any = outer_name == "*" and outer_port is None
        of_ports = is_any or set(ports_of(port)) <= set(ports_of(outer_port))
        if of_ports and (outer_name in ("*", name) or (outer_name.startswith("*.") and name.endswith(outer_name[1:]))):
            return True
    return False


def _is_within(path: str, allowed: Iterable[str]) -> bool:
    """Whether a path is the tool's own, or below an allowed one."""
    parts = path.split("/")
    if ".." in parts:
        return False
    if not path.startswith(("/", "~")):
        return True
    return any(path == outer or path.startswith(outer.rstrip("/") + "/") for outer in allowed)


def _kept(item: str, asking: tuple[str, ...], is_allowed: Callable[[str], bool], differences: list[Difference]) -> tuple[str, ...]:
    kept = tuple(one for one in asking if is_allowed(one))
    if kept != asking:
        differences.append(
            Difference(item=item, requested=list(asking), enforced=list(kept), reason="The policy of this host does not allow the rest.")
        )
    return kept


def _limits(asking: SandboxLimits, policy: SandboxPolicy, differences: list[Difference]) -> SandboxLimits:
    wanted = asking.or_else(policy.defaults)
    capped: dict[str, JsonValue] = {}
    for name in SandboxLimits.model_fields:
        value, ceiling = getattr(wanted, name), getattr(policy.ceilings, name)
        if value is not None and ceiling is not None and value > ceiling:
            capped[name] = ceiling
            differences.append(
                Difference(item=f"limits.{name}", requested=value, enforced=ceiling, reason="The policy of this host allows no more.")
            )
    return wanted.model_copy(update=capped)
