"""A file or folder of the host, mounted in a container."""

from pathlib import Path

from engine.runtimes.docker_engine.engine import Document


def bind(source: Path, target: str, *, writable: bool = False) -> Document:
    return {"Type": "bind", "Source": str(source), "Target": target, "ReadOnly": not writable}
