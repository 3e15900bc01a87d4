"""The commands that have tools made, repaired and taken back."""

import uuid
from collections.abc import Generator
from contextlib import contextmanager
from typing import Annotated

import typer
from pydantic import JsonValue

from toolagent.cli.asking import Asked, asking
from toolagent.cli.evidence import CHECK_COLUMNS, check_row, origins
from toolagent.cli.failures import fail_if
from toolagent.cli.files import read_document, read_text
from toolagent.cli.making_follow import elapsed, follow_making, how_to_follow, spent
from toolagent.cli.options import Tool, tool_id_of
from toolagent.cli.parameters import ParameterError, named_values, parse_json, require_text
from toolagent.cli.render import show_failure, show_lines, show_note, show_plain, show_rows, show_versions
from toolagent.client.http import Refused, Unreachable
from toolagent.client.http_answers import is_unanswered
from toolagent.contracts.making import StageView
from toolagent.contracts.making_views import ListedTask, MakingTask, TaskListing, TaskSubmitted
from toolagent.contracts.tasks import TaskState
from toolagent.validation.tool_names import tool_name_for

__all__ = ["create", "repair", "rollback", "show_making", "tasks"]

_COLUMNS = ("task", "status", "tool", "stage", "time", "cost", "reason or progress")

Examples = Annotated[
    list[str] | None,
    typer.Option("--example", metavar="FILE", help='A JSON file: {"input": …, "expected_output": …}, or a list of such. May be repeated.'),
]
Follow = Annotated[bool, typer.Option("--follow", help="Show its log until it ends; Ctrl-C leaves it running.")]
Key = Annotated[str | None, typer.Option(metavar="KEY", help="Idempotency key: the same key is one task, however often it is sent.")]


@asking
def create(
    asked: Asked,
    description: Annotated[str, typer.Argument(show_default=False, help="What the tool should do, in your words.")] = "",
    spec: Annotated[
        str | None, typer.Option(metavar="FILE|-", help="A task specification as JSON, or prose; the options below override its fields.")
    ] = None,
    repo: Annotated[str | None, typer.Option(metavar="URL", help="Make a tool of this repository.")] = None,
    name: Annotated[str | None, typer.Option(metavar="ID", help="The id of the tool; by default made from the description or URL.")] = None,
    runtime: Annotated[str | None, typer.Option(help="local, uv (the same) or docker.")] = None,
    ref: Annotated[str | None, typer.Option(metavar="REF", help="A branch, a tag or a commit of the repository.")] = None,
    path: Annotated[str | None, typer.Option(metavar="PATH", help="A folder of the repository, or one OpenAPI document.")] = None,
    env: Annotated[list[str] | None, typer.Option(metavar="NAME=VALUE", help="A variable it runs with; keys as secret:NAME.")] = None,
    host: Annotated[list[str] | None, typer.Option(metavar="HOST", help="A host that the tool may reach.")] = None,
    operation: Annotated[list[str] | None, typer.Option(metavar="NAME", help="Only these operations, commands or tags; * for any.")] = None,
    server_url: Annotated[str | None, typer.Option(metavar="URL", help="Where the API of an OpenAPI document is served.")] = None,
    probe: Annotated[str | None, typer.Option(help="Operations of remote servers that get made-up input: none, safe or full.")] = None,
    example: Examples = None,
    follow: Follow = False,
    key: Key = None,
) -> None:
    """Have a tool made. Prints the task's id; with --follow exit code 0 only if the tool is there.

    `toolagent create "Count the words of a text" --name word_counter --example one.json --example two.json --follow`

    `toolagent create --repo https://github.com/user/project --name project_api --follow`
    """
    fields: dict[str, JsonValue] = {"repo_url": repo, "tool_name": name, "runtime": runtime, "ref": ref, "path": path}
    fields |= {"server_url": server_url, "probe": probe, "env": {**named_values(env, "--env")} or None}
    fields |= {"hosts": [*(host or ())] or None, "operations": [*(operation or ())] or None}
    task_spec = _spec(description, spec, fields, _examples(example))
    require_text({"description": description, **(task_spec if isinstance(task_spec, dict) else {"--spec": task_spec})})
    with _asking_under(key) as sent_key:
        submitted = asked.service.create_tool(description, task_spec, sent_key)
    _begun(asked, submitted, follow=follow)


@asking
def repair(
    asked: Asked,
    tool: Tool,
    error: Annotated[str, typer.Option(metavar="TEXT", help="What goes wrong, as far as you know.")] = "",
    description: Annotated[str, typer.Option(metavar="TEXT", help="Further information.")] = "",
    example: Examples = None,
    follow: Follow = False,
    key: Key = None,
) -> None:
    """Have a tool repaired. The current version stays active until a new one has passed.

    `toolagent repair word_counter --error "HTTP 500 for an empty text" --follow`
    """
    wishes: dict[str, JsonValue] = {"error": error, "description": description, "examples": _examples(example)}
    given: dict[str, JsonValue] = {name: value for name, value in wishes.items() if value}
    require_text(given)
    with _asking_under(key) as sent_key:
        submitted = asked.service.repair_tool(tool_id_of(tool), given, sent_key)
    _begun(asked, submitted, follow=follow)


@asking
def rollback(
    asked: Asked,
    tool: Tool,
    from_version: Annotated[str | None, typer.Option("--from", metavar="VERSION", help="Only if this is the active version.")] = None,
) -> None:
    """Return to the version of a tool that was active before. The version it leaves cannot be called until it is activated.

    `toolagent rollback word_counter --from 1.1.0`
    """
    asked.show(asked.service.roll_back(tool_id_of(tool), from_version), show_versions)


@asking
def tasks(
    asked: Asked,
    status: Annotated[str | None, typer.Option(help="Only tasks that are pending, running, completed, failed or cancelled.")] = None,
    kind: Annotated[str | None, typer.Option("--type", help="Only github_deploy, build_tool or repair_tool.")] = None,
    tool: Annotated[str | None, typer.Option(metavar="ID", help="Only tasks about this tool.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=200, help="At most this many, the newest first.")] = 50,
    before: Annotated[str | None, typer.Option(metavar="ID", help="Only tasks older than this one.")] = None,
) -> None:
    """List the tasks that make or repair tools, the newest first.

    `toolagent tasks --status failed`
    """
    asked.show(asked.service.making_tasks(status, kind, tool, limit, before), _show_listing)


def show_making(asked: Asked, task_id: str, *, follow: bool, log: bool = False, cancel: bool = False, say: str | None = None) -> None:
    """The command `task` for a task that makes or repairs a tool. Exit code 1 when it has ended and is not completed."""
    service = asked.service
    if say is not None:
        if not say.strip():
            raise ParameterError("--say has to say something.")
        require_text({"--say": say})
        show_note(f"noted as line {service.say(task_id, say).position} of its log")
    task = service.cancel_making(task_id) if cancel else None
    if follow:
        task = follow_making(service, task_id)
    task = task or service.making_task(task_id)
    asked.show(task, lambda task: _show(task, log=log))
    fail_if(task.has_ended and task.status not in {TaskState.COMPLETED, *([TaskState.CANCELLED] if cancel else [])})


@contextmanager
def _asking_under(key: str | None) -> Generator[str]:
    """The given or a new idempotency key. If the service does not answer, stderr says how to repeat the request. Raises ParameterError."""
    if key is not None and not (key.isascii() and key.isprintable()):
        raise ParameterError("--key may have visible ASCII characters only.")
    key = key or uuid.uuid4().hex
    try:
        yield key
    except (Unreachable, Refused) as error:
        if is_unanswered(error):
            show_note(f"The service may have begun the task. Repeat the command with --key {key} to get the same task.")
        raise


def _begun(asked: Asked, begun: TaskSubmitted, *, follow: bool) -> None:
    if follow:
        show_note(f"{begun.task_id} {begun.status.value}")
        show_making(asked, begun.task_id, follow=True)
        return
    asked.show(begun, lambda begun: show_plain(begun.task_id))
    show_note(f"Follow it: {how_to_follow(begun.task_id)}")


def _show_listing(found: TaskListing) -> None:
    if found.tasks:
        show_lines(_COLUMNS, map(_line, found.tasks))
    else:
        show_note("No task fits.")
    if found.next:
        show_note(f"There are older ones: --before {found.next}")


def _show(task: MakingTask, *, log: bool) -> None:
    show_rows((*_COLUMNS[:-1], "progress"), ((*_line(task)[:-1], task.progress if task.ended_at is None else ""),))
    _show_account(task)
    for line in task.log if log else ():
        show_plain(line)
    if task.status is TaskState.FAILED:
        show_failure(task.result or task.reason)
    elif task.result:
        show_note(task.result)


def _show_account(task: MakingTask) -> None:
    """The stages, the attempted ways from the repository to a tool, and the evidence of the gate."""
    if task.stages:
        show_rows(("stage", "state", "seconds", "cost"), (_stage_row(stage, is_priced=not task.unpriced_turns) for stage in task.stages))
    if tried := [one for one in task.tried if one.outcome != "not_found"]:
        show_rows(("way", "outcome", "why"), ((one.found or one.way, one.outcome, one.reason.partition("\n")[0]) for one in tried))
    if task.evidence is not None:
        show_rows(CHECK_COLUMNS, map(check_row, task.evidence.checks))
        for line in origins(task.evidence):
            show_plain(line)


def _line(task: ListedTask) -> tuple[str, ...]:
    said = (task.reason or task.progress).partition("\n")[0]
    stage = task.stage.value if task.stage else ""
    return (task.task_id, task.status.value, task.tool_id, stage, elapsed(task), spent(task), said)


def _stage_row(stage: StageView, *, is_priced: bool) -> tuple[str, ...]:
    seconds = f"{(stage.ended_at - stage.started_at).total_seconds():.1f}" if stage.ended_at else "—"
    cost = f"${stage.cost_usd:.4f}" if is_priced or stage.cost_usd else "—"
    return (stage.stage.value, stage.state, seconds, cost)


def _spec(description: str, file: str | None, fields: dict[str, JsonValue], examples: list[JsonValue]) -> dict[str, JsonValue] | str | None:
    """The `task_spec` of the request. Raises ParameterError."""
    given: dict[str, JsonValue] = {name: value for name, value in fields.items() if value is not None}
    if examples:
        given["examples"] = examples
    written = _read(file) if file else None
    if isinstance(written, dict):
        return {**written, **given}
    if not given:
        if not (written or description).strip():
            raise ParameterError("Say what the tool is to do, or name a repository with --repo or a specification with --spec.")
        return written
    repo = str(fields["repo_url"] or "")
    words = "\n\n".join(filter(None, (description, written)))
    named = tool_name_for(repo.rstrip("/").removesuffix(".git").rpartition("/")[2], words) if repo else tool_name_for(words)
    return {"type": "github_deploy" if repo else "build_tool", "tool_name": named, "description": words, **given}


def _read(file: str) -> dict[str, JsonValue] | str:
    """The JSON object in the file, or its text. Raises ParameterError for text that begins like an object but is not JSON."""
    text = read_document(file)
    if not text.lstrip("\ufeff \t\r\n").startswith("{"):
        return text
    value = parse_json(text, file)
    return value if isinstance(value, dict) else text


def _examples(files: list[str] | None) -> list[JsonValue]:
    found: list[JsonValue] = []
    for file in files or ():
        value = parse_json(read_text(file), file)
        found.extend(value if isinstance(value, list) else [value])
    return found
