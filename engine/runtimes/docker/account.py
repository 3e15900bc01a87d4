"""What a serving container was asked to have, what it has, and why that is less."""

from engine.runtimes.docker.limits import ContainerLimits
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sandbox import Difference, SandboxAccount, SandboxLevel, SandboxPolicy
from toolagent.core.sandbox import asked, granted

__all__ = ["account_of"]

_ELSEWHERE = {
    "read": "A container sees its image, and the folders in its source's `volumes`.",
    "write": "A container writes to /tmp, and to the folders in its source's `volumes`.",
    "environment": "A container gets the variables of its image and of its source's `environment`.",
}


def account_of(tool: ToolManifest, policy: SandboxPolicy, limits: ContainerLimits) -> SandboxAccount:
    """`limits` are those that the engine was told."""
    asking = asked(tool.security_context)
    enforced, differences = granted(asking, policy)
    wanted = {item: getattr(enforced, item) for item in _ELSEWHERE}
    unmet = [Difference(item=item, requested=[*ones], reason=_ELSEWHERE[item]) for item, ones in wanted.items() if ones]
    has = enforced.model_copy(update={**dict.fromkeys(_ELSEWHERE, ()), "limits": limits.told(enforced.limits)})
    return SandboxAccount(level=SandboxLevel.DOCKER, requested=asking, enforced=has, differences=(*differences, *unmet))
