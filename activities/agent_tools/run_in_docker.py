"""Runs a command in a container."""

from typing import Annotated

from pydantic import Field

from activities.agent_tool import AgentTool, Arguments, Used
from activities.agent_tools.arguments import LONGEST_S, USUAL_S
from activities.agent_tools.site import Site
from engine.making.workbench.commands import outputs_shown
from engine.making.workbench.finishing import finished
from engine.making.workbench.notes import use_digest
from toolagent_service.agents.coding_log import shown_text


class RunInDocker(Arguments):
    container_id: Annotated[str, Field(description="As create_docker_env returned it.")]
    command: Annotated[str, Field(min_length=1, description="For /bin/sh, in the container.")]
    is_background: Annotated[bool, Field(description="Do not wait for it; its output goes to log_file in the container.")] = False
    timeout: Annotated[
        float, Field(gt=0, le=LONGEST_S, description="Seconds that it may take; in the background as long as the container lives.")
    ] = USUAL_S


async def run_in_docker(arguments: RunInDocker, site: Site) -> Used:
    containers, container, command = site.bench.containers, arguments.container_id, arguments.command
    site.beat(f"running {shown_text(command, 80)}")
    if arguments.is_background:
        return Used({"status": "started", "log_file": await containers.start(container, command)})
    ran = await containers.run(container, command, min(arguments.timeout, site.remaining_s))
    shown = await finished(outputs_shown, site.bench.folder, use_digest(site.use)[:8], ran.stdout.encode(), ran.stderr.encode())
    return Used({"exit_code": ran.exit_code, "stdout": shown[0], "stderr": shown[1]})


RUN_IN_DOCKER = AgentTool(
    "run_in_docker",
    "Run a shell command in a container of this task. Returns exit_code (124: it took too long), stdout and stderr, cut in the middle "
    "when they are long; or, in the background, log_file in the container, to be read with this tool (tail). Commands of one container "
    "share its network: a server in the background can be asked by the next command. What a restart interrupts is run again.",
    RunInDocker,
    run_in_docker,
)
