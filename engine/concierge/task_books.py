"""From a wish for a tool to the task book that makes it."""

import re

from engine.concierge.needs import telling
from engine.concierge.recognising import repository_in
from engine.concierge.wish import Wish
from toolagent.contracts.task_specs import BuildTool, GithubDeploy, RepairTool
from toolagent.core.task_requests import prose_spec, read_spec, tool_name_from
from toolagent.validation.tool_names import tool_name_for

_NO_NAME = re.compile(r"tool_[0-9a-f]{8}")


def task_book(wish: Wish, description: str) -> BuildTool | GithubDeploy | RepairTool | None:
    """None when it is not clear what is to be made. Raises SpecError when it is clear and cannot be."""
    if url := repository_in(wish.about):
        name = tool_name_from(url.removesuffix("/").removesuffix(".git").rpartition("/")[2]) or tool_name_for(url)
        return read_spec({"type": "github_deploy", "repo_url": url, "tool_name": name}, description)
    name = tool_name_for(wish.about) if telling(wish.about) else ""
    if not name or _NO_NAME.fullmatch(name):
        return None
    return prose_spec("", description, name)


def repair_book(tool_id: str, error: str) -> BuildTool | GithubDeploy | RepairTool:
    """Raises SpecError."""
    return read_spec({"type": "repair_tool", "tool_id": tool_id, "error": error})
