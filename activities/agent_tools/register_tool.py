"""Submits a candidate to the gate."""

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from activities.agent_tool import AgentTool, Arguments, Used
from activities.agent_tools.site import Site
from engine.making.workbench.proposal import Proposal
from toolagent.contracts.manifest import SideEffectScope
from toolagent.contracts.sources import HttpMethod
from toolagent_service.agents.coding import CODING

_OF_MANIFEST = {
    "name", "description", "category", "input_schema", "output_schema", "group_ids", "side_effect_scope", "timeout_s",
}  # fmt: skip
_OF_PROPOSAL = {"tool_id", "host_dir", "container_id", "internal_port", "endpoint_path", "http_method"}


class RegisterTool(Arguments):
    tool_id: Annotated[str, Field(description="The id that the task names.")]
    name: Annotated[str, Field(min_length=1, max_length=200, description="For people.")]
    description: Annotated[str, Field(min_length=1, max_length=4_000, description="What it does, for callers that look for a tool.")]
    runtime_type: Annotated[Literal["uv", "local", "docker"], Field(description="`uv` and `local` are the same.")]
    internal_port: Annotated[int, Field(ge=0, le=65_535, description="Of a server in a container; 0 for uv, which is told its port.")]
    category: Annotated[str, Field(min_length=1, max_length=64)] = "custom"
    input_schema: Annotated[dict[str, JsonValue], Field(description="JSON Schema of the parameters, an object.")] = {}
    output_schema: Annotated[dict[str, JsonValue], Field(description="JSON Schema of every answer.")] = {}
    container_id: Annotated[str | None, Field(description="Where it was tried; it is built from host_dir all the same.")] = None
    host_dir: Annotated[str | None, Field(description="The project's folder; for docker the one with the Dockerfile. Always needed.")] = (
        None
    )
    endpoint_path: Annotated[str, Field(pattern=r"^/", max_length=500)] = "/"
    http_method: HttpMethod = "POST"
    group_ids: tuple[str, ...] = ()
    side_effect_scope: Annotated[
        SideEffectScope, Field(description="What a call changes; `none` only when it changes nothing and reaches no host.")
    ] = SideEffectScope.NETWORK
    allow_hosts: Annotated[tuple[str, ...], Field(max_length=32, description="Hosts that it has to reach.")] = ()
    environment: Annotated[tuple[str, ...], Field(max_length=32, description="Names of the variables that it reads.")] = ()
    timeout_s: Annotated[float, Field(gt=0, le=3_600, description="Seconds one call may take.")] = 30.0


async def register_tool(arguments: RegisterTool, site: Site) -> Used:
    told = Proposal(
        is_docker=arguments.runtime_type == "docker",
        **arguments.model_dump(include=_OF_PROPOSAL),
        manifest={
            **arguments.model_dump(include=_OF_MANIFEST),
            "securityContext": {"networkAccess": {"allowHosts": arguments.allow_hosts}, "environment": arguments.environment},
        },
    )
    site.beat(f"locking and packing {arguments.tool_id}")
    submitted = await site.proposals.submit(site.bench, site.own_tool, told, is_there=site.is_repair, runtime=site.runtime)
    message = "It is submitted: it will be built again from its lock and checked. It cannot be called before that."
    runtime = submitted.runtime.value
    return Used({"status": "submitted", "tool_id": told.tool_id, "backend_runtime": runtime, "message": message}, submitted.file_id)


REGISTER_TOOL = AgentTool(
    CODING.final_tool,
    "Submit the tool for checking; it ends your turn. A uv project needs main.py, started as `python main.py --port N`, and a "
    "pyproject.toml with all that it depends on, installed by uv_add_dependency; a docker tool needs a folder directly below /work with "
    "a Dockerfile, whose server listens on internal_port. What you declare (schemas, hosts, variables) is what it is checked against.",
    RegisterTool,
    register_tool,
)
