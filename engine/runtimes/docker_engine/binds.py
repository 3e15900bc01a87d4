"""Bind mounts: files and folders of the host in a container."""

from pathlib import Path

from engine.runtimes.docker_engine.engine import Document


def bind(source: Path, target: str, *, writable: bool = False) -> Document:
    return {"Type": "bind", "Source": str(source), "Target": target, "ReadOnly": not writable}
