"""Wires the removal of departed hosts to the catalog files."""

from engine.registry.catalog import FILES_ORIGIN
from engine.registry.formats import containers_json, groups_json, registry_json, tool_json
from engine.registry.tool_files_import import TOOL_FILES_ORIGIN
from engine.store.database import Database
from engine.store.departures import Departures, EntryFiles


def departures_of(database: Database) -> Departures:
    files = EntryFiles(
        tools=registry_json.FILE_NAME,
        groups=groups_json.FILE_NAME,
        containers=containers_json.FILE_NAME,
        origin=FILES_ORIGIN,
        versions=tool_json.FILE_NAME,
        versions_origin=TOOL_FILES_ORIGIN,
    )
    return Departures(database, files)
