"""The credentials that a server of ours gets with each call."""

import pytest

from engine.runtimes.failures import NotSent
from engine.runtimes.http.exchange import Target
from engine.runtimes.http.own_servers import own_target
from toolagent.contracts.sources import LocalSource, Login

SECRETS = {"SHOP": "s3cret k/y", "USER": "ann:päss"}


def target(login: Login | None, value: str = "secret:SHOP", path: str = "/x") -> Target:
    source = LocalSource(host_dir="x", endpoint_path=path, environment={"API_KEY": value}, login=login)
    return own_target("unix:/x", source, {"X-Output-Dir": "out"}, SECRETS.get)


def test_without_a_login_it_is_shown_nothing() -> None:
    assert target(None).headers == {"X-Output-Dir": "out"}
    assert target(None).secrets == ()


@pytest.mark.parametrize(
    ("login", "value", "header"),
    [
        (Login(variable="API_KEY", name="X-Key"), "secret:SHOP", ("X-Key", "s3cret k/y")),
        (Login(variable="API_KEY", scheme="Bearer"), "plain", ("Authorization", "Bearer plain")),
        (Login(variable="API_KEY", scheme="Basic"), "secret:USER", ("Authorization", "Basic YW5uOnDDpHNz")),
        (Login(variable="API_KEY", place="cookie", name="key"), "secret:SHOP", ("Cookie", "key=s3cret%20k%2Fy")),
    ],
)
def test_a_login_goes_where_it_says(login: Login, value: str, header: tuple[str, str]) -> None:
    made = target(login, value)
    assert dict(made.headers) == {"X-Output-Dir": "out", header[0]: header[1]}
    assert made.path == "/x"


def test_in_the_query_it_stands_beside_what_is_there() -> None:
    login = Login(variable="API_KEY", place="query", name="key")
    assert target(login).path == "/x?key=s3cret%20k%2Fy"
    assert target(login, path="/x?a=1").path == "/x?a=1&key=s3cret%20k%2Fy"


def test_what_it_is_shown_is_masked_in_all_that_comes_back_in_every_form() -> None:
    assert set(target(Login(variable="API_KEY", name="X-Key")).secrets) == {"s3cret k/y", "s3cret%20k%2Fy"}
    assert "YW5uOnDDpHNz" in target(Login(variable="API_KEY", scheme="Basic"), "secret:USER").secrets


@pytest.mark.parametrize(
    ("login", "value", "said"),
    [
        (Login(variable="OTHER"), "x", "'OTHER', which is not set"),
        (Login(variable="API_KEY"), "secret:NONE", "TOOL_AGENT_SECRET_NONE"),
        (Login(variable="API_KEY", scheme="Basic"), "no colon", "user:password"),
        (Login(variable="API_KEY"), "two\nlines", "outside ASCII"),
    ],
)
def test_what_cannot_be_shown_is_not_sent(login: Login, value: str, said: str) -> None:
    with pytest.raises(NotSent, match=said):
        target(login, value)
