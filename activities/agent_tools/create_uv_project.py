"""Creates a Python project."""

from typing import Annotated

from pydantic import Field

from activities.agent_tool import AgentTool, AgentToolRefused, Arguments, Used
from activities.agent_tools.site import Site


class CreateUvProject(Arguments):
    name: Annotated[str, Field(description="Of the folder below /work: small letters, digits, '-' and '_'.")]
    python_version: Annotated[str | None, Field(description="Such as 3.11; only that of this service can be had.")] = None


async def create_uv_project(arguments: CreateUvProject, site: Site) -> Used:
    there, asked = site.bench.python_version, arguments.python_version
    if asked is not None and not f"{asked}.".startswith(f"{there}."):
        raise AgentToolRefused(f"Python {asked} cannot be had here, only {there}. Leave python_version out.")
    site.beat(f"making the project {arguments.name}")
    return Used({"project_dir": await site.bench.create_project(arguments.name), "python_version": there})


CREATE_UV_PROJECT = AgentTool(
    "create_uv_project",
    "Make a Python project: a folder below /work with a pyproject.toml, and an environment of its own for packages. Returns "
    "project_dir, which the other uv tools want. A project that is there already stays as it is.",
    CreateUvProject,
    create_uv_project,
)
