"""`mcp.json`: `{"mcpServers": {name: {command, args, env | url, headers}}}`, as MCP clients write it."""

import re
from pathlib import Path

from pydantic import JsonValue, ValidationError

from engine.registry.formats.document import Parsed, faults_of, misspelled_fields
from engine.registry.formats.overlay import written
from engine.registry.formats.server_keys import with_named_keys
from engine.registry.formats.state import CatalogFormat, CatalogState, Document
from engine.registry.secret_vault import SecretVault
from toolagent.contracts.mcp_servers import McpServerSpec
from toolagent.contracts.records import CatalogFault
from toolagent.core.mcp_specs import SpecFault

FILE_NAME = "mcp.json"
_KEY = "mcpServers"
_NOT_IN_A_NAME = re.compile(r"[^a-z0-9_-]+")
_LONGEST_NAME = 64


def server_name(said: str) -> str:
    """What a server is called here whose file calls it that: `GitHub Server` is `github_server`. Empty where nothing is left."""
    return _NOT_IN_A_NAME.sub("_", said.lower()).lstrip("_-0123456789").rstrip("_-")[:_LONGEST_NAME]


def parse(path: Path, vault: SecretVault) -> Parsed[McpServerSpec]:
    """By name. A server that is `disabled` counts as one that is not there."""
    parsed = Parsed[McpServerSpec]()
    for said, item in parsed.open(path, _KEY, dict[str, JsonValue], vault).items():
        name, where = server_name(said), f"$.{_KEY}.{said}"
        if isinstance(item, dict) and item.get("disabled") is True:
            continue
        if not name or name in parsed.mentioned:
            reason = "There is already a server of this name in this file." if name else "Its name has no letters from a to z."
            parsed.faults.append(CatalogFault(file=path.name, field=where, reason=reason))
            continue
        parsed.mentioned[name] = None
        _take(parsed, name, item, path.name, where, vault)
    return parsed


def dump(state: CatalogState) -> Document | None:
    file = state.files.get(FILE_NAME)
    if file is None and not state.servers:
        return None
    entries: dict[str, JsonValue] = {name: written(spec, frozenset()) for name, spec in state.servers}
    return {**(file.envelope if file else {}), _KEY: entries}


def _take(parsed: Parsed[McpServerSpec], name: str, item: JsonValue, file: str, where: str, vault: SecretVault) -> None:
    try:
        spec = McpServerSpec.model_validate(item)
        kept = with_named_keys(name, spec, file, where, vault)
    except ValidationError as error:
        parsed.faults.extend(faults_of(error, file, where))
    except SpecFault as fault:
        parsed.faults.append(CatalogFault(file=file, field=f"{where}.{fault.field}", reason=f"This entry is not used: {fault}"))
    else:
        parsed.faults += [*kept.faults, *misspelled_fields(spec, item, file, where)]
        parsed.entries[name] = kept.spec


FORMAT = CatalogFormat(FILE_NAME, parse, dump)
