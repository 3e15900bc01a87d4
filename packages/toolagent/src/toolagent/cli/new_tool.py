"""`toolagent new-tool`: writes a new script tool with a test that passes."""

import json
import re
from pathlib import Path
from typing import Annotated

import typer
from pydantic import JsonValue

from toolagent.cli.failures import reported
from toolagent.cli.options import tool_id_of
from toolagent.cli.parameters import ParameterError
from toolagent.cli.render import show_note, show_plain
from toolagent.cli.templates import TEMPLATES, Template
from toolagent.contracts.identifiers import TOOL_ID_LENGTH
from toolagent.contracts.sources import ScriptLanguage
from toolagent.core.catalog.namespaces import namespace_of
from toolagent.core.catalog.tool_files import SUFFIX

__all__ = ["new_tool"]

_NAMESPACE = "custom"
_SHOWN = 60


def new_tool(
    name: Annotated[str, typer.Argument(metavar="NAME", show_default=False, help="`my-tool`, or `namespace:my-tool`; else in `custom:`.")],
    language: Annotated[ScriptLanguage, typer.Option(help="What the script is written in.")] = ScriptLanguage.PYTHON,
    folder: Annotated[Path, typer.Option("--dir", metavar="DIR", help="The tool gets a folder of its own in this one.")] = Path(
        "data/tools"
    ),
) -> None:
    """Write a script tool: its `*.tool.json`, a script that works, and a test of it. Existing files are not overwritten.

    `toolagent new-tool word-length`

    `toolagent new-tool acme:word-length --language nodejs --dir tools`
    """
    with reported():
        tool_id = _id_of(name)
        short = tool_id.partition(":")[2]
        template = TEMPLATES[language]
        target = folder / short
        if target.exists():
            raise ParameterError(f"{str(target)!r} is there already. Choose another name, or another folder with --dir.")
        files = {
            f"{short}{SUFFIX}": _document(tool_id, short, language, template),
            template.script_name: template.script,
            template.test_name: template.test.replace("@TOOL_FILE@", f"{short}{SUFFIX}"),
        }
        target.mkdir(parents=True)
        for file, text in files.items():
            (target / file).write_text(text, "utf-8")
            show_plain(str(target / file))
        show_note(f"Try it by itself:  (cd {target} && {template.test_command})")
        show_note(f"Check its file:    toolagent validate {target}")
        show_note(f"With the service:  toolagent test {tool_id}")


def _id_of(name: str) -> str:
    """Raises ParameterError for a name that cannot be the id of a tool."""
    try:
        return _in_namespace(name)
    except ParameterError as error:
        such = f" {near!r} would do." if (near := _near(name)) else ""
        form = f"small letters, digits, _ and -, beginning with a letter, {TOOL_ID_LENGTH} characters at most with its namespace"
        shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}..."
        raise ParameterError(f"{shown!r} is no name of a tool: {form}, such as 'my-tool'.{such}") from error


def _in_namespace(name: str) -> str:
    return tool_id_of(name if namespace_of(name) else f"{_NAMESPACE}:{name}")


def _near(name: str) -> str:
    """A name like this one that can be the id of a tool; empty if there is none."""
    near = "-".join(re.findall(r"[a-z0-9]+", name.lower())).lstrip("-0123456789")
    try:
        _in_namespace(near)
    except ParameterError:
        return ""
    return near


def _document(tool_id: str, short: str, language: ScriptLanguage, template: Template) -> str:
    title = " ".join(word.capitalize() for word in re.split(r"[-_]+", short) if word)
    document: dict[str, JsonValue] = {
        "toolId": tool_id,
        "displayName": title,
        "description": "Says how long a text is. (Say here what the tool does and what it is for, in words a model understands.)",
        "version": "0.1.0",
        "handler": {"type": "external-script", "scriptPath": template.script_name, "language": language.value},
        "parameters": {
            "type": "object",
            "properties": {"text": {"type": "string", "description": "The text."}},
            "required": ["text"],
            "additionalProperties": False,
        },
        "output": {
            "type": "object",
            "properties": {"length": {"type": "integer", "description": "Its characters."}},
            "required": ["length"],
        },
        "securityContext": {
            "fileAccess": {"allowRead": ["./*"], "allowWrite": []},
            "networkAccess": {"allowHosts": []},
        },
        "examples": [{"description": "A word.", "input": {"text": "hello"}, "expectedOutput": {"length": 5}}],
        "tags": [language.value],
        "sideEffectScope": "none",
        "timeoutSeconds": 30,
    }
    return json.dumps(document, ensure_ascii=False, indent=2) + "\n"
