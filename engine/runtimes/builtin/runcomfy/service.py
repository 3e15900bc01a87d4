"""Shared by the RunComfy tools: the account, the connection to the provider, a server's name, the common part of manifests."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from itertools import count
from typing import Annotated

from pydantic import Field, model_validator

from engine.runtimes.builtin.options import BuiltinOptions
from engine.runtimes.builtin.runcomfy.account import account_of, address
from engine.runtimes.builtin.runcomfy.cloud import Cloud
from engine.runtimes.builtin.runcomfy.peer import Peer
from engine.runtimes.builtin.tool import ToolArguments, ToolOutput, schema_of
from engine.runtimes.failures import CallFailed
from toolagent.contracts.backend_runtimes import BackendRuntime
from toolagent.contracts.identifiers import GroupId
from toolagent.contracts.manifest import PermissionClass, SideEffectScope, ToolExample, ToolManifest

GROUP: GroupId = "runcomfy_lifecycle"
_TAGS = ("comfyui", "runcomfy", "gpu", "image", "workflow")
PAUSES_S = (1.0, 2.0, 3.0, 5.0)
"""Pauses between requests to the provider, which allows about one a second. The last pause is repeated."""
START_S = 900.0
"""How long a server may take to become ready."""
AT_ONCE = 6
"""Concurrent calls of a tool that takes minutes, so that other tools find free slots in the bucket."""
_STOP_S = 20.0

ServerId = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$")]


class OneServer(ToolArguments):
    server_id: Annotated[ServerId | None, Field(description="The server, as launch_comfy_env returned it.")] = None
    container_id: Annotated[ServerId | None, Field(description="Another name of `server_id`.")] = None

    @model_validator(mode="after")
    def _names_one(self) -> "OneServer":
        if self.server_id is None and self.container_id is None:
            raise ValueError("`server_id` is missing: launch_comfy_env returns it")
        if None not in (self.server_id, self.container_id) and self.server_id != self.container_id:
            raise ValueError("`server_id` and `container_id` name two servers")
        return self

    @property
    def server(self) -> str:
        return self.server_id or self.container_id or ""


def manifest_of(
    arguments: type[ToolArguments],
    result: type[ToolOutput],
    *,
    tool_id: str,
    name: str,
    description: str,
    tag: str,
    example: ToolExample,
    timeout_s: float,
    only_reads: bool = False,
    idempotent: bool = True,
    concurrency: int | None = None,
    bucket: str | None = None,
) -> ToolManifest:
    return ToolManifest(
        tool_id=tool_id,
        name=name,
        description=description,
        category="remote",
        backend_runtime=BackendRuntime.REMOTE,
        group_ids=(GROUP,),
        tags=(*_TAGS, tag),
        input_schema=schema_of(arguments),
        output_schema=schema_of(result),
        permission_class=PermissionClass.READ if only_reads else PermissionClass.EXTERNAL,
        side_effect_scope=SideEffectScope.NONE if only_reads else SideEffectScope.NETWORK,
        idempotent=idempotent,
        examples=(example,),
        timeout_s=timeout_s,
        concurrency=concurrency,
        bucket=bucket,
    )


class RunComfy:
    """`pauses_s`: pauses between requests to the provider."""

    def __init__(self, options: BuiltinOptions, pauses_s: Sequence[float] = PAUSES_S) -> None:
        """Raises ValueError for a bad address."""
        self._url = address(options.runcomfy_url) if options.runcomfy_url else None
        self._secrets = options.secrets
        self.peer = Peer(self._url.host if self._url else "localhost")
        self.max_file_bytes = options.max_file_bytes
        self._pauses_s = tuple(pauses_s)

    def cloud(self) -> Cloud:
        """A client, for `async with`. Raises CallFailed (`unavailable`) if there is no account."""
        return Cloud(account_of(self._url, self._secrets), self.peer)

    @property
    def longest_pause_s(self) -> float:
        return self._pauses_s[-1]

    def pause_s(self, asked: int) -> float:
        """The pause after `asked` requests."""
        return self._pauses_s[min(asked, len(self._pauses_s) - 1)]

    async def stopped(self, cloud: Cloud, server_id: str) -> bool:
        """Whether the provider confirms the stop within `_STOP_S`. Failed requests are repeated."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_STOP_S):
                for asked in count():
                    with suppress(CallFailed):
                        await cloud.stop(server_id)
                        return True
                    await asyncio.sleep(self.pause_s(asked))
        return False
