"""Which way a tool is built: a union tagged by `way`."""

from typing import Annotated, Literal

from pydantic import Field

from toolagent.contracts.contract import Contract

Over = Literal["stdio", "http"]
"""How an MCP server is spoken to where it was started."""


class _Plan(Contract):
    notes: tuple[str, ...] = ()
    """Why not another way; for people and for the agent."""
    found: str = ""
    """What was recognised, and where: `console script greet, pyproject.toml`."""


class ToolFileBuild(_Plan):
    """The repository describes its tools itself."""

    way: Literal["tool_file"] = "tool_file"
    paths: Annotated[tuple[str, ...], Field(min_length=1)]
    """Of the `*.tool.json`, in the repository."""


class OpenApiRemote(_Plan):
    """A document alone: the tools are served where it says."""

    way: Literal["openapi_remote"] = "openapi_remote"
    path: str
    server_url: str


class AsgiBuild(_Plan):
    """An app that our launcher serves. Its own document goes before what its routes say, and that before a document of the repository."""

    way: Literal["asgi"] = "asgi"
    interface: Literal["asgi", "wsgi", "gradio"] = "asgi"
    """How it is called; a Gradio app is a module that is run, as its author would."""
    module: str
    """As it is imported from `root`."""
    attribute: str
    is_factory: bool = False
    root: str = ""
    """Folder of the repository that modules are imported from; empty: its top."""
    project: str = ""
    """Folder of the repository that says what the app depends on; empty: its top."""
    document: str | None = None
    """An OpenAPI document in the repository."""


class DockerBuild(_Plan):
    """An image that is built of the repository."""

    way: Literal["docker"] = "docker"
    dockerfile: str
    port: int
    document: str | None = None
    """An OpenAPI document in the repository."""


class ProgramBuild(_Plan):
    """Command line programs that a project installs: each subcommand a tool."""

    way: Literal["program"] = "program"
    project: str = ""
    """Folder of the repository that is the project; empty: its top."""
    language: Literal["python", "nodejs"] = "python"
    programs: tuple[str, ...] = ()
    """Their names, as far as they are known before it is built."""
    are_files: bool = False
    """They are files of the folder, and nothing installs them."""


class McpBuild(_Plan):
    """A server of the Model Context Protocol, started in the sandbox; each of its tools is a tool."""

    way: Literal["mcp"] = "mcp"
    project: str = ""
    """Folder of the repository that is the project; empty: its top."""
    language: Literal["python", "nodejs"] = "python"
    programs: tuple[str, ...] = ()
    """Console scripts that may start it."""
    module: str = ""
    """The file that makes the server, in the repository; empty: not known."""
    arguments: tuple[str, ...] = ()
    """What its README gives to it."""
    over: tuple[Over, ...] = ("stdio",)
    """How it is spoken to, the likelier first."""


class NodeAppBuild(_Plan):
    """An app of Node.js that listens on a port. Its own document goes before one of the repository, and that before what its routes say."""

    way: Literal["node_app"] = "node_app"
    project: str = ""
    """Folder of the repository that is the project; empty: its top."""
    starts: tuple[str, ...] = ()
    """Files of the project that may start it, besides what it says itself."""
    document: str | None = None
    """An OpenAPI document in the repository."""


class CodingBuild(_Plan):
    """The coding agent has to do it."""

    way: Literal["coding"] = "coding"


class NothingToBuild(_Plan):
    """There is nothing that could be run; `reason` says what was looked for, and what to give instead."""

    way: Literal["nothing"] = "nothing"
    reason: str


BuildPlan = Annotated[
    ToolFileBuild | OpenApiRemote | AsgiBuild | NodeAppBuild | DockerBuild | ProgramBuild | McpBuild | CodingBuild | NothingToBuild,
    Field(discriminator="way"),
]
