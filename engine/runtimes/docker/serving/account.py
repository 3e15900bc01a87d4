"""The sandbox account of a serving container: requested, enforced, and the reasons for differences."""

from engine.runtimes.docker_engine.limits import ContainerLimits, asked_limits, gpus_within
from engine.runtimes.docker_engine.settings import DockerSettings
from engine.runtimes.sandbox.identities import COUNTED_TOGETHER
from toolagent.contracts.manifest import ToolManifest
from toolagent.contracts.sandbox import Difference, SandboxAccount, SandboxLevel
from toolagent.contracts.sources import DockerSource
from toolagent_service.calls.sandbox import granted

_ELSEWHERE = {
    "read": "A container sees its image, and the folders in its source's `volumes`.",
    "write": "A container writes to /tmp, and to the folders in its source's `volumes`.",
    "environment": "A container gets the variables of its image and of its source's `environment`.",
}


def account_of(tool: ToolManifest, settings: DockerSettings, limits: ContainerLimits) -> SandboxAccount:
    """`limits` are those given to the engine."""
    asking = tool.security_context.asked
    enforced, differences = granted(asking, settings.policy)
    wanted = {item: getattr(enforced, item) for item in _ELSEWHERE}
    unmet = [Difference(item=item, requested=[*ones], reason=_ELSEWHERE[item]) for item, ones in wanted.items() if ones]
    if limits.beyond is not None:
        has_cpus = limits.told(enforced.limits).cpus
        unmet.append(Difference(item="limits.cpus", requested=limits.beyond, enforced=has_cpus, reason="This machine has no more."))
    if settings.identity is None:
        unmet.append(COUNTED_TOGETHER)
    has = enforced.model_copy(update={**dict.fromkeys(_ELSEWHERE, ()), "limits": limits.told(enforced.limits)})
    return SandboxAccount(level=SandboxLevel.DOCKER, requested=asking, enforced=has, differences=(*differences, *unmet))


def serving_limits(tool: ToolManifest, source: DockerSource, settings: DockerSettings, processors: int) -> ContainerLimits:
    """The limits of the source, else of the manifest, else of the settings, else of the policy; capped by the policy's ceilings."""
    own = asked_limits(source.mem_limit, source.nano_cpus, source.pids_limit)
    ours = asked_limits(settings.mem_limit, settings.nano_cpus)
    policy = settings.policy
    asking = own.or_else(tool.security_context.limits).or_else(ours).or_else(policy.defaults)
    gpus = gpus_within(policy, source.gpu_count if source.use_gpu else 0)
    return ContainerLimits.within(asking, policy.ceilings, processors, gpus)
