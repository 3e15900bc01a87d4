"""The credentials for a local server are taken from a variable of the task."""

import pytest

from engine.making.openapi.credentials import Credential
from engine.making.openapi.documents.document import DocumentRefused
from engine.making.openapi.logins import login_of
from toolagent.contracts.sources import Login

KEY = Credential("header", "X-API-Key", scheme="APIKeyHeader")
BEARER = Credential(word="Bearer", scheme="HTTPBearer")
BASIC = Credential(kind="basic", scheme="HTTPBasic")


@pytest.mark.parametrize(
    ("credential", "variables", "login"),
    [
        (None, ["API_KEY"], None),
        (KEY, ["PORT", "API_KEY"], Login(variable="API_KEY", name="X-API-Key")),
        (KEY, ["api_key"], Login(variable="api_key", name="X-API-Key")),
        (KEY, ["API_TOKEN", "X_API_KEY"], Login(variable="X_API_KEY", name="X-API-Key")),
        (KEY, ["API_KEY_HEADER"], Login(variable="API_KEY_HEADER", name="X-API-Key")),
        (Credential("query", "appid", scheme="key"), ["APPID"], Login(variable="APPID", place="query", name="appid")),
        (Credential("cookie", "session", scheme="s"), ["SESSION"], Login(variable="SESSION", place="cookie", name="session")),
        (BEARER, ["ACCESS_TOKEN"], Login(variable="ACCESS_TOKEN", scheme="Bearer")),
        (BASIC, ["BASIC_AUTH"], Login(variable="BASIC_AUTH", scheme="Basic")),
    ],
)
def test_it_is_found_by_its_name(credential: Credential | None, variables: list[str], login: Login | None) -> None:
    assert login_of(credential, variables) == login


@pytest.mark.parametrize(
    ("credential", "said"),
    [
        (KEY, "`env` of the task as API_KEY"),
        (BEARER, "`env` of the task as BEARER_TOKEN"),
        (BASIC, "`user:password`"),
        (Credential(is_known=False), "no single key"),
    ],
)
def test_where_there_is_none_it_is_said_which_to_give(credential: Credential, said: str) -> None:
    # The key of another service is not shown, though it is a key.
    with pytest.raises(DocumentRefused, match=said):
        login_of(credential, ["OPENAI_API_KEY", "SECRET_KEY", "PORT"])


@pytest.mark.parametrize("name", ["Host", "Idempotency-Key", "two words", "x" * 200_000])
def test_a_name_that_cannot_hold_a_key_is_told_in_our_words(name: str) -> None:
    with pytest.raises(DocumentRefused, match="which cannot be sent") as refused:
        login_of(Credential("header", name, scheme="k"), ["API_KEY"])
    assert len(str(refused.value)) < 300


def test_a_field_of_the_query_may_be_called_anything() -> None:
    login = login_of(Credential("query", "auth[token]", scheme="k"), ["API_KEY"])
    assert login == Login(variable="API_KEY", place="query", name="auth[token]")
