"""Adds a package to a project."""

from typing import Annotated

from pydantic import Field

from activities.agent_tool import AgentTool, AgentToolRefused, Arguments, Used
from activities.agent_tools.site import Site
from engine.making.dependencies.gate import refusals_of

_LONGEST_S = 600.0


class UvAddDependency(Arguments):
    project_dir: Annotated[str, Field(description="As create_uv_project returned it.")]
    package: Annotated[str, Field(min_length=1, max_length=500, description="One requirement, such as `fastapi` or `httpx[http2]>=0.27`.")]
    dev: Annotated[bool, Field(description="Only for developing, such as pytest: the tool will not have it.")] = False


async def uv_add_dependency(arguments: UvAddDependency, site: Site) -> Used:
    site.beat(f"looking at the package {arguments.package[:80]}")
    (verdict,) = await site.gate.judge((arguments.package,))
    for refusal in refusals_of([verdict]):
        raise AgentToolRefused(refusal.message)
    site.beat(f"installing {verdict.requirement[:80]}")
    wall_s = min(_LONGEST_S, site.remaining_s)
    await site.bench.add_dependency(arguments.project_dir, verdict, wall_s, dev=arguments.dev)
    return Used({"status": "installed", "message": f"{verdict.requirement} is installed and stands in pyproject.toml."})


UV_ADD_DEPENDENCY = AgentTool(
    "uv_add_dependency",
    "Install a package of the package index into a project, and write it into its pyproject.toml. Names that do not exist, that can be "
    "taken for another package, or that are very new are refused, with the reason. An installation that fails changes nothing.",
    UvAddDependency,
    uv_add_dependency,
)
