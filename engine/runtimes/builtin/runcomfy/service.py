"""What the tools share: the account, the way to the provider, and how a server is named."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Annotated

from pydantic import Field, model_validator

from engine.runtimes.builtin.options import BuiltinOptions
from engine.runtimes.builtin.runcomfy.account import account_of, address
from engine.runtimes.builtin.runcomfy.cloud import Cloud
from engine.runtimes.builtin.runcomfy.peer import Peer
from engine.runtimes.builtin.tool import ToolArguments
from engine.runtimes.failures import CallFailed
from toolagent.contracts.identifiers import GroupId

GROUP: GroupId = "runcomfy_lifecycle"
CATEGORY = "remote"
TAGS = ("comfyui", "runcomfy", "gpu", "image", "workflow")
PAUSES_S = (1.0, 2.0, 3.0, 5.0)
"""Between questions to the provider, which allows about one a second; the last one again and again."""
START_S = 900.0
"""So long a server may take to become ready."""
AT_ONCE = 6
"""Calls of one tool that takes minutes: together they leave slots of their bucket to others."""
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


class RunComfy:
    """`pauses_s` are those between questions to the provider."""

    def __init__(self, options: BuiltinOptions, pauses_s: Sequence[float] = PAUSES_S) -> None:
        """Raises ValueError when the address cannot be one."""
        self._url = address(options.runcomfy_url) if options.runcomfy_url else None
        self._secrets = options.secrets
        self.peer = Peer(self._url.host if self._url else "localhost")
        self.max_file_bytes = options.max_file_bytes
        self._pauses_s = tuple(pauses_s)

    def cloud(self) -> Cloud:
        """To be entered. Raises CallFailed (`unavailable`) when there is no account."""
        return Cloud(account_of(self._url, self._secrets), self.peer)

    @property
    def longest_pause_s(self) -> float:
        return self._pauses_s[-1]

    def pause_s(self, asked: int) -> float:
        """After so many questions."""
        return self._pauses_s[min(asked, len(self._pauses_s) - 1)]

    async def stopped(self, cloud: Cloud, server_id: str) -> bool:
        """Whether the provider confirms, within a bound, that it is gone. Asked again when it fails."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_STOP_S):
                asked = 0
                while not await _done(lambda: cloud.stop(server_id)):
                    await asyncio.sleep(self.pause_s(asked))
                    asked += 1
                return True
        return False


async def _done(step: Callable[[], Awaitable[object]]) -> bool:
    with suppress(CallFailed):
        await step()
        return True
    return False
