"""Plans to build a tool: a union tagged by `way`."""

from typing import Annotated, Literal

from pydantic import Field

from toolagent.contracts.contract import Contract

Over = Literal["stdio", "http"]
"""The transport to an MCP server that was started here."""


class _Plan(Contract):
    notes: tuple[str, ...] = ()
    """Why not another way, for people and for the agent."""
    found: str = ""
    """What was recognised, and where: `console script greet, pyproject.toml`."""


class ToolFileBuild(_Plan):
    """The repository describes its tools itself."""

    way: Literal["tool_file"] = "tool_file"
    paths: Annotated[tuple[str, ...], Field(min_length=1)]
    """Paths of the `*.tool.json` in the repository."""


class OpenApiRemote(_Plan):
    """An OpenAPI document alone, whose server is elsewhere."""

    way: Literal["openapi_remote"] = "openapi_remote"
    path: str
    server_url: str


class AsgiBuild(_Plan):
    """An app that our launcher serves. Its own document takes precedence over its routes, and these over a document of the repository."""

    way: Literal["asgi"] = "asgi"
    interface: Literal["asgi", "wsgi", "gradio"] = "asgi"
    """The interface of the app. A Gradio app is a module that is run."""
    module: str
    """The module to import, from `root`."""
    attribute: str
    is_factory: bool = False
    root: str = ""
    """Folder of the repository that modules are imported from; empty: its top."""
    project: str = ""
    """Folder of the repository that says what the app depends on; empty: its top."""
    document: str | None = None
    """An OpenAPI document in the repository."""


class DockerBuild(_Plan):
    """An image that is built from the repository."""

    way: Literal["docker"] = "docker"
    dockerfile: str
    port: int
    document: str | None = None
    """An OpenAPI document in the repository."""


class ProgramBuild(_Plan):
    """Command line programs that a project installs. Each subcommand becomes a tool."""

    way: Literal["program"] = "program"
    project: str = ""
    """Folder of the repository that is the project; empty: its top."""
    language: Literal["python", "nodejs"] = "python"
    programs: tuple[str, ...] = ()
    """Names of the programs, as far as known before the build."""
    are_files: bool = False
    """Whether the programs are files of the folder, which are not installed."""


class McpBuild(_Plan):
    """An MCP server, started in the sandbox. Each of its tools becomes a tool."""

    way: Literal["mcp"] = "mcp"
    project: str = ""
    """Folder of the repository that is the project; empty: its top."""
    language: Literal["python", "nodejs"] = "python"
    programs: tuple[str, ...] = ()
    """Console scripts that may start it."""
    module: str = ""
    """The file that makes the server, in the repository; empty: not known."""
    arguments: tuple[str, ...] = ()
    """Arguments from its README."""
    over: tuple[Over, ...] = ("stdio",)
    """Transports to try, the likelier first."""


class NodeAppBuild(_Plan):
    """A Node.js app that listens on a port. Its own document takes precedence over one of the repository, and that over its routes."""

    way: Literal["node_app"] = "node_app"
    project: str = ""
    """Folder of the repository that is the project; empty: its top."""
    starts: tuple[str, ...] = ()
    """Files of the project that may start it, besides its declared start."""
    document: str | None = None
    """An OpenAPI document in the repository."""


class CodingBuild(_Plan):
    """The coding agent builds the tool."""

    way: Literal["coding"] = "coding"


class NothingToBuild(_Plan):
    """Nothing can be run. `reason` says what was looked for, and what to give instead."""

    way: Literal["nothing"] = "nothing"
    reason: str


BuildPlan = Annotated[
    ToolFileBuild | OpenApiRemote | AsgiBuild | NodeAppBuild | DockerBuild | ProgramBuild | McpBuild | CodingBuild | NothingToBuild,
    Field(discriminator="way"),
]
