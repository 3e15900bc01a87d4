"""Which answers of ComfyUI end a call: they also hold other clients' classes and prompts."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx
import pytest

from engine.runtimes.builtin.runcomfy.comfy import Comfy, ComfyUnreachable
from engine.runtimes.builtin.runcomfy.peer import Peer
from engine.runtimes.failures import CallFailed
from tests.runcomfy.conftest import failure_of
from toolagent.contracts.calls import ErrorType

TOO_LARGE = '{"v": "' + "x" * (8 << 20) + '"}'
UNREADABLE = pytest.mark.parametrize("body", ['{"v": NaN}', TOO_LARGE], ids=["NaN", "above 8 MiB"])


class _Answering(Peer):
    """Answers each request with this."""

    def __init__(self, body: str, status: int, kind: str = "application/json") -> None:
        super().__init__("comfy")

        async def pieces() -> AsyncGenerator[bytes]:
            yield body.encode()

        def answer(_: httpx.Request) -> httpx.Response:
            return httpx.Response(status, content=pieces(), headers={"Content-Type": kind})

        self._transport = httpx.MockTransport(answer)

    def client(self, headers: dict[str, str] | None = None) -> httpx.AsyncClient:
        return httpx.AsyncClient(transport=self._transport, headers=headers)


@asynccontextmanager
async def comfy_that_says(body: str, status: int = 200, kind: str = "application/json") -> AsyncGenerator[Comfy]:
    async with Comfy("http://comfy", _Answering(body, status, kind)) as comfy:
        yield comfy


@UNREADABLE
async def test_a_queue_that_cannot_be_read_ends_nobodys_call(body: str) -> None:
    """It holds other clients' prompts in full: ours may wait or run beside them."""
    async with comfy_that_says(body) as comfy:
        with pytest.raises(ComfyUnreachable):
            await comfy.is_queued("ours")


@UNREADABLE
async def test_what_is_ours_and_stays_unreadable_ends_the_call(body: str) -> None:
    async with comfy_that_says(body) as comfy:
        failures: list[CallFailed] = [await failure_of(asked) for asked in (comfy.ended("ours"), comfy.queue({}, "client"))]
    assert {(failure.error_type, failure.outcome) for failure in failures} == {(ErrorType.OUTPUT_VALIDATION_ERROR, "unknown")}


@pytest.mark.parametrize(
    ("required", "defaults"),
    [
        ('{"x": ["FLOAT", {"default": 2, "max": 3}], "y": "IMAGE", "z": [["a", "b"]]}', {"x": 2}),
        ('{"x": ["FLOAT", {"default": 2, "max": Infinity}]}', {}),
        ('["x"]', {}),
    ],
)
async def test_a_class_that_is_declared_strangely_refuses_no_workflow(required: str, defaults: dict[str, object]) -> None:
    async with comfy_that_says('{"Kind": {"input": {"required": ' + required + "}}}") as comfy:
        assert await comfy.defaults("Kind") == defaults


@pytest.mark.parametrize(("body", "status", "kind"), [("{}", 502, "application/json"), ("<html>gone</html>", 200, "text/html")])
async def test_a_server_that_has_no_classes_now_is_no_class_without_defaults(body: str, status: int, kind: str) -> None:
    async with comfy_that_says(body, status, kind) as comfy:
        with pytest.raises(ComfyUnreachable):
            await comfy.defaults("Kind")
