"""Describes the parser of a program as JSON, without running the program's work: `python reader.py NAME TARGET OUT`.

Runs in the sandbox, on the project's own Python (3.8 or newer), with the standard library. Starts the program with `--help`; when the
program asks its parser to parse, writes a description of the parser instead. Programs with an unknown parser print their help.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import importlib.util
import inspect
import json
import math
import optparse
import os
import runpy
import sys
import traceback
from typing import Any, Callable, Iterator, NoReturn

_MOST_COMMANDS = 500
_DEEPEST = 6
_LONGEST = 4000


class Captured(BaseException):
    """A parser was described. No `except Exception` of the program catches it."""


class Found:
    """The description of the first parser that parses."""

    described: dict[str, Any] | None = None

    @classmethod
    def take(cls, describe: Callable[[], dict[str, Any]]) -> "NoReturn":
        if cls.described is None:
            cls.described = describe()
        raise Captured


# argparse


def _argparse(parser: argparse.ArgumentParser, depth: int = 0) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = []
    commands: list[dict[str, Any]] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            commands += _subparsers(action, depth)
        elif not isinstance(action, (argparse._HelpAction, argparse._VersionAction)) and action.help != argparse.SUPPRESS:
            parameters.append(_argument(action))
    return {"help": parser.description or parser.epilog or "", "parameters": parameters, "commands": commands, "by": "argparse"}


def _subparsers(action: Any, depth: int) -> Iterator[dict[str, Any]]:
    helps = {choice.dest: choice.help for choice in action._choices_actions}
    seen: list[int] = []
    for name, parser in action.choices.items() if depth < _DEEPEST else ():
        if id(parser) in seen:
            continue  # another name of the same command
        seen.append(id(parser))
        described = _argparse(parser, depth + 1)
        yield dict(described, name=name, help=described["help"] or helps.get(name) or "")


def _argument(action: Any) -> dict[str, Any]:
    options = list(action.option_strings)
    found: dict[str, Any] = {
        "name": _called(options, action.dest),
        "options": options,
        "help": _help(action),
        "default": _plain(action.default),
    }
    found["metavar"] = action.metavar if isinstance(action.metavar, str) else ""
    kind = type(action).__name__
    if kind in ("_StoreTrueAction", "_StoreFalseAction", "_StoreConstAction", "_AppendConstAction"):
        return dict(found, kind="flag", type="boolean", default=False)
    if kind == "_CountAction":
        return dict(found, kind="count", type="integer", default=action.default or 0)
    if kind == "BooleanOptionalAction":
        on = [one for one in options if not one.startswith("--no-")]
        return dict(found, kind="flag", type="boolean", options=on, off=[one for one in options if one.startswith("--no-")])
    type_name = "file" if isinstance(action.type, argparse.FileType) else _type(action.type)
    if isinstance(action.type, argparse.FileType) and "r" not in getattr(action.type, "_mode", "r"):
        type_name = "string"
    required = bool(action.required) if options else action.nargs not in ("?", "*", argparse.REMAINDER)
    found.update(kind="option" if options else "positional", type=type_name, required=required, choices=_choices(action.choices))
    if kind in ("_AppendAction", "_ExtendAction"):
        found["repeats"] = kind == "_AppendAction"
        found["many"] = kind == "_ExtendAction"
    if action.nargs in ("*", "+", argparse.REMAINDER) or isinstance(action.nargs, int):
        found["many"] = True
        found["count"] = action.nargs if isinstance(action.nargs, int) else None
        found["least"] = 1 if action.nargs == "+" else 0
    return found


def _help(action: Any) -> str:
    text = action.help or ""
    try:
        return text % {**vars(action), "prog": ""} if "%" in text else text
    except (ValueError, TypeError, KeyError):
        return text


# optparse


def _optparse(parser: optparse.OptionParser) -> dict[str, Any]:
    parameters = [
        {"name": "arguments", "options": [], "help": parser.usage or "", "kind": "positional", "type": "string", "many": True, "least": 0}
    ]
    options = [*parser.option_list, *(one for group in parser.option_groups for one in group.option_list)]
    for option in options:
        if option.action in ("help", "version") or option.help == optparse.SUPPRESS_HELP:
            continue
        names = [*option._long_opts, *option._short_opts]
        found = {"name": _called(names, option.dest or ""), "options": names, "help": option.help or ""}
        if option.action in ("store", "append"):
            types = {"int": "integer", "long": "integer", "float": "number"}
            found.update(kind="option", type=types.get(option.type or "", "string"), choices=_choices(option.choices))
            found.update(default=_plain(parser.defaults.get(option.dest)), repeats=option.action == "append")
            if option.nargs and option.nargs > 1:
                found.update(many=True, count=option.nargs)
        else:
            found.update(kind="count" if option.action == "count" else "flag", type="integer" if option.action == "count" else "boolean")
        parameters.append(found)
    return {"help": parser.description or "", "parameters": parameters, "commands": [], "by": "optparse"}


# click and typer


def _click(command: Any, name: str = "", parent: Any = None, depth: int = 0) -> dict[str, Any]:
    context = command.context_class(command, info_name=name, parent=parent) if hasattr(command, "context_class") else None
    parameters = [_parameter(one) for one in command.params if _is_asked(one)]
    commands: list[dict[str, Any]] = []
    for inner in command.list_commands(context) if hasattr(command, "list_commands") and depth < _DEEPEST else ():
        try:
            found = command.get_command(context, inner)
            if found is not None and not getattr(found, "hidden", False):
                commands.append(dict(_click(found, inner, context, depth + 1), name=inner))
        except Exception as error:  # a plug-in that cannot be loaded
            commands.append({"name": inner, "fault": f"{type(error).__name__}: {error}"})
    alone = bool(getattr(command, "invoke_without_command", False))
    help_text = command.help or getattr(command, "short_help", None) or ""
    # In click, a form feed ends the help, and a backspace before a paragraph keeps its lines.
    help_text = inspect.cleandoc(help_text.partition("\f")[0]).replace("\b\n", "")
    return {"help": help_text, "parameters": parameters, "commands": commands, "alone": alone, "by": "click"}


def _is_asked(parameter: Any) -> bool:
    names = set(getattr(parameter, "opts", ()))
    eager = bool(getattr(parameter, "is_eager", False)) and not getattr(parameter, "expose_value", True)
    return (
        not getattr(parameter, "hidden", False)
        and not eager
        and not names & {"--help", "--version", "--install-completion", "--show-completion"}
    )


def _parameter(one: Any) -> dict[str, Any]:
    is_argument = one.param_type_name == "argument"
    found: dict[str, Any] = {
        "name": _called([] if is_argument else list(one.opts), one.name or "value"),
        "options": [] if is_argument else list(one.opts),
        "help": getattr(one, "help", None) or "",
        "kind": "positional" if is_argument else "option",
        "required": bool(one.required) or bool(getattr(one, "prompt", None)),
        "default": None if is_argument and one.required else _plain(one.default),
        "metavar": one.metavar if isinstance(one.metavar, str) else "",
    }
    found.update(_typed_by_typer(one) if hasattr(one, "type_descriptor") else _typed_by_click(one.type))
    if getattr(one, "count", False):
        return dict(found, kind="count", type="integer", default=0)
    if getattr(one, "is_flag", False):
        return dict(found, kind="flag", type="boolean", default=bool(one.default is True), off=list(one.secondary_opts))
    if one.nargs != 1:
        found.update(many=True, count=one.nargs if one.nargs > 1 else None, least=1 if is_argument and one.required else 0)
    if getattr(one, "multiple", False):
        found["repeats"] = True
    return found


def _typed_by_click(kind: Any) -> dict[str, Any]:
    bounds = {"minimum": _plain(getattr(kind, "min", None)), "maximum": _plain(getattr(kind, "max", None))}
    return dict(bounds, type=_click_type(kind, getattr(kind, "name", "text")), choices=_choices(getattr(kind, "choices", None)))


def _typed_by_typer(one: Any) -> dict[str, Any]:
    """The type of a parameter in typer 0.27 and newer, which has its own types."""
    told = one.type_descriptor
    if told.is_choice:
        return {"type": "string", "choices": _choices(told.choices)}
    if told.is_path or told.is_file:
        writes = "Write" in str(getattr(told, "file_annotation", ""))
        exists = bool(getattr(told.parameter_info, "exists", False))
        return {"type": "file" if (told.is_file and not writes) or (exists and told.path_type != "directory") else "string"}
    return {"type": _type(told.annotation), "minimum": _plain(one.min), "maximum": _plain(one.max)}


def _click_type(kind: Any, name: str) -> str:
    if name in ("file", "filename", "path", "directory"):
        mode = getattr(kind, "mode", None)
        reads = (mode is not None and "r" in mode) or bool(getattr(kind, "exists", False))
        is_file = getattr(kind, "file_okay", True)
        return "file" if reads and is_file else "string"
    types = {"integer": "integer", "integer range": "integer", "float": "number", "float range": "number", "boolean": "boolean"}
    return types.get(name, "string")


# docopt


def _docopt(text: str, docopt: Any) -> dict[str, Any]:
    parameters: list[dict[str, Any]] = [
        {"name": "arguments", "options": [], "help": "As in the usage.", "kind": "positional", "type": "string", "many": True, "least": 0}
    ]
    for option in _docopt_options(text, docopt):
        names = [one for one in (getattr(option, "long", None) or getattr(option, "longer", None), option.short) if one]
        if names and not {"--help", "-h", "--version"} & set(names):
            found = {"name": names[0].lstrip("-"), "options": names, "help": "", "default": _plain(option.value)}
            takes = bool(option.argcount)
            found.update(kind="option" if takes else "flag", type="string" if takes else "boolean")
            parameters.append(found)
    return {"help": text, "parameters": parameters, "commands": [], "by": "docopt"}


def _docopt_options(text: str, docopt: Any) -> list[Any]:
    """Options of the description and of the usage pattern: docopt adds the latter to the list that it gets."""
    if hasattr(docopt, "parse_docstring_sections"):  # docopt-ng of 0.9 and newer
        sections = docopt.parse_docstring_sections(text)
        options = [*docopt.parse_options(sections.before_usage), *docopt.parse_options(sections.after_usage)]
        usage = sections.usage_body
    else:
        options, usage = docopt.parse_defaults(text), docopt.printable_usage(text)
    docopt.parse_pattern(docopt.formal_usage(usage), options)
    return options


# what is common


def _called(options: list[str], name: str) -> str:
    """The parameter's name: its long option, because several options may write to one place."""
    return next((one for one in options if one.startswith("--")), name or (options[0] if options else "")).lstrip("-").replace("-", "_")


def _type(kind: Any) -> str:
    return {int: "integer", float: "number", bool: "boolean"}.get(kind, "string")


def _choices(choices: Any) -> list[Any] | None:
    if choices is None or (isinstance(choices, dict) and not choices):
        return None
    try:
        found = [getattr(one, "value", one) for one in list(choices)[:_MOST_COMMANDS]]
    except TypeError:
        return None
    return [one if isinstance(one, (str, int, bool)) or _is_finite(one) else str(one) for one in found]


def _plain(value: Any) -> Any:
    value = getattr(value, "value", value) if not callable(value) else None
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value] if len(value) < 100 else None
    if isinstance(value, str):
        return value if len(value) < _LONGEST and value != argparse.SUPPRESS else None
    return value if isinstance(value, (int, bool)) or _is_finite(value) else None


def _is_finite(value: Any) -> bool:
    """Whether it is a float that JSON can hold."""
    return isinstance(value, float) and math.isfinite(value)


def _patch() -> None:
    """Has each parser describe itself when it is asked to parse."""
    real_known = argparse.ArgumentParser.parse_known_args

    def known(self: Any, args: Any = None, namespace: Any = None) -> Any:
        if (
            not self.add_help
            and Found.described is None
            and args is None
            and not any(action.option_strings == [] for action in self._actions)
        ):
            return real_known(self, [], namespace)  # a parser that looks for a few options before the real one
        Found.take(lambda: _argparse(self))

    argparse.ArgumentParser.parse_known_args = known  # type: ignore[assignment] - replaced on purpose
    for name in ("print_help", "print_usage", "format_help", "error"):
        setattr(argparse.ArgumentParser, name, lambda self, *_, **__: Found.take(lambda: _argparse(self)))
    optparse.OptionParser.parse_args = lambda self, *_, **__: Found.take(lambda: _optparse(self))  # type: ignore[assignment] - as above
    for module, patch in (("click", _patch_click), ("typer", _patch_typer), ("docopt", _patch_docopt)):
        if importlib.util.find_spec(module) is not None:
            try:
                patch(importlib.import_module(module))
            except Exception:  # an unknown version: its help is read
                continue


def _main(self: Any, *_: Any, **__: Any) -> Any:
    Found.take(lambda: _click(self))


def _patch_click(click: Any) -> None:
    for name in ("BaseCommand", "Command", "Group", "MultiCommand"):
        kind = getattr(click.core, name, None)
        if kind is not None and "main" in vars(kind):
            kind.main = _main


def _patch_typer(typer: Any) -> None:
    for name in ("TyperCommand", "TyperGroup"):
        getattr(typer.core, name).main = _main


def _patch_docopt(docopt: Any) -> None:
    def parse(doc: str = "", *_: Any, **named: Any) -> Any:
        text = doc or named.get("docstring") or sys._getframe(1).f_globals.get("__doc__") or ""
        Found.take(lambda: _docopt(text, docopt))

    docopt.docopt = parse


def main() -> None:
    _, name, target, out = sys.argv
    _patch()
    sys.argv = [name, "--help"]
    fault = ""
    code: Any = 0
    try:
        if os.sep in target:
            sys.path.insert(0, os.path.dirname(target))
            runpy.run_path(target, run_name="__main__")
            sys.exit()
        module, _, attribute = target.partition(":")
        result: Any = functools.reduce(getattr, attribute.split("."), importlib.import_module(module))()
        if hasattr(result, "send") and hasattr(result, "close"):
            result.close()
            fault = "It is a coroutine that is never awaited."
    except Captured:
        pass
    except SystemExit as ended:
        code = ended.code
    except BaseException as error:
        fault = "".join(traceback.format_exception_only(type(error), error)).strip()
        traceback.print_exc()
    sys.stdout.flush()
    with open(out, "w", encoding="utf-8") as file:
        json.dump({"described": Found.described, "fault": fault, "code": code if isinstance(code, int) else 1 if code else 0}, file)
    os._exit(0)


if __name__ == "__main__":
    main()
