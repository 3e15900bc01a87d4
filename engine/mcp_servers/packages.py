"""Finds the package of PyPI or npm in a command: `uvx mcp-server-time`, `npx -y @modelcontextprotocol/server-memory`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from packaging.requirements import InvalidRequirement, Requirement

from toolagent.contracts.mcp_servers import McpServerSpec
from toolagent.contracts.sources import ScriptLanguage
from toolagent.core.mcp_specs import SpecFault

# npm takes a name that begins with a dot for a folder.
_NPM_SPEC = re.compile(r"((?:@[a-z0-9~-][a-z0-9._~-]*/)?[a-z0-9~-][a-z0-9._~-]*)(?:@([0-9A-Za-z.^~<>=*|\s-]{1,60}))?", re.IGNORECASE)
_AT_VERSION = re.compile(r"([A-Za-z0-9._-]+(?:\[[^\]]*\])?)@([0-9A-Za-z.+!-]+)")
_PYTHON = re.compile(r"(?:cpython-?|python)?(3\.\d+)(?:\.\d+)?")


@dataclass(frozen=True, slots=True)
class PackageCommand:
    """`wanted` are names and requirements (npm: versions), the program's first. `python` is a minor version, or empty."""

    language: ScriptLanguage
    wanted: tuple[tuple[str, str], ...]
    program: str | None
    arguments: tuple[str, ...]
    python: str = ""

    @property
    def older(self) -> "PackageCommand":
        """The command with the first major version of the SDK, which most servers need without saying so."""
        return replace(self, wanted=(*self.wanted, ("mcp", "mcp<2")))


def package_command(spec: McpServerSpec) -> PackageCommand | None:
    """The package; None for a program of the machine. Raises SpecFault for a package that is not from the index."""
    match (spec.command, *spec.args):
        case ("uvx", *words) | ("uv", "tool", "run", *words) | ("uv", "x", *words) | ("pipx", "run", *words):
            return _of_python(words)
        case ("npx", *words) | ("npm", "exec", *words) | ("npm", "x", *words) | ("pnpm", "dlx", *words) | ("bunx", *words):
            return _of_npm(words)
        case ("docker" | "podman", *_):
            message = "A container is not started as an MCP server. Give the server's own command, or its `url`."
            raise SpecFault("command", message)
        case _:
            return None


def _of_python(words: Sequence[str]) -> PackageCommand:
    options, rest = _parted(
        words, {"--from": "from", "--spec": "from", "--with": "with", "-w": "with", "--python": "python", "-p": "python"}
    )
    if not rest:
        raise SpecFault("args", "Name the package that `uvx` runs, such as mcp-server-time.")
    program, *arguments = rest
    source = [*options.get("from", ()), program][0]
    requirement = _requirement(source)
    asked = options.get("python", [""])[-1]
    minor = _PYTHON.fullmatch(asked)
    if asked and minor is None:
        raise SpecFault("args", f"--python {asked}: give a version, such as 3.12.")
    named = None if "from" not in options else program
    wanted = (requirement, *(_requirement(one) for text in options.get("with", ()) for one in text.split(",") if one))
    return PackageCommand(ScriptLanguage.PYTHON, wanted, named or requirement[0], tuple(arguments), minor[1] if minor else "")


def _of_npm(words: Sequence[str]) -> PackageCommand:
    options, rest = _parted(words, {"-p": "package", "--package": "package"}, flags={"-y", "--yes", "--", "-q", "--quiet"})
    packages = options.get("package", [])
    if not packages and not rest:
        raise SpecFault("args", "Name the package that `npx` runs, such as @modelcontextprotocol/server-memory.")
    if packages and not rest:
        raise SpecFault("args", "Name the program behind `--package`.")
    program, *arguments = rest
    wanted = tuple(_npm_package(one) for one in packages or [program])
    return PackageCommand(ScriptLanguage.NODEJS, wanted, program if packages else None, tuple(arguments))


def _parted(
    words: Sequence[str], options: dict[str, str], flags: frozenset[str] | set[str] = frozenset()
) -> tuple[dict[str, list[str]], list[str]]:
    """The leading options, and the remaining words."""
    found: dict[str, list[str]] = {}
    left = [*words]
    while left and left[0].startswith("-"):
        word = left.pop(0)
        name, equals, value = word.partition("=")
        if word in flags:
            continue
        if name not in options:
            raise SpecFault("args", f"{name} is not understood here; known: {', '.join((*options, *sorted(flags)))}.")
        if not equals and not left:
            raise SpecFault("args", f"{name} needs a value.")
        found.setdefault(options[name], []).append(value if equals else left.pop(0))
    return found, left


def _requirement(text: str) -> tuple[str, str]:
    """The name and the whole of a requirement."""
    at = _AT_VERSION.fullmatch(text)
    whole = text if at is None else at[1] if at[2] == "latest" else f"{at[1]}=={at[2]}"
    try:
        requirement = Requirement(whole)
    except (InvalidRequirement, RecursionError) as error:
        raise SpecFault("args", f"{text[:100]!r} is no package of the index by name and version.") from error
    if requirement.url is not None:
        raise SpecFault("args", f"{text[:100]!r} comes from elsewhere than the package index. Name a release of it.")
    return requirement.name, str(requirement)


def _npm_package(text: str) -> tuple[str, str]:
    found = _NPM_SPEC.fullmatch(text)
    if found is None:
        raise SpecFault("args", f"{text[:100]!r} is no package of the index by name and version.")
    return found[1], found[2] or "latest"
