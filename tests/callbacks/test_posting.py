"""One post: its signature, its judged address, and the meaning of the answer."""

import base64
import hashlib
import hmac
import json
from collections.abc import Generator
from datetime import UTC, datetime

import pytest

from engine.callbacks.posting import CallbackNotTaken, CallbackPoster, callback_destinations
from engine.runtimes.http.destination import Destinations
from tests.callbacks.receiver import Receiver, running_receiver
from toolagent.contracts.callbacks import Callback
from toolagent.core.calls.callbacks import delivery_id, origin_of, signatures

HERE = ("127.0.0.1",)
# The example of the libraries for Standard Webhooks.
KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.fixture
def receiver() -> Generator[Receiver]:
    with running_receiver() as receiver:
        yield receiver


def callback(url: str) -> Callback:
    at = datetime(2026, 3, 26, tzinfo=UTC)
    return Callback(task_id="call-12345678", event_id="call-12345678:ended", type="call.ended", url=url, at=at, data={"result": "中"})


def poster(*, secret: str | None = "s3cret", allow: tuple[str, ...] = HERE, timeout_s: float = 5.0) -> CallbackPoster:  # noqa: S107 - made up
    return CallbackPoster(callback_destinations(allow), lambda: secret, timeout_s=timeout_s)


async def refused(url: str, by: CallbackPoster) -> CallbackNotTaken:
    with pytest.raises(CallbackNotTaken) as caught:
        await by.post(callback(url))
    return caught.value


def is_genuine(secret: bytes, headers: dict[str, str], body: bytes) -> bool:
    """Checks as docs/calls.md tells receivers to."""
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    wanted = "v1," + base64.b64encode(hmac.new(secret, signed, hashlib.sha256).digest()).decode()
    return any(hmac.compare_digest(wanted, given) for given in headers["webhook-signature"].split())


async def test_what_is_posted_is_signed_and_carries_a_stable_id(receiver: Receiver) -> None:
    assert await poster().post(callback(receiver.url)) == 204
    (got,) = receiver.received
    assert json.loads(got.body) == {"type": "call.ended", "timestamp": "2026-03-26T00:00:00+00:00", "data": {"result": "中"}}
    assert got.headers["webhook-id"] == "call-12345678:ended"
    assert abs(int(got.headers["webhook-timestamp"]) - datetime.now(UTC).timestamp()) < 60
    assert is_genuine(b"s3cret", dict(got.headers), got.body)
    assert not is_genuine(b"other", dict(got.headers), got.body)
    assert not is_genuine(b"s3cret", dict(got.headers), got.body + b" ")


def test_signatures_are_those_of_standard_webhooks() -> None:
    made = signatures(KEY, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_several_secrets_give_several_signatures_so_that_they_can_be_changed() -> None:
    one, two = signatures("old", "e", 1, b"x"), signatures("new", "e", 1, b"x")
    assert signatures("new old", "e", 1, b"x") == f"{two} {one}"


@pytest.mark.parametrize("status", [500, 502, 503, 408, 429])
async def test_what_may_pass_is_worth_another_attempt(receiver: Receiver, status: int) -> None:
    receiver.answers = [status]
    failure = await refused(receiver.url, poster())
    assert (failure.is_final, failure.status_code) == (False, status)


@pytest.mark.parametrize("status", [400, 401, 404, 410, 422])
async def test_what_is_refused_for_good_is_not_sent_again(receiver: Receiver, status: int) -> None:
    receiver.answers = [status]
    failure = await refused(receiver.url, poster())
    assert (failure.is_final, failure.status_code) == (True, status)


async def test_a_receiver_may_ask_for_patience(receiver: Receiver) -> None:
    receiver.answers, receiver.retry_after = [429], "7"
    assert (await refused(receiver.url, poster())).wait_s == 7.0


async def test_a_redirect_to_a_private_address_is_not_followed(receiver: Receiver) -> None:
    with running_receiver() as inner:
        receiver.answers, receiver.location = [302], inner.url
        failure = await refused(receiver.url, poster())
        assert (failure.is_final, failure.status_code) == (True, 302)
        assert inner.received == []


async def test_a_receiver_that_hangs_is_left_after_a_while(receiver: Receiver) -> None:
    receiver.answers = [0]
    failure = await refused(receiver.url, poster(timeout_s=0.3))
    assert not failure.is_final
    assert len(receiver.received) == 1


async def test_a_private_address_is_refused_before_anything_is_connected(receiver: Receiver) -> None:
    private = poster(allow=())
    for url in (receiver.url, receiver.url.replace("127.0.0.1", "localhost"), "http://169.254.169.254/latest", "http://[::1]:1/"):
        assert (await refused(url, private)).is_final
        assert "TOOL_AGENT_CALLBACK_ALLOW" in (await private.refusal(url) or "")
    assert receiver.received == []


async def test_a_name_that_turns_private_after_it_was_accepted_is_refused_when_it_is_posted(receiver: Receiver) -> None:
    addresses = iter(["93.184.216.34", "127.0.0.1"])

    async def turning(_host: str, _port: int) -> list[str]:
        return [next(addresses)]

    rebound = CallbackPoster(Destinations((), turning), lambda: "s3cret")
    url = receiver.url.replace("127.0.0.1", "rebound.example")
    assert await rebound.refusal(url) is None
    assert (await refused(url, rebound)).is_final
    assert receiver.received == []


async def test_without_a_secret_nothing_is_posted_and_callers_are_told_at_once(receiver: Receiver) -> None:
    unsigned = poster(secret=None)
    assert "TOOL_AGENT_SECRET_CALLBACK" in (await unsigned.refusal(receiver.url) or "")
    assert not (await refused(receiver.url, unsigned)).is_final
    assert receiver.received == []


async def test_nobody_listens_is_worth_another_attempt() -> None:
    with running_receiver() as receiver:
        url = receiver.url
    assert not (await refused(url, poster())).is_final


async def test_a_url_with_a_login_is_refused(receiver: Receiver) -> None:
    assert "signed instead" in (await poster().refusal(receiver.url.replace("//", "//user:pass@")) or "")


@pytest.mark.parametrize("port", [0, 65_536])
async def test_a_port_that_there_is_not_is_refused_for_good(port: int) -> None:
    url = f"http://127.0.0.1:{port}/told"
    assert f"There is no port {port}." in (await poster().refusal(url) or "")
    assert (await refused(url, poster())).is_final


async def test_a_name_that_cannot_be_resolved_now_may_be_later() -> None:
    async def away(_host: str, _port: int) -> list[str]:
        raise OSError("no such host")

    unresolved = CallbackPoster(Destinations((), away), lambda: "s3cret")
    assert await unresolved.refusal("http://later.example/") is None
    assert not (await refused("http://later.example/", unresolved)).is_final


def test_of_a_url_only_its_origin_is_shown() -> None:
    assert origin_of("https://user:pass@example.com:8443/hook/T0KEN?key=1") == "https://example.com:8443"


def test_a_delivery_is_named_after_what_it_tells_of() -> None:
    assert delivery_id("call-12345678:ended") == "callback-call-12345678"
    assert delivery_id("call-12345678:ended:run-1") == "callback-call-12345678:run-1"
