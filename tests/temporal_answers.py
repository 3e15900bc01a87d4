"""A Temporal server that is not there: what it answers is said by the test."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import NoReturn, TypeVar

from google.protobuf.message import Message
from temporalio.client import Client
from temporalio.service import ConnectConfig, RPCError, RPCStatusCode, ServiceClient

from toolagent_service.plugin import service_plugin

__all__ = ["Answers", "client_of"]

T = TypeVar("T", bound=Message)
Answer = Callable[[Message], Message]


class Answers(ServiceClient):
    """`answers` by the names of requests. Every other request fails: nothing can be reached."""

    def __init__(self, **answers: Answer) -> None:
        super().__init__(ConnectConfig(target_host="nowhere"))
        self._answers = answers

    async def _rpc_call(
        self,
        rpc: str,
        req: Message,
        resp_type: type[T],
        *,
        service: str,  # noqa: ARG002 - as the base
        retry: bool,  # noqa: ARG002
        metadata: Mapping[str, str | bytes],  # noqa: ARG002
        timeout: timedelta | None,  # noqa: ARG002
    ) -> T:
        if rpc not in self._answers:
            raise RPCError("nobody is there", RPCStatusCode.UNAVAILABLE, b"")
        answer = self._answers[rpc](req)
        assert isinstance(answer, resp_type)
        return answer

    @property
    def worker_service_client(self) -> NoReturn:
        raise NotImplementedError

    def update_rpc_metadata(self, metadata: Mapping[str, str | bytes]) -> None: ...

    def update_api_key(self, api_key: str | None) -> None: ...


def client_of(**answers: Answer) -> Client:
    return Client(Answers(**answers), plugins=[service_plugin()])
