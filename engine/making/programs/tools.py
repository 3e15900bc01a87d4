"""Makes a tool for each command of a program, with the command's parameters."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from pydantic import JsonValue

from engine.making.failures import LeftOut
from engine.making.openapi.tools import LONGEST_DESCRIPTION, LONGEST_NAME, Described
from engine.making.openapi.unused_names import unused
from engine.making.programs.commands import Command, Parameter
from toolagent.contracts.catalog import ToolEntry
from toolagent.contracts.contract import JsonSchema
from toolagent.contracts.making import Candidate
from toolagent.contracts.manifest import FileAccess, NetworkAccess, PermissionClass, SecurityContext, SideEffectScope, ToolManifest
from toolagent.contracts.sources import ScriptLanguage, ScriptSource
from toolagent.core.schemas import FILE_PATH
from toolagent.core.texts import well_formed
from toolagent.validation.schemas import schema_faults

_SCRIPT = "run_"
"""Prefix of the scripts that we write."""
_LONGEST_HELP = 1_000
_LONG_S = 120.0
_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_]+")
_NOT_IN_AN_ID = re.compile(r"[^a-z0-9]+")
_RESERVED = ("stdin", "files")
_HOME = ".home/**"
"""The program's home, a folder of the tool's own."""

OUTPUT: JsonSchema = {
    "type": "object",
    "properties": {
        "exit_code": {"type": "integer", "description": "0: it did what it was told; below 0: a signal ended it."},
        "stdout": {"type": "string"},
        "stderr": {"type": "string"},
        "output": {"description": "What stdout says, where that is JSON."},
        "truncated": {"type": "array", "items": {"type": "string"}, "description": "Streams of which not everything is here."},
        "files": {
            "type": "array",
            "description": "Files that it wrote.",
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "file": {"type": "string", "format": FILE_PATH}},
                "required": ["name", "file"],
            },
        },
    },
    "required": ["exit_code", "stdout", "stderr"],
}

_STDIN: JsonValue = {"type": "string", "description": "What the program reads from its standard input."}
_FILES: JsonValue = {
    "type": "array",
    "items": {"type": "string", "format": FILE_PATH},
    "description": "Files that are put into the program's working directory; parameters name them there by their own names.",
}


def program_candidate(commands: Sequence[Command], about: Described, language: ScriptLanguage, hosts: Sequence[str]) -> Candidate:
    """One tool for a single command, else a group of tools. `hosts` are those that they may reach."""
    names = _names(commands)
    groups = about.groups(len(commands))
    ending = ".py" if language is ScriptLanguage.PYTHON else ".mjs"
    entries = [
        ToolEntry(
            manifest=_manifest(command, tool_id, about, groups, hosts),
            sources=(ScriptSource(script_path=f"{_SCRIPT}{name}{ending}", language=language),),
        )
        for command, tool_id, name in zip(commands, about.ids(names), names, strict=True)
    ]
    return about.candidate(entries, f"The commands of {', '.join(dict.fromkeys(command.program for command in commands))}.")


def fitting(commands: Sequence[Command]) -> tuple[tuple[Command, ...], tuple[LeftOut, ...]]:
    """The commands whose schema the registry accepts. Blocks."""
    found: list[Command] = []
    left: list[LeftOut] = []
    for command in commands:
        if faults := schema_faults(_input_schema(command)):
            left.append(LeftOut(command.named, f"What its parser says is no schema: {faults[0].path}: {faults[0].message}"))
        else:
            found.append(command)
    return tuple(found), tuple(left)


def script_names(commands: Sequence[Command]) -> tuple[str, ...]:
    """Unique file names that hide no module of our launcher (a command may be named `json`)."""
    return tuple(f"{_SCRIPT}{name}" for name in _names(commands))


def _names(commands: Sequence[Command]) -> tuple[str, ...]:
    """Unique names that can be part of an id, without the program's name if there is only one program."""
    is_one = len({command.program for command in commands}) == 1
    names: list[str] = []
    for command in commands:
        words = command.words if is_one and command.words else (command.program, *command.words)
        names.append(unused(_NOT_IN_AN_ID.sub("_", "_".join(words).lower()).strip("_")[:76] or "run", names))
    return tuple(names)


def commands_file(commands: Sequence[Command], targets: Mapping[str, str]) -> str:
    """The file that `program.py` reads: how each command gets its parameters. `targets` are `module:function` by program."""
    told = {name: _told(command, targets[command.program]) for command, name in zip(commands, script_names(commands), strict=True)}
    return json.dumps(told, ensure_ascii=False, indent=1)


def _told(command: Command, target: str) -> JsonValue:
    levels: list[JsonValue] = []
    for level, named in zip(command.levels, _named(command), strict=True):
        ends = any(one.many and one.kind == "option" and not one.repeats for one in level.parameters)
        levels.append({"words": [*level.words], "parameters": [_told_of(*one) for one in named.items()], "ends": ends})
    return {"program": command.program, "target": target, "levels": levels}


def _told_of(name: str, parameter: Parameter) -> JsonValue:
    found: dict[str, JsonValue] = {"name": name, "kind": parameter.kind}
    if parameter.options:
        found["on"] = _long(parameter.options)
    if parameter.off:
        found["off"] = _long(parameter.off)
    elif parameter.kind == "flag" and parameter.default is True:
        found["off"] = None
    if parameter.default is not None:
        found["default"] = parameter.default
    if parameter.repeats:
        found["repeats"] = True
    return found


def _long(options: Sequence[str]) -> str:
    return next((one for one in options if one.startswith("--")), options[0])


def _named(command: Command) -> Iterator[dict[str, Parameter]]:
    """The parameters of each level, by names that are unique in the command."""
    taken = {*_RESERVED}
    for level in command.levels:
        named: dict[str, Parameter] = {}
        for parameter in level.parameters:
            name = _NOT_IN_A_NAME.sub("_", parameter.name).strip("_")[:80] or "value"
            while name in taken:
                name += "_"
            taken.add(name)
            named[name] = parameter
        yield named


def _manifest(command: Command, tool_id: str, about: Described, groups: tuple[str, ...], hosts: Sequence[str]) -> ToolManifest:
    said = command.help or about.description
    if not groups and about.description and about.description not in said:
        said = f"{about.description}\n\n{said}"
    return ToolManifest(
        tool_id=tool_id,
        name=command.named[:LONGEST_NAME],
        description=(well_formed(said).strip() or f"Runs {command.named}.")[:LONGEST_DESCRIPTION],
        group_ids=groups,
        input_schema=_input_schema(command),
        output_schema=OUTPUT,
        permission_class=PermissionClass.EXTERNAL if hosts else PermissionClass.WRITE,
        side_effect_scope=SideEffectScope.NETWORK if hosts else SideEffectScope.LOCAL_STATE,
        timeout_s=_LONG_S,
        security_context=SecurityContext(
            file_access=FileAccess(allow_write=(_HOME,)), network_access=NetworkAccess(allow_hosts=tuple(hosts))
        ),
    )


def _input_schema(command: Command) -> JsonSchema:
    named = {name: parameter for level in _named(command) for name, parameter in level.items()}
    required: list[JsonValue] = [name for name, parameter in named.items() if parameter.required]
    own = {name: _property(parameter) for name, parameter in named.items()}
    properties: dict[str, JsonValue] = {**own, "stdin": _STDIN, "files": _FILES}
    schema: JsonSchema = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": required} if required else schema


def _property(parameter: Parameter) -> JsonValue:
    counted: dict[str, JsonValue] = {"type": "integer", "minimum": 0, "maximum": 9}
    one = counted if parameter.kind == "count" else _listed(parameter, _single(parameter))
    if said := " ".join(parameter.help.split())[:_LONGEST_HELP]:
        one["description"] = said
    if _is_default(parameter, one):
        one["default"] = parameter.default
    return one


def _single(parameter: Parameter) -> dict[str, JsonValue]:
    if parameter.choices:
        return {"enum": [*parameter.choices]}
    if parameter.type == "file":
        return {"type": "string", "format": FILE_PATH}
    one: dict[str, JsonValue] = {"type": parameter.type}
    if parameter.type in ("integer", "number"):
        bounds = {"minimum": parameter.minimum, "maximum": parameter.maximum}
        one |= {name: bound for name, bound in bounds.items() if bound is not None}
    return one


def _listed(parameter: Parameter, one: dict[str, JsonValue]) -> dict[str, JsonValue]:
    if not (parameter.many or parameter.repeats):
        return one
    found: dict[str, JsonValue] = {"type": "array", "items": one}
    if parameter.count is not None and not parameter.repeats:
        return {**found, "minItems": parameter.count, "maxItems": parameter.count}
    return {**found, "minItems": parameter.least} if parameter.least else found


def _is_default(parameter: Parameter, schema: Mapping[str, JsonValue]) -> bool:
    """Whether the schema allows the parameter's default."""
    match schema.get("type"), parameter.default:
        case _, value if "enum" in schema:
            return value in (parameter.choices or ())
        case ("string", str()):
            return "format" not in schema
        case ("boolean", bool()):
            return True
        case (_, bool()):
            return False
        case ("integer", int() as value) | ("number", int() | float() as value):
            return _within(value, parameter)
        case _:
            return False


def _within(value: float, parameter: Parameter) -> bool:
    least = value if parameter.minimum is None else parameter.minimum
    return least <= value <= (value if parameter.maximum is None else parameter.maximum)
