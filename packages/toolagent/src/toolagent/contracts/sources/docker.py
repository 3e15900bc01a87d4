"""A container."""

from typing import Annotated, Literal

from pydantic import Field

from toolagent.contracts.backend_runtimes import BackendRuntime
from toolagent.contracts.identifiers import AtLeastOne
from toolagent.contracts.sources.login import Login
from toolagent.contracts.sources.source import HttpSource, PackedSource, SharedProcess, Traits

__all__ = ["DockerSource"]


class DockerSource(HttpSource, PackedSource):
    """A container: an existing one (`container_id`), or one made of a Dockerfile or an image. The first that is given counts."""

    mended = ("host_dir", "content", "endpoint_path", "http_method", "dockerfile", "internal_port")

    type: Literal["docker"] = "docker"
    container_id: str | None = None
    image: str | None = None
    dockerfile: str | None = None
    """Path of the Dockerfile in `host_dir`."""
    host_dir: str | None = None
    """Folder it is built in, relative to the data folder."""
    content: str | None = None
    """That folder's files in the content store, by the id of their archive; set at import."""
    internal_port: Annotated[int, Field(ge=0, le=65535)] = 0
    """Port of the server in the container, on its loopback; 0: the port that the image exposes, or $PORT."""
    command: tuple[str, ...] = ()
    """The command of the container, instead of the image's own."""
    environment: dict[str, str] = {}
    login: Login | None = None
    volumes: dict[str, str] = {}
    """Folders of the machine, by their path in the container. A plain name is a folder of the tool's own."""
    mem_limit: Annotated[str | None, Field(pattern=r"^\d+ *[kmgtKMGT]?[iI]?[bB]?$")] = None
    """`512m`, `2g`."""
    nano_cpus: AtLeastOne | None = None
    """Billionths of a core."""
    pids_limit: AtLeastOne | None = None
    """Processes and threads at once."""
    use_gpu: bool = False
    gpu_count: Annotated[int, Field(ge=-1)] = -1
    """-1: all of them."""
    process: SharedProcess = None

    @property
    def traits(self) -> Traits:
        return Traits(BackendRuntime.DOCKER, on_host=True, stays_up=True, apart=self.container_id is None and not self.volumes)

    @property
    def remedy(self) -> str:
        if self.container_id is not None:
            remedy = "mend it there, or register the tool with a Dockerfile, which can be repaired"
            return f"is the container {self.container_id!r}, which cannot be built again: {remedy}."
        if self.dockerfile is None:
            remedy = "mend it where that is built, and register the tool with the new image"
            return f"runs from the image {self.image!r}, and its files are not here: {remedy}."
        return ""
