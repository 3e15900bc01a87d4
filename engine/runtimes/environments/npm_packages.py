"""Lists the packages in a `node_modules` folder, as they name themselves."""

import json
import os
from pathlib import Path
from typing import cast

_MANIFEST_BYTES = 256 * 1024


def npm_packages(modules: Path, name: str) -> list[str]:
    """The package with this name, or the packages of a scope (`@name`)."""
    folder = modules / name
    if not name.startswith("@") or folder.is_symlink() or not folder.is_dir():
        return [_npm_package(folder, name)]
    return [_npm_package(inside, f"{name}/{inside.name}") for inside in sorted(folder.iterdir())]


def _npm_package(folder: Path, name: str) -> str:
    """`name==version` by its package.json. Links are not followed, and pipes do not block."""
    if folder.is_symlink():
        return name
    try:
        with os.fdopen(os.open(folder / "package.json", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)) as file:
            about: object = json.loads(file.read(_MANIFEST_BYTES))
    except (OSError, ValueError, RecursionError):
        return name
    version = cast("dict[str, object]", about).get("version") if isinstance(about, dict) else None
    return f"{name}=={version}" if isinstance(version, str) else name
