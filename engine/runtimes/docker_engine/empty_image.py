"""An image that holds mount points only."""

import io
import tarfile
import threading
from collections.abc import Mapping, Sequence

from engine.runtimes.docker_engine.engine import Api, Engine, Missing
from engine.runtimes.docker_engine.labels import OWN_IMAGES, digest

_NAME = f"{OWN_IMAGES}empty"
_turn = threading.Lock()
_FOLDERS = ("dev", "etc", "proc", "sys", "tmp", "usr")


def empty_image(engine: Engine, api: Api, labels: Mapping[str, str], links: Sequence[tuple[str, str]] = ()) -> str:
    """The id of the image with these labels and links (name, target); made if missing. Blocks. Raises EngineFailure."""
    tag = digest(*labels.values(), str(links))
    name = f"{_NAME}:{tag}"
    with _turn:  # of two that are made at once, one would lose its name
        try:
            return str(engine.in_this_thread(lambda api: api.inspect_image(name))["Id"])
        except Missing:
            said = " ".join(f"{label}={value}" for label, value in labels.items())
            api.import_image_from_data(_tar_of(links), repository=_NAME, tag=tag, changes=["CMD true", f"LABEL {said}"])
            return str(api.inspect_image(name)["Id"])


def _tar_of(links: Sequence[tuple[str, str]]) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as tar:
        for name in _FOLDERS:
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            tar.addfile(folder)
        for name, target in links:
            link = tarfile.TarInfo(name.lstrip("/"))
            link.type, link.linkname = tarfile.SYMTYPE, target
            tar.addfile(link)
    return whole.getvalue()
