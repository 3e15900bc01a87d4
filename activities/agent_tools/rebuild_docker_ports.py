"""Recreates a container with other ports."""

from typing import Annotated, cast

from pydantic import Field, JsonValue

from activities.agent_tool import AgentTool, Arguments, Used
from activities.agent_tools.arguments import MemLimit, NanoCpus, Ports
from activities.agent_tools.site import Site


class RebuildDockerPorts(Arguments):
    container_id: Annotated[str, Field(description="As create_docker_env returned it.")]
    ports: Ports
    mem_limit: MemLimit = None
    nano_cpus: NanoCpus = None


async def rebuild_docker_ports(arguments: RebuildDockerPorts, site: Site) -> Used:
    site.beat("making the container anew with other ports")
    made = await site.bench.containers.rebuild(
        arguments.container_id, arguments.ports, site.use, mem_limit=arguments.mem_limit, nano_cpus=arguments.nano_cpus
    )
    return Used({"new_container_id": made.container_id, "port_mapping": cast("dict[str, JsonValue]", made.port_mapping)})


REBUILD_DOCKER_PORTS = AgentTool(
    "rebuild_docker_ports",
    "Make a container anew with other ports and the same files; its programs end, and the old container_id is no longer valid. Returns "
    "new_container_id and port_mapping.",
    RebuildDockerPorts,
    rebuild_docker_ports,
)
