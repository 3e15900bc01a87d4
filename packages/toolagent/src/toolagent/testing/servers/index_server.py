"""A package index with the packages a test wants, over real HTTP on 127.0.0.1."""

from collections.abc import Mapping
from pathlib import Path

from toolagent.testing.servers.index_app import IndexApp
from toolagent.testing.servers.index_packages import IndexPackages, load_packages
from toolagent.testing.servers.serving import ServerThread

__all__ = ["IndexServer"]


class IndexServer(ServerThread):
    """`with IndexServer(packages) as server:` and `server.index_url` is for `uv pip install --index-url`."""

    def __init__(self, packages: IndexPackages | Path, port: int = 0) -> None:
        """Raises DocumentError for a file that describes no packages."""
        self._index = IndexApp(load_packages(packages) if isinstance(packages, Path) else packages)
        super().__init__(self._index.application(), port)

    @property
    def index_url(self) -> str:
        return f"{self.url}/simple/"

    @property
    def downloads(self) -> Mapping[str, int]:
        """How often each file was downloaded, by its name."""
        return dict(self._index.downloads)
