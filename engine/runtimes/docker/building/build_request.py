"""The engine's build, with limits that its library does not know."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO, cast

from engine.runtimes.docker_engine.engine import Api, Document, EngineRefused
from engine.runtimes.docker_engine.limits import ContainerLimits

_PERIOD = 100_000
_NANO = 1_000_000_000
_REFUSED = 400


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """`limits` are for what each step runs. Their number of processes the engine does not take."""

    dockerfile: str
    tag: str
    labels: Mapping[str, str]
    network: str
    arguments: Mapping[str, str]
    limits: ContainerLimits

    def answer(self, api: Api, context: BinaryIO, timeout_s: float) -> Iterator[Document]:
        """What the engine says, part by part, none of them later than so many seconds after another. Raises EngineRefused. Blocks."""
        url = f"{api.base_url}/v{api.api_version}/build"
        headers = {"Content-Type": "application/tar"}
        with api.post(url, data=context, params=self._options, headers=headers, stream=True, timeout=timeout_s) as response:
            if response.status_code >= _REFUSED:
                raise EngineRefused(response.text)
            for line in response.iter_lines():
                if line.strip():
                    yield cast("Document", json.loads(line))

    @property
    def _options(self) -> Mapping[str, str]:
        limits = self.limits
        return {
            "version": "1",  # the builder whose steps have the network that they are told
            "t": self.tag,
            "dockerfile": self.dockerfile,
            "rm": "1",
            "forcerm": "1",
            "labels": json.dumps(dict(self.labels)),
            "networkmode": self.network,
            "buildargs": json.dumps(dict(self.arguments)),
            "memory": str(limits.memory_bytes),
            "memswap": str(limits.memory_bytes),
            "cpuperiod": str(_PERIOD),
            "cpuquota": str(limits.nano_cpus * _PERIOD // _NANO),
            "ulimits": json.dumps(limits.host_config["Ulimits"]),
        }
