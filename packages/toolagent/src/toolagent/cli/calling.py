"""The commands that make a call and follow a task."""

from pathlib import Path
from typing import Annotated

import typer

from toolagent.cli.asking import Asked, asking
from toolagent.cli.batch import require_success, results_of
from toolagent.cli.endings import awaited, ended, finish, show_detached, started
from toolagent.cli.files import output_file, output_folder, read_text, uploaded
from toolagent.cli.follow import follow, has_ended
from toolagent.cli.interrupts import CtrlC
from toolagent.cli.making import show_making
from toolagent.cli.options import Detach, Out, Output, Timeout, Tool, tool_id_of
from toolagent.cli.parameters import ParameterError, parse_parameters
from toolagent.cli.render import show_batch, show_contract, show_task
from toolagent.contracts.calls import CallMode, ToolCall
from toolagent.contracts.http import TaskAccepted
from toolagent.contracts.task_specs import is_making
from toolagent.contracts.tasks import TaskState, TaskView

__all__ = ["call", "run", "task"]


@asking
def run(
    asked: Asked,
    tool: Tool,
    parameters: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME=VALUE",
            show_default=False,
            help="`name=value`, `name=@file`, `name:=json`, or one JSON object. A value is read by the tool's schema: "
            "a string stays a string. A file for a parameter of type file is uploaded. Repeat a name to fill a list.",
        ),
    ] = None,
    params: Annotated[str | None, typer.Option(help="All parameters as a JSON object, or `@file.json`; NAME=VALUE overrides.")] = None,
    detach: Detach = False,
    timeout: Timeout = None,
    key: Annotated[
        str | None, typer.Option(metavar="KEY", help="Idempotency key: the same key is one call, however often it is sent.")
    ] = None,
    version: Annotated[str | None, typer.Option(metavar="RANGE", help="A version, or a range: `^1.2`, `~1.2.3`, `>=1.2 <2`.")] = None,
    out: Out = None,
    output: Output = None,
) -> None:
    """Call a tool and print its result. Ctrl-C cancels the call.

    `toolagent run calculator expression='2 * (3 + 4)'`

    `toolagent run image_stitcher images=@a.png images=@b.png direction=vertical --out pictures`

    `toolagent run text_summarizer_api text=@letter.txt --json`

    `toolagent run text_summarizer_api text=@letter.txt --version "^1.0" --output summary.json`

    `toolagent run http_request url=https://example.com headers:='{"Accept": "text/html"}' --timeout 5`
    """
    if detach and (out or output):
        raise ParameterError(
            "--out and --output need the result: leave out --async, or fetch it later with `toolagent task ID --follow --out DIR`."
        )
    service, folder, file = asked.service, output_folder(out) if out else None, output_file(output) if output else None
    detail = service.tool(tool_id_of(tool))
    base = read_text(params[1:]) if params and params.startswith("@") else params
    values = parse_parameters(parameters or [], detail.input_schema, read_text, base)
    options = {"version": version, "timeout_s": timeout, "idempotency_key": key}
    given = {name: value for name, value in options.items() if value is not None}
    call = ToolCall.model_validate({"tool_id": tool, "params": values, "mode": CallMode.ASYNC, **given})
    call = call.model_copy(update={"params": uploaded(service, values)})
    with CtrlC() as ctrl_c:
        answer = started(service, call)
        if isinstance(answer, TaskAccepted) and detach:
            show_detached(answer)
            return
        result = awaited(service, answer, ctrl_c)
    finish(service, result, json_output=asked.json_output, folder=folder, file=file)


call = run


@asking
def task(
    asked: Asked,
    task_id: Annotated[
        str, typer.Argument(metavar="ID", help="The id that `run --async`, `create` or `repair` printed.", show_default=False)
    ],
    cancel: Annotated[bool, typer.Option("--cancel", help="Cancel it.")] = False,
    wait: Annotated[
        bool,
        typer.Option("--follow", "--wait", help="Wait until it ends; Ctrl-C cancels a call, and leaves a task that makes a tool running."),
    ] = False,
    log: Annotated[bool, typer.Option("--log", help="Show the end of its log; of a task that makes or repairs a tool.")] = False,
    say: Annotated[str | None, typer.Option(metavar="TEXT", help="Guidance for a task that makes or repairs a tool.")] = None,
    out: Out = None,
    output: Output = None,
) -> None:
    """Show a task, follow it to its end, cancel it or say something to it. Exit code 1 when it has failed.

    `toolagent task call-0123456789abcdef --follow`

    `toolagent task call-0123456789abcdef --cancel`

    `toolagent task create_a1b2c3d4 --say "Count hyphenated words as one." --follow`
    """
    if is_making(task_id):
        if out or output:
            raise ParameterError("--out and --output are for results of calls; `--json` shows all of a task that makes or repairs a tool.")
        show_making(asked, task_id, follow=wait, log=log, cancel=cancel, say=say)
        return
    if log or say is not None:
        raise ParameterError("--log and --say are for tasks that make or repair tools; their ids begin with create_ or repair_.")
    folder, file = output_folder(out) if out else None, output_file(output) if output else None
    with CtrlC() as ctrl_c:
        view = asked.service.cancel(task_id) if cancel else asked.service.task(task_id)
        view = follow(asked.service, task_id, ctrl_c) if wait else view
    if asked.json_output:
        show_contract(view)
    elif not has_ended(view) or cancel:
        show_task(view)
    if has_ended(view) and not (cancel and view.status is TaskState.CANCELLED):
        _finish(asked, view, quiet=asked.json_output or cancel, folder=folder, file=file)


def _finish(asked: Asked, view: TaskView, *, quiet: bool, folder: Path | None, file: Path | None) -> None:
    if view.calls:
        batch = results_of(asked.service, view)
        if not asked.json_output:
            show_batch(batch)
        require_success(batch)
    else:
        finish(asked.service, ended(view), quiet=quiet, folder=folder, file=file)
