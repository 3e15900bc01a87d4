"""The commands of `toolagent`.

Only the module of the command that is run is imported.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

__all__ = ["COMMANDS", "app"]

COMMANDS: Mapping[str, tuple[str, str]] = {
    "tools": ("tools", "List the tools, or search them."),
    "show": ("tools", "Show what a tool takes, gives and is allowed, with a call to copy."),
    "run": ("calling", "Call a tool and print its result. Ctrl-C cancels the call."),
    "call": ("calling", "Call a tool and print its result. Ctrl-C cancels the call."),
    "status": (
        "status",
        "Show the health of the service, its hosts, sessions, repairs and running tools. Exit code 1 if it is not healthy.",
    ),
    "chat": ("chat", "Talk with the service: find tools, learn how they are called, have them made. Exit code 1 without a proper answer."),
    "task": ("calling", "Show a task, follow it to its end, cancel it or say something to it. Exit code 1 when it has failed."),
    "audit": ("audit", "List what sandboxed programs did on the host that answers, the newest first."),
    "start": ("control", "Start a tool before its first call; a call starts it too."),
    "stop": ("control", "Stop a tool wherever it runs; its calls in flight fail, and the next call starts it again."),
    "remove": ("control", "Stop a tool and take it out of the registry, with all its versions and its files."),
    "usage": ("usage", "Show how often a tool was called, how long it took, and how often it failed."),
    "versions": ("catalog", "List the versions of a tool. Calls that name no version get the active one."),
    "activate": ("catalog", "Make a version active: calls that name no version get it."),
    "deactivate": ("catalog", "Deactivate a version: no new call gets it; running calls finish on it."),
    "hosts": ("hosts", "The machines that run tools."),
    "export": ("catalog", "Write the catalog as files, in the formats that the service reads."),
    "batch": ("batch", "Make many calls and list how they ended. Ctrl-C cancels the batch. Exit code 1 when a call failed."),
    "create": ("making", "Have a tool made. Prints the task's id; with --follow exit code 0 only if the tool is there."),
    "repair": ("making", "Have a tool repaired. The current version stays active until a new one has passed."),
    "rollback": (
        "making",
        "Return to the version of a tool that was active before. The version it leaves cannot be called until it is activated.",
    ),
    "tasks": ("making", "List the tasks that make or repair tools, the newest first."),
    "validate": (
        "validate",
        "Check `*.tool.json` files: each fault with its line, its JSON path and the reason. Exit code 1 when there are any.",
    ),
    "new-tool": (
        "new_tool",
        "Write a script tool: its `*.tool.json`, a script that works, and a test of it. Existing files are not overwritten.",
    ),
    "test": ("examples", "Call a tool with each of its examples. The output must contain what the example expects."),
    "external": ("external", "Tables of tools on other hosts."),
    "mcp": ("mcp", "MCP servers, whose tools are found and called here."),
    "knowhub": ("knowhub", "Link the resources of KnowHub and our tools to each other."),
    "file": ("catalog", "Files that tools take and give."),
    "group": ("group", "Groups of tools, and their sessions."),
}
"""By name: the module with the function of this name, and the first paragraph of its docstring, so that the list imports no module."""

_HIDDEN = {"call"}


class _Outline(TyperCommand):
    """A command in the overview and in the shell's completion. With arguments, it loads the command itself."""

    # The types that typer returns here have no public names.
    def make_context(self, *words: Any, **options: Any):
        return self.loaded().make_context(*words, **options)

    def loaded(self):
        name = self.name or ""
        found = getattr(import_module(f"toolagent.cli.{COMMANDS[name][0]}"), name.replace("-", "_"))
        if isinstance(found, typer.Typer):
            command = get_group(found)
        else:
            alone = typer.Typer(rich_markup_mode=app.rich_markup_mode, add_completion=False, pretty_exceptions_enable=False)
            alone.command(name, hidden=self.hidden)(found)
            command = get_command(alone)
        command.name = name
        return command


class _Overview(TyperGroup):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, (_, summary) in COMMANDS.items():
            self.add_command(_Outline(name, help=summary, hidden=name in _HIDDEN, rich_markup_mode=self.rich_markup_mode))


app = typer.Typer(
    name="toolagent",
    cls=_Overview,
    no_args_is_help=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        # This import takes a fifth of the overview's time, and the overview does not need it.
        metadata = import_module("importlib.metadata")
        typer.echo(f"toolagent {metadata.version('toolagent')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")] = False,
) -> None:
    """Find, call and watch the tools of a Tool Agent service.

    Data goes to stdout, messages to stderr. Exit codes: 0 done, 1 the call failed, 2 wrong usage, 3 the service cannot be reached.
    """
