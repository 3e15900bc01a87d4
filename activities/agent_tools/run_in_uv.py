"""Runs a command in a project."""

from typing import Annotated

from pydantic import Field

from activities.agent_tool import AgentTool, Arguments, Used
from activities.agent_tools.arguments import LONGEST_S, USUAL_S
from activities.agent_tools.site import Site
from toolagent_service.agents.coding_log import shown_text


class RunInUv(Arguments):
    project_dir: Annotated[str, Field(description="As create_uv_project returned it.")]
    command: Annotated[str, Field(min_length=1, description="For /bin/sh, in the project's folder.")]
    is_background: Annotated[bool, Field(description="Do not wait for it; its output goes to log_file.")] = False
    timeout: Annotated[
        float | None,
        Field(gt=0, le=LONGEST_S, description=f"Seconds that it may take; {USUAL_S:g} where none are said, in the background any."),
    ] = None


async def run_in_uv(arguments: RunInUv, site: Site) -> Used:
    bench, project, command = site.bench, arguments.project_dir, arguments.command
    site.beat(f"running {shown_text(command, 80)}")
    if arguments.is_background:
        log = await bench.start(project, command, min(arguments.timeout or site.remaining_s, site.remaining_s), site.use)
        return Used({"status": "started", "log_file": log})
    ran = await bench.run(project, command, min(arguments.timeout or USUAL_S, site.remaining_s), site.use)
    note = {"note": ran.note} if ran.note else {}
    return Used({"exit_code": ran.exit_code, **note, "stdout": ran.stdout, "stderr": ran.stderr})


RUN_IN_UV = AgentTool(
    "run_in_uv",
    "Run a shell command in a project, with the project's Python and packages first on the PATH. It sees /work, which it may change, "
    "and nothing else of the machine; it has no network but its own loopback, which no other command shares: to try a server, start it "
    "and ask it in one command, such as `python main.py --port 8000 & sleep 2; curl -s localhost:8000/health; kill $!`. Packages are "
    "added by uv_add_dependency only. Returns exit_code, stdout and stderr, cut in the middle when they are long; or, in the "
    "background, log_file for read_file. What is in the background ends with its timeout, or with the task. What a restart of this "
    "service interrupts is run again.",
    RunInUv,
    run_in_uv,
)
