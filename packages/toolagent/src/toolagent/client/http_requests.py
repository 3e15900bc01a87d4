"""Sending requests: the base of the parts of `ToolAgentHttp`."""

import re
from collections.abc import Generator
from contextlib import contextmanager

import httpx
from pydantic import JsonValue

from toolagent.client.bounded_answers import UNBOUNDED
from toolagent.client.http_answers import ContractT, Unreachable, WrongContent, parsed
from toolagent.client.http_paths import path_of, query

__all__ = ["Requests"]

_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.ProxyError, httpx.UnsupportedProtocol)


class Requests:
    """Sends requests to the service. `unbounded`: waits for the answer without a time limit. Paths are given in segments."""

    url: str
    _client: httpx.Client

    def _get(self, contract: type[ContractT], *segments: str, **parameters: object) -> ContractT:
        return parsed(contract, self._ask("GET", f"{path_of(*segments)}{query(**parameters)}"))

    def _post(
        self,
        contract: type[ContractT],
        *segments: str,
        body: dict[str, JsonValue] | None = None,
        unbounded: bool = False,
        headers: dict[str, str] | None = None,
    ) -> ContractT:
        return parsed(contract, self._ask("POST", path_of(*segments), body, unbounded=unbounded, headers=headers))

    def _delete(self, contract: type[ContractT], *segments: str) -> ContractT:
        return parsed(contract, self._ask("DELETE", path_of(*segments)))

    def _ask(
        self,
        method: str,
        path: str,
        body: dict[str, JsonValue] | None = None,
        *,
        unbounded: bool = False,
        headers: dict[str, str] | None = None,
    ) -> httpx.Response:
        timeout = httpx.Timeout(None, connect=5.0) if unbounded else self._client.timeout
        with self._reached():
            return self._client.request(method, path, json=body, timeout=timeout, headers=headers)

    @contextmanager
    def _streamed(
        self, path: str, headers: dict[str, str], method: str = "GET", body: dict[str, JsonValue] | None = None
    ) -> Generator[httpx.Response]:
        with self._reached(), self._client.stream(method, path, json=body, headers=headers, extensions=UNBOUNDED) as answer:
            yield answer

    @contextmanager
    def _reached(self) -> Generator[None, None, None]:
        try:
            yield
        except httpx.DecodingError as error:
            raise WrongContent(f"The answer of {self.url} cannot be read: {error}.") from error
        except httpx.RequestError as error:
            reason = re.sub(r"^\[Errno -?\d+\] ", "", str(error)) or type(error).__name__
            raise Unreachable(self.url, reason, sent=not isinstance(error, _NEVER_SENT)) from error
