"""The account at RunComfy: the address of the server API, and the secrets."""

from collections.abc import Callable
from dataclasses import dataclass, field

import httpx

from engine.runtimes.failures import CallFailed
from engine.runtimes.given_secrets import remember_given
from toolagent.contracts.calls import ErrorType

URL_SETTING = "TOOL_AGENT_RUNCOMFY_URL"
USER_SECRET, KEY_SECRET = "RUNCOMFY_USER_ID", "RUNCOMFY_API_KEY"
_PREFIX = "TOOL_AGENT_SECRET_"

Secrets = Callable[[str], str | None]
"""The value of a secret by its name, or None."""


@dataclass(frozen=True, slots=True)
class Account:
    url: httpx.URL
    """The API's address, without `/users/…`."""
    user_id: str = field(repr=False)
    key: str = field(repr=False)

    @property
    def base(self) -> str:
        return f"{str(self.url).rstrip('/')}/users/{self.user_id}"


def address(url: str) -> httpx.URL:
    """Raises ValueError if this cannot be the address of an API."""
    try:
        read = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ValueError(f"{URL_SETTING}: {error}") from error
    if read.scheme not in {"http", "https"} or not read.host or read.userinfo or read.query:
        raise ValueError(f"{URL_SETTING} is an address without user and query, such as https://api.runcomfy.net/prod/api.")
    return read


def account_of(url: httpx.URL | None, secrets: Secrets) -> Account:
    """Reads the secrets anew for each call. Raises CallFailed (`unavailable`), which names the missing setting."""
    if url is None:
        raise CallFailed(ErrorType.UNAVAILABLE, f"RunComfy is not set up here: set {URL_SETTING}.", {"setting": URL_SETTING, "sent": False})
    found = {name: (secrets(name) or "").strip() for name in (USER_SECRET, KEY_SECRET)}
    for name, value in found.items():
        if not value or not value.isascii() or not value.isprintable() or "/" in value:
            setting = f"{_PREFIX}{name}"
            wrong = "cannot be sent" if value else "is not set"
            message = f"The secret {name} {wrong}: set {setting}."
            raise CallFailed(ErrorType.UNAVAILABLE, message, {"secret": name, "setting": setting, "sent": False})
    remember_given(found[KEY_SECRET])
    return Account(url, found[USER_SECRET], found[KEY_SECRET])
