"""The forms of tables: a module and a line here for each."""

from collections.abc import Callable, Mapping

from pydantic import JsonValue

from engine.external.entries import Listing, Table
from engine.external.forms import knowhub, openapi, tool_agent
from toolagent.contracts.external_tables import TableForm

__all__ = ["FORMS"]

FORMS: Mapping[TableForm, tuple[Callable[[JsonValue], bool], Callable[[JsonValue, Table], Listing]]] = {
    TableForm.OPENAPI: (openapi.is_one, openapi.read),
    TableForm.TOOL_AGENT: (tool_agent.is_one, tool_agent.read),
    TableForm.KNOWHUB: (knowhub.is_one, knowhub.read),
}
"""How each form is recognised and read, in the order of trying. Reading raises TableRefusedError, and blocks."""
