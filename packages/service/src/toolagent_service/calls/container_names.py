"""Valid names of containers and images.

Other texts could be paths in the API of the Docker engine.
"""

import re

from toolagent.contracts.sources import ToolSource

_CONTAINER = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,127}")
_PART = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*(?::\d{1,5})?|\[[0-9A-Fa-f:]+\](?::\d{1,5})?")
_LAST = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@[a-z0-9]+:[0-9A-Fa-f]{32,128})?")
_ID = re.compile(r"sha256:[0-9a-f]{64}")
_LONGEST = 512


def is_container(name: str) -> bool:
    """Whether the text is a name, an id or the beginning of an id."""
    return _CONTAINER.fullmatch(name) is not None


def is_image(name: str) -> bool:
    """Whether the text is `python:3.12`, `registry.example:5000/team/image@sha256:…`, or an id."""
    *before, last = name.split("/")
    first, middle = before[:1], before[1:]
    is_named = all(map(_HOST.fullmatch, first)) or all(map(_PART.fullmatch, first))
    is_whole = is_named and all(map(_PART.fullmatch, middle)) and _LAST.fullmatch(last) is not None
    return len(name) <= _LONGEST and (is_whole or _ID.fullmatch(name) is not None)


def misnamed(source: ToolSource) -> tuple[str, str] | None:
    """The field of a source with an invalid name of a container or an image, and the fault."""
    container, image = getattr(source, "container_id", None), getattr(source, "image", None)
    if container is not None and not is_container(container):
        return "container_id", f"{container[:80]!a} is no name or id of a container: letters, digits, '_', '.' and '-', 128 at most."
    if image is not None and not is_image(image):
        return "image", f"{image[:80]!a} is no name of an image: write it like `python:3.12` or `registry.example:5000/team/image:1`."
    return None
