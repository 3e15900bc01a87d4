"""The recognisers of repositories: one module and one line here for each, in order of preference."""

from collections.abc import Mapping

from engine.making.recognisers.asgi import recognise_asgi
from engine.making.recognisers.console_script import recognise_console_scripts
from engine.making.recognisers.dockerfile import recognise_dockerfiles
from engine.making.recognisers.gradio import recognise_gradio
from engine.making.recognisers.mcp_server import recognise_mcp_servers
from engine.making.recognisers.node_app import recognise_node_apps
from engine.making.recognisers.openapi import recognise_openapi
from engine.making.recognisers.recogniser import Recogniser
from engine.making.recognisers.tool_file import recognise_tool_files
from engine.making.recognisers.wsgi import recognise_wsgi
from toolagent.contracts.making import FindingKind

RECOGNISERS: Mapping[FindingKind, Recogniser] = {
    FindingKind.TOOL_FILE: recognise_tool_files,
    FindingKind.ASGI: recognise_asgi,
    FindingKind.WSGI: recognise_wsgi,
    FindingKind.GRADIO: recognise_gradio,
    FindingKind.OPENAPI: recognise_openapi,
    FindingKind.DOCKERFILE: recognise_dockerfiles,
    FindingKind.CONSOLE_SCRIPT: recognise_console_scripts,
    FindingKind.MCP_SERVER: recognise_mcp_servers,
    FindingKind.NODE_APP: recognise_node_apps,
}
