"""`containers.json`: `{"containers": [ContainerInfo, …]}`."""

from pathlib import Path

from engine.registry.formats.document import Parsed
from engine.registry.formats.listed import dump_list, parse_list
from engine.registry.formats.state import CatalogFormat, CatalogState, Document
from engine.registry.secret_vault import SecretVault
from toolagent_service.contracts.containers import ContainerInfo

FILE_NAME = "containers.json"
_ALWAYS = frozenset({"container_id", "tool_id", "image", "port_mapping", "volumes", "status", "created_at"})


def parse(path: Path, vault: SecretVault) -> Parsed[ContainerInfo]:
    return parse_list(path, vault, "containers", "container_id", ContainerInfo)


def dump(state: CatalogState) -> Document | None:
    known = ((container.container_id, container, raw) for container, raw in state.containers)
    return dump_list(known, state.files.get(FILE_NAME), "containers", _ALWAYS)


FORMAT = CatalogFormat(FILE_NAME, parse, dump)
