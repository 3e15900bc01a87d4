"""Descriptions of a build container: for the engine, and for the list of containers."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from engine.runtimes.docker.building.wishes import Note, Wishes
from engine.runtimes.docker_engine.carried import Carried
from engine.runtimes.docker_engine.engine import Document
from engine.runtimes.docker_engine.labels import Kind
from engine.runtimes.docker_engine.limits import ContainerLimits, asked_limits, gpus_within
from engine.runtimes.docker_engine.serving_containers import entered, entry, hardened
from engine.runtimes.docker_engine.settings import DockerSettings
from engine.runtimes.sandbox.egress import SandboxNetwork
from toolagent_service.contracts.containers import ContainerInfo

_CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETGID", "SETUID")
"""The capabilities of root that package managers need."""


def build_config(
    settings: DockerSettings,
    note: Note,
    name: str,
    image: str,
    way: SandboxNetwork,
    carried: Carried,
    mounts: Sequence[Document],
    variables: Mapping[str, str],
    limits: ContainerLimits,
) -> Document:
    """The engine's description of the container. `wishes.environment` overrides `variables`."""
    wishes = note.wishes
    idle = carried.argv("idle")
    environment = {"HOME": "/root", **variables, **wishes.environment, **way.environment}
    return {
        "Image": image,
        "Entrypoint": [*entry(way, carried), *idle] if way.prefix else idle,
        "Cmd": [],
        "User": "0:0",
        "WorkingDir": "/",
        "Env": [f"{name}={value}" for name, value in environment.items()],
        "Labels": settings.labels(settings.marks(Kind.BUILD, name, wishes.tool_id, source=note.mark)),
        "Healthcheck": {"Test": ["NONE"]},
        "HostConfig": {**hardened(limits), "CapAdd": [*_CAPABILITIES], "Mounts": [*entered(way, carried), *mounts]},
    }


def build_info(
    settings: DockerSettings, container: str, note: Note, published: Mapping[int, int], created_at: datetime, limits: ContainerLimits
) -> ContainerInfo:
    """The entry in the list of containers. `published` maps the container's ports to those of this machine."""
    wishes = note.wishes
    return ContainerInfo(
        container_id=container,
        tool_id=wishes.tool_id,
        image=note.image,
        port_mapping={str(port): outside for port, outside in published.items()},
        volumes=dict(wishes.volumes),
        mem_limit=wishes.mem_limit or settings.mem_limit,
        nano_cpus=limits.nano_cpus,
        use_gpu=wishes.use_gpu,
        gpu_count=wishes.gpu_count,
        created_at=created_at,
    )


def limits_of(settings: DockerSettings, wishes: Wishes, processors: int) -> ContainerLimits:
    own = asked_limits(wishes.mem_limit or settings.mem_limit, wishes.nano_cpus or settings.nano_cpus)
    policy = settings.policy
    return ContainerLimits.within(
        own.or_else(policy.defaults), policy.ceilings, processors, gpus_within(policy, wishes.gpu_count if wishes.use_gpu else 0)
    )
