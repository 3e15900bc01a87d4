"""The commands about versions, files and the catalog as a whole."""

import json
from os.path import lexists
from pathlib import Path, PurePosixPath
from typing import Annotated

import typer
from pydantic import JsonValue

from toolagent.cli.asking import Asked, asking
from toolagent.cli.failures import reported
from toolagent.cli.files import output_file, output_folder
from toolagent.cli.options import ApiKey, Tool, Url, commands, connected, tool_id_of
from toolagent.cli.parameters import ParameterError
from toolagent.cli.render import show_note, show_versions
from toolagent.client.http import DEFAULT_URL

__all__ = ["activate", "deactivate", "export", "file", "versions"]

Version = Annotated[str, typer.Argument(help="An exact version, such as `1.2.0`.", show_default=False)]

file = commands("Files that tools take and give.")


@asking
def versions(asked: Asked, tool: Tool) -> None:
    """List the versions of a tool. Calls that name no version get the active one.

    `toolagent versions image_stitcher`
    """
    asked.show(asked.service.versions(tool_id_of(tool)), show_versions)


@asking
def activate(asked: Asked, tool: Tool, version: Version) -> None:
    """Make a version active: calls that name no version get it.

    `toolagent activate image_stitcher 1.2.0`
    """
    asked.show(asked.service.activate(tool_id_of(tool), version), show_versions)


@asking
def deactivate(asked: Asked, tool: Tool, version: Version) -> None:
    """Deactivate a version: no new call gets it; running calls finish on it.

    `toolagent deactivate image_stitcher 1.1.0`
    """
    asked.show(asked.service.deactivate(tool_id_of(tool), version), show_versions)


def export(
    folder: Annotated[Path, typer.Argument(help="Where the catalog files are written.")] = Path("catalog"),
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there already.")] = False,
    url: Url = DEFAULT_URL,
    api_key: ApiKey = None,
) -> None:
    """Write the catalog as files, in the formats that the service reads.

    `toolagent export backup`
    """
    with reported(), connected(url, api_key) as service:
        files = {_target(folder, name): document for name, document in service.catalog().items()}
        if not force and (there := next(filter(lexists, files), None)):
            raise ParameterError(f"{str(there)!r} is there already. Name another folder, or add --force to replace it.")
        for path, document in files.items():
            show_note(f"saved {_written(path, document)}")


@file.command("get")
def get_file(
    file_id: Annotated[str, typer.Argument(metavar="ID", help="Such as `file_…`, or the path `/files/file_…`.", show_default=False)],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write to this file; else under its own name here.")
    ] = None,
    url: Url = DEFAULT_URL,
    api_key: ApiKey = None,
) -> None:
    """Save a stored file or a large result. With -o, an interrupted download is continued.

    `toolagent file get file_0123456789abcdef0123456789abcdef -o result.json`
    """
    with reported(), connected(url, api_key) as service:
        name = file_id.removeprefix("/files/")
        saved = service.save(name, output_file(output)) if output else service.download(name, Path())
        show_note(f"saved {saved}")


def _target(folder: Path, name: str) -> Path:
    """Raises ParameterError."""
    parts = PurePosixPath(name).parts
    if not parts or any(part.startswith((".", "/")) for part in parts):
        raise ParameterError(f"The service names a file {name!r} that would not lie in the folder.")
    return folder.joinpath(*parts)


def _written(target: Path, document: JsonValue) -> Path:
    output_folder(target.parent)
    part = target.with_name(f".{target.name}.part")
    part.write_text(json.dumps(document, ensure_ascii=False, indent=2) + "\n", "utf-8")
    part.replace(target)
    return target
