"""Which addresses are public; and requests go to the judged address."""

from collections.abc import Sequence
from ipaddress import ip_address

import httpx
import pytest

from engine.network.addresses import Address, is_public
from engine.runtimes.builtin.http_request import Arguments, HttpRequest
from engine.runtimes.failures import CallFailed
from engine.runtimes.http.destination import Destinations
from tests.builtin.conftest import Site
from toolagent.contracts.calls import ErrorType


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "168.63.129.16",
        "::ffff:168.63.129.16",
        "100.64.0.1",
        "0.0.0.0",  # noqa: S104 - nothing is bound to it
        "224.0.0.1",
        "255.255.255.255",
        "240.0.0.1",
        "192.0.2.1",
        "198.18.0.1",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:127.0.0.1",
        "::ffff:169.254.169.254",
        "64:ff9b::7f00:1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::1",
        "2002:7f00:1::",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        "fd00:ec2::254",
        "fe80::1",
        "fe80::1%eth0",
        "fec0::1",
        "ff02::1",
        "2001:db8::1",
        "192.0.0.192",
        "192.88.99.1",
        "3fff::1",
    ],
)
def test_an_address_that_is_not_of_the_internet_is_not_public(address: str) -> None:
    assert not is_public(ip_address(address))


@pytest.mark.parametrize(
    "address", ["1.1.1.1", "93.184.216.34", "2606:4700:4700::1111", "::ffff:1.1.1.1", "64:ff9b::101:101", "2002:101:101::"]
)
def test_an_address_of_the_internet_is_public(address: str) -> None:
    assert is_public(ip_address(address))


class Names:
    """A name server with a new answer at each look-up."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.asked = list[str]()
        self._answers = iter(answers)

    async def __call__(self, host: str, port: int) -> Sequence[str]:  # noqa: ARG002 - as Resolve has it
        self.asked.append(host)
        return next(self._answers)


async def test_one_private_address_among_public_ones_is_enough_to_refuse() -> None:
    with pytest.raises(CallFailed) as failure:
        await Destinations((), Names(["1.1.1.1", "10.0.0.1"])).of(httpx.URL("http://two.test/"))
    assert failure.value.error_type is ErrorType.SECURITY_ERROR
    assert failure.value.details == {"host": "two.test", "address": "10.0.0.1", "setting": "TOOL_AGENT_HTTP_REQUEST_ALLOW"}


@pytest.mark.parametrize("address", ["224.0.0.1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "::ffff:10.0.0.1"])
async def test_what_only_looks_global_is_refused(address: str) -> None:
    with pytest.raises(CallFailed) as failure:
        await Destinations((), Names([address])).of(httpx.URL("http://sly.test/"))
    assert failure.value.error_type is ErrorType.SECURITY_ERROR


@pytest.mark.parametrize("address", ["1.1.1.1", "::ffff:1.1.1.1"])
async def test_a_public_address_that_is_this_machines_own_is_refused_but_by_name(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def ours(address: Address) -> bool:
        return str(address) == "1.1.1.1"

    monkeypatch.setattr("engine.network.addresses.is_ours", ours)
    with pytest.raises(CallFailed) as failure:
        await Destinations((), Names([address])).of(httpx.URL("http://own.test/"))
    assert failure.value.error_type is ErrorType.SECURITY_ERROR
    for allow in ("own.test", "1.1.1.1"):
        assert await Destinations((allow,), Names([address])).of(httpx.URL("http://own.test/")) == [ip_address(address)]


@pytest.mark.parametrize("allow", ["inner.test", "INNER.test.", "10.0.0.7", "10.0.0.0/8", " 10.0.0.0/8 "])
async def test_the_setting_lets_a_named_target_through(allow: str) -> None:
    assert await Destinations((allow,), Names(["10.0.0.7"])).of(httpx.URL("http://inner.test/")) == [ip_address("10.0.0.7")]


async def test_an_allowed_network_is_allowed_as_mapped_into_ipv6_too() -> None:
    mapped = ip_address("::ffff:10.0.0.7")
    assert await Destinations(("10.0.0.0/8",), Names([str(mapped)])).of(httpx.URL("http://inner.test/")) == [mapped]


async def test_the_connection_goes_to_the_address_that_was_judged_whatever_the_name_says_next(site: Site) -> None:
    site.answer("/", b"judged")
    names = Names(["127.0.0.1"], ["127.0.0.2"])
    tool = HttpRequest(Destinations(("127.0.0.1",), names), max_bytes=1000)
    result = await tool.run(Arguments(url=site.url("/", host="rebind.test")))
    assert (result.body, result.url, names.asked) == ("judged", site.url("/", host="rebind.test"), ["rebind.test"])
    assert f"Host: rebind.test:{site.port}".encode() in site.seen[0]


async def test_the_next_address_is_tried_when_the_first_refuses(site: Site) -> None:
    site.answer("/", b"second")
    tool = HttpRequest(Destinations(("127.0.0.0/8",), Names(["127.0.0.9", "127.0.0.1"])), max_bytes=1000)
    assert (await tool.run(Arguments(url=site.url("/", host="two.test")))).body == "second"
