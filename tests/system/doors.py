"""The doors of `python -m workers api --processes N`, as their clients see them."""

from collections import defaultdict
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import psutil

from tests.system.cluster import Cluster, Member
from tests.system.far_tools import MANY, FarServer
from tests.system.waiting import wait_until
from toolagent.contracts.lanes import Lane, LaneListing

__all__ = ["PROCESSES", "House"]

PROCESSES = 2


class House:
    """The front doors of one parent process, and clients with a connection to one of them each."""

    def __init__(self, cluster: Cluster, parent: Member, far: FarServer, temporal_address: str) -> None:
        self.cluster, self.parent, self.far, self.temporal_address = cluster, parent, far, temporal_address
        self._clients, self._acting = ExitStack(), iter(range(MANY))

    def doors(self) -> list[int]:
        """The processes of the doors."""
        # To have psutil look through all processes of the machine again and again takes seconds of processor.
        return sorted(filter(_lives, _children(self.parent.pid)))

    def acting(self) -> str:
        """A tool with side effects that was not called yet."""
        return f"far_acts_{next(self._acting)}"

    def asking(self) -> str:
        """A tool without side effects that was not called yet."""
        return f"far_asks_{next(self._acting)}"

    def lanes(self) -> dict[str, Lane]:
        with self._client() as http:
            return {lane.door: lane for lane in LaneListing.model_validate_json(http.get("/lanes").content).lanes}

    def clients(self, each: int = 1) -> list[list[httpx.Client]]:
        """This number of clients for each door, in the order of `doors`. The kernel chooses the door of a connection, so surplus ones are
        closed.
        """

        def look() -> bool:
            http = self._clients.enter_context(self._client())
            if (door := self._door_of(http)) is not None:
                found[door].append(http)
            return all(len(found[door]) >= each for door in self.doors())

        found = defaultdict[int, list[httpx.Client]](list)
        wait_until(look, "there are connections to each door")
        return [found[door][:each] for door in self.doors()]

    def pair(self) -> tuple[httpx.Client, httpx.Client]:
        """Clients of two doors. Each takes one call at a time: for another one it opens a connection, to either door."""
        (one,), (other,) = self.clients()
        return one, other

    def wait_until_whole(self) -> None:
        wait_until(lambda: len(self.doors()) == PROCESSES, "there are as many doors as there should be")
        wait_until(lambda: len(self.lanes()) == PROCESSES, "the lanes of the living are listed, and no others")

    def close(self) -> None:
        self._clients.close()

    def _client(self) -> httpx.Client:
        return httpx.Client(base_url=self.parent.url, timeout=60, trust_env=False)

    def _door_of(self, http: httpx.Client) -> int | None:
        with http.stream("GET", "/health") as answer:
            answer.read()
            port = answer.extensions["network_stream"].get_extra_info("client_addr")[1]
        for pid in self.doors():
            with suppress(psutil.Error):
                if any(one.raddr and one.raddr.port == port for one in psutil.Process(pid).net_connections("tcp")):
                    return pid
        return None


def _children(pid: int) -> list[int]:
    """The children of its only thread."""
    with suppress(OSError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii").split()]
    return []


def _lives(pid: int) -> bool:
    with suppress(psutil.Error):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False
