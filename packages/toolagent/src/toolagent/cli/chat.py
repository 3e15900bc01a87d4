"""The command that talks with the service in a conversation."""

import json
import sys
import uuid
from collections.abc import Iterator
from typing import Annotated

import typer

from toolagent.cli.asking import Asked, asking
from toolagent.cli.failures import fail_if
from toolagent.cli.parameters import ParameterError
from toolagent.cli.render import as_json, cell, moment, show_failure, show_note, show_plain
from toolagent.contracts.chats import ChatReply, ChatRole, ChatView, Chunk

__all__ = ["chat"]

Key = Annotated[str | None, typer.Option(metavar="KEY", help="Idempotency key: the same key is the same message. Only with a MESSAGE.")]


@asking
def chat(
    asked: Asked,
    message: Annotated[str | None, typer.Argument(help="What to say; by default each line of stdin.", show_default=False)] = None,
    chat_id: Annotated[str, typer.Option("--chat", metavar="ID", help="Which conversation; any text without control characters.")] = "cli",
    history: Annotated[bool, typer.Option("--history", help="Show what was said, and say nothing.")] = False,
    key: Key = None,
) -> None:
    """Talk with the service: find tools, learn how they are called, have them made. Exit code 1 without a proper answer.

    The answer is shown as it is written; with --json it is one line of JSON when it is whole. Functions that the model uses go to stderr.

    `toolagent chat "Which tools compress pictures?"`

    `toolagent chat --chat work --history`
    """
    if history:
        if message is not None or key is not None:
            raise ParameterError("--history shows a conversation and says nothing: leave out the message and --key.")
        asked.show(asked.service.chat_history(chat_id, limit=200), _show)
        return
    if message is None and key is not None:
        raise ParameterError("--key names one message: give it.")
    replies = [_said(asked, chat_id, text, key) for text in ([message] if message is not None else _lines())]
    fail_if(any(reply.error for reply in replies))


def _said(asked: Asked, chat_id: str, message: str, key: str | None) -> ChatReply:
    key = key or uuid.uuid4().hex
    if asked.json_output:
        reply = asked.service.chat(chat_id, message, key)
        typer.echo(json.dumps(as_json(reply)))
        return reply
    reply = _written(asked, chat_id, message, key)
    if reply.error:
        show_failure(reply.error)
    if reply.task_ids:
        show_note(f"Begun: {', '.join(reply.task_ids)}. Follow it: toolagent task {reply.task_ids[0]} --follow")
    return reply


def _written(asked: Asked, chat_id: str, message: str, key: str) -> ChatReply:
    """Writes the answer while it comes. Text before an interruption, or before the use of a function, stays on the screen."""
    written = ""
    for part in asked.service.chat_streamed(chat_id, message, key):
        match part:
            case Chunk(type="text", data=str(text)):
                written += text
                typer.echo(cell(text).plain, nl=False)
            case Chunk(type="tool_use", data=dict(use)):
                written = _line_ended(written)
                show_note(f"{use.get('name')} …")
            case Chunk(type="restart"):
                written = _line_ended(written)
                show_note("The answer broke off, and is written again:")
            case Chunk():
                pass
            case ChatReply():
                _line_ended(written)
                if written.strip() != part.response:
                    show_plain(part.response)
                return part
    # The service stopped before the end. With the same key, this is the same message.
    reply = asked.service.chat(chat_id, message, key)
    show_plain(reply.response)
    return reply


def _line_ended(written: str) -> str:
    if written and not written.endswith("\n"):
        typer.echo("")
    return ""


def _lines() -> Iterator[str]:
    """The lines of stdin that are not blank."""
    if sys.stdin.isatty():
        show_note("Ctrl-D ends it.")
    for line in sys.stdin:
        if line.strip():
            yield line.strip()


def _show(view: ChatView) -> None:
    if view.before is not None:
        show_note(f"{view.before - 1} turns before these are not shown.")
    for turn in view.turns:
        who = "you" if turn.role is ChatRole.USER else "agent"
        show_plain(f"[{moment(turn.at)}] {who}:")
        show_plain(turn.text)
