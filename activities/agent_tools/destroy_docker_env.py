"""Removes a container."""

from typing import Annotated

from pydantic import Field

from activities.agent_tool import AgentTool, Arguments, Used
from activities.agent_tools.site import Site


class DestroyDockerEnv(Arguments):
    container_id: Annotated[str, Field(description="As create_docker_env returned it.")]


async def destroy_docker_env(arguments: DestroyDockerEnv, site: Site) -> Used:
    await site.bench.containers.destroy(arguments.container_id, site.use)
    return Used({"status": "destroyed", "message": f"The container {arguments.container_id[:12]} is gone, with its files."})


DESTROY_DOCKER_ENV = AgentTool(
    "destroy_docker_env",
    "Remove a container of this task, with everything in it. What is left at the end of the task is removed by itself.",
    DestroyDockerEnv,
    destroy_docker_env,
)
