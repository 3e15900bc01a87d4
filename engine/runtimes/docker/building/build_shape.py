"""What a build container is like, told to the engine and to who asks for it."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from engine.runtimes.docker.building.wishes import Note, Wishes
from engine.runtimes.docker_engine.carried import Carried
from engine.runtimes.docker_engine.engine import Document
from engine.runtimes.docker_engine.labels import Kind, Marks
from engine.runtimes.docker_engine.limits import ContainerLimits, bytes_of, gpus_within
from engine.runtimes.docker_engine.serving_containers import entered, entry, hardened
from engine.runtimes.docker_engine.settings import DockerSettings
from engine.runtimes.sandbox.egress import SandboxNetwork
from toolagent.contracts.sandbox import SandboxLimits
from toolagent_service.contracts.containers import ContainerInfo

_CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "SETGID", "SETUID")
"""What package managers need of root."""
_NANO = 1_000_000_000


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
    """The engine's description of it. `variables` are told to its programs, unless the wishes say otherwise."""
    wishes = note.wishes
    marks = Marks(Kind.BUILD, name, wishes.tool_id, "", settings.host, settings.owner.mark, note.mark)
    idle = carried.argv("idle")
    host: Document = {
        **hardened(limits),
        "CapAdd": [*_CAPABILITIES],
        "Mounts": [*entered(way, carried), *mounts],
    }
    environment = {"HOME": "/root", **variables, **wishes.environment, **way.environment}
    return {
        "Image": image,
        "Entrypoint": [*entry(way, carried), *idle] if way.prefix else idle,
        "Cmd": [],
        "User": "0:0",
        "WorkingDir": "/",
        "Env": [f"{name}={value}" for name, value in environment.items()],
        "Labels": settings.labels(marks),
        "Healthcheck": {"Test": ["NONE"]},
        "HostConfig": host,
    }


def build_info(
    settings: DockerSettings, container: str, note: Note, published: Mapping[int, int], created_at: datetime, limits: ContainerLimits
) -> ContainerInfo:
    """For the list of containers. `published` are the ports of this machine by those of the container."""
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
    own = SandboxLimits(
        memory_bytes=bytes_of(wishes.mem_limit or settings.mem_limit),
        cpus=(wishes.nano_cpus or settings.nano_cpus) / _NANO,
    )
    policy = settings.policy
    return ContainerLimits.within(
        own.or_else(policy.defaults), policy.ceilings, processors, gpus_within(policy, wishes.gpu_count if wishes.use_gpu else 0)
    )
