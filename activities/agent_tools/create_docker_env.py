"""Creates a container to build in."""

from typing import Annotated, cast

from pydantic import Field, JsonValue

from activities.agent_tool import AgentTool, Arguments, Used
from activities.agent_tools.arguments import MemLimit, NanoCpus, Ports
from activities.agent_tools.site import Site
from engine.runtimes.docker.building.wishes import Wishes


class CreateDockerEnv(Arguments):
    image: Annotated[str, Field(min_length=1, max_length=500, description="Such as python:3.12-slim.")]
    mem_limit: MemLimit = None
    nano_cpus: NanoCpus = None
    ports: Ports = ()
    volumes: Annotated[dict[str, str], Field(description="Folders of the container's own that stay: a name, and where it sees it.")] = {}
    use_gpu: bool = False
    gpu_count: Annotated[int, Field(ge=-1, description="-1: all of them.")] = -1


async def create_docker_env(arguments: CreateDockerEnv, site: Site) -> Used:
    wishes = Wishes(site.own_tool, **dict(arguments))
    site.beat(f"making a container of {arguments.image[:80]}")
    made = await site.bench.containers.create(wishes, site.use, site.beat)
    return Used({"container_id": made.container_id, "port_mapping": cast("dict[str, JsonValue]", made.port_mapping)})


CREATE_DOCKER_ENV = AgentTool(
    "create_docker_env",
    "Make a container to build and try things in, as root. It sees the files of the task at /work, read-only, reaches the package "
    "indexes and nothing else, and keeps its own files until it is destroyed or not used for long. Returns container_id and "
    "port_mapping. It cannot become a tool: write the steps that it needs into a Dockerfile.",
    CreateDockerEnv,
    create_docker_env,
)
