"""Runs one command of a program: reads parameters as JSON from stdin, writes the result as JSON to stdout.

Written by Tool Agent.
Runs in the sandbox, on the project's own Python (3.8 or newer), with the standard library only. The program runs in a process of its
own, in the folder whose files the call keeps.
"""

import functools
import importlib
import json
import os
import runpy
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))
_MOST = 4 * 1024 * 1024
_MOST_FILES = 100
_CHUNK = 1 << 20


def run(name):
    """The command of that name in `commands.json`."""
    with open(os.path.join(_HERE, "commands.json"), encoding="utf-8") as file:
        command = json.load(file)[name]
    params = json.load(sys.stdin)
    folder = os.environ.get("TOOL_AGENT_OUTPUT_DIR") or "/tmp"
    given = _put(params.pop("files", None) or [], folder)
    text = params.pop("stdin", None)
    argv = [command["program"], *_argv(command, params)]
    streams = [os.memfd_create("stream") for _ in range(3)]
    if text is not None:
        os.write(streams[0], text.encode())
        os.lseek(streams[0], 0, os.SEEK_SET)
    child = os.fork()
    if child == 0:
        _become(command["target"], argv, folder, streams)
    code = _code(os.waitpid(child, 0)[1])
    stdout, out_cut = _read(streams[1])
    stderr, err_cut = _read(streams[2])
    result = {"exit_code": code, "stdout": stdout, "stderr": stderr}
    if out_cut or err_cut:
        result["truncated"] = [name for name, cut in (("stdout", out_cut), ("stderr", err_cut)) if cut]
    output = _json(stdout)
    if output is not None:
        result["output"] = output
    files = _written(folder, given)
    if files:
        result["files"] = files
    json.dump(result, sys.stdout)
    sys.stdout.flush()
    # Skip Python's clean-up, which takes time.
    os._exit(0)


def _put(files, folder):
    """Copies the call's files into the program's working folder; returns their names."""
    names = set(map(os.path.basename, files))
    for path in files:
        with open(path, "rb") as source, open(os.path.join(folder, os.path.basename(path)), "wb") as target:
            while piece := source.read(_CHUNK):
                target.write(piece)
    return names


def _argv(command, params):
    words = []
    for level in command["levels"]:
        words += level["words"]
        options, positionals = [], []
        for parameter in level["parameters"]:
            if parameter["name"] in params and params[parameter["name"]] != parameter.get("default"):
                target = positionals if parameter["kind"] == "positional" else options
                target += _of(parameter, params[parameter["name"]])
        words += options
        if positionals:
            # After `--`, words that begin with a dash are values.
            words += ["--"] if any(word.startswith("-") and word != "-" for word in positionals) or level.get("ends") else []
            words += positionals
    return words


def _of(parameter, value):
    kind = parameter["kind"]
    if kind == "flag":
        flag = parameter.get("on") if value else parameter.get("off")
        return [flag] if flag else []
    if kind == "count":
        return [parameter["on"]] * max(int(value), 0)
    values = [_word(one) for one in value] if isinstance(value, list) else [_word(value)]
    if kind in ("positional", "words"):
        return values
    option = parameter["on"]
    if parameter.get("repeats"):
        return [word for one in values for word in _option(option, one)]
    if isinstance(value, list):
        return [option, *values] if values else []
    return _option(option, values[0])


def _option(option, value):
    return [f"{option}={value}"] if option.startswith("--") else [option, value]


def _word(value):
    if value is True or value is False:
        return "true" if value else "false"
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


def _become(target, argv, folder, streams):
    """Becomes the program, and ends with it."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.chdir(folder)
    home = os.path.join(_HERE, ".home")
    if os.path.isdir(home):
        os.environ["HOME"] = home
    sys.argv = argv
    sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)
    # Instead of the folder of this file, whose modules are not the program's.
    site = os.path.join(_HERE, "site")
    sys.path[0] = site
    # The program may have a module with the name of this file.
    sys.modules.pop("program", None)
    if ":" not in target:
        path = os.path.join(site, target)
        sys.path.insert(0, os.path.dirname(path))
        runpy.run_path(path, run_name="__main__")
        sys.exit()
    module, _, attribute = target.partition(":")
    sys.exit(functools.reduce(getattr, attribute.split("."), importlib.import_module(module))())


def _code(status):
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def _read(stream):
    os.lseek(stream, 0, os.SEEK_SET)
    content = b""
    while len(content) <= _MOST:
        piece = os.read(stream, _CHUNK)
        if not piece:
            break
        content += piece
    return content[:_MOST].decode("utf-8", "replace"), len(content) > _MOST


def _json(text):
    """None if the text is no JSON object or list: a word or a number is text."""
    if text[:200].lstrip()[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except ValueError:
        return None


def _written(folder, given):
    if "TOOL_AGENT_OUTPUT_DIR" not in os.environ:
        return []
    found = []
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(place, name)
            relative = os.path.relpath(path, folder)
            if os.path.isfile(path) and not os.path.islink(path) and relative not in given and len(found) < _MOST_FILES:
                found.append({"name": relative, "file": relative})
    return found
