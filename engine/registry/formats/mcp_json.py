"""`mcp.json`: `{"mcpServers": {name: {command, args, env | url, headers}}}`, as MCP clients write it."""

import re
from pathlib import Path

from pydantic import JsonValue, ValidationError

from engine.registry.formats.document import Parsed, faults_of
from engine.registry.formats.overlay import written
from engine.registry.formats.server_keys import with_named_keys
from engine.registry.formats.state import CatalogFormat, CatalogState, Document
from engine.registry.secret_vault import SecretVault
from toolagent.contracts.mcp_servers import McpServerSpec
from toolagent.core.mcp_specs import SpecFault

FILE_NAME = "mcp.json"
_KEY = "mcpServers"
_NOT_IN_A_NAME = re.compile(r"[^a-z0-9_-]+")
_LONGEST_NAME = 64


def server_name(said: str) -> str:
    """The server's name here: `GitHub Server` becomes `github_server`. Empty if no letters are left."""
    return _NOT_IN_A_NAME.sub("_", said.lower()).lstrip("_-0123456789").rstrip("_-")[:_LONGEST_NAME]


def parse(path: Path, vault: SecretVault) -> Parsed[McpServerSpec]:
    """Parse the file, by server name. A `disabled` server counts as missing."""
    parsed = Parsed[McpServerSpec](path.name, vault)
    for said, item in parsed.open(path, _KEY, dict[str, JsonValue]).items():
        name, where = server_name(said), f"$.{_KEY}.{said}"
        if isinstance(item, dict) and item.get("disabled") is True:
            continue
        if not name or name in parsed.mentioned:
            parsed.fault(where, "There is already a server of this name in this file." if name else "Its name has no letters from a to z.")
            continue
        parsed.mentioned[name] = None
        _take(parsed, name, item, where)
    return parsed


def dump(state: CatalogState) -> Document | None:
    file = state.files.get(FILE_NAME)
    if file is None and not state.servers:
        return None
    entries: dict[str, JsonValue] = {name: written(spec, frozenset()) for name, spec in state.servers}
    return {**(file.envelope if file else {}), _KEY: entries}


def _take(parsed: Parsed[McpServerSpec], name: str, item: JsonValue, where: str) -> None:
    try:
        spec = McpServerSpec.model_validate(item)
        kept = with_named_keys(name, spec, parsed.file, where, parsed.vault)
    except ValidationError as error:
        parsed.faults += faults_of(error, parsed.file, where)
    except SpecFault as fault:
        parsed.fault(f"{where}.{fault.field}", f"This entry is not used: {fault}")
    else:
        parsed.faults += kept.faults
        parsed.note_misspelled(spec, item, where)
        parsed.entries[name] = kept.spec


FORMAT = CatalogFormat(FILE_NAME, parse, dump)
