"""Requests to servers that we have started: the target, and the login that the server wants."""

import base64
import re
from collections.abc import Mapping
from urllib.parse import quote

from engine.runtimes.failures import NotSent
from engine.runtimes.http.exchange import Target
from engine.runtimes.http.remote_keys import Secrets
from engine.runtimes.http.request_parts import Places
from engine.runtimes.variables import variables_of
from toolagent.contracts.calls import ErrorType
from toolagent.contracts.sources import DockerSource, LocalSource, Login

_HEADER_TEXT = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")


def own_target(endpoint: str, source: LocalSource | DockerSource, headers: Mapping[str, str], secrets: Secrets) -> Target:
    """Raises NotSent if the login's variable is missing or cannot be sent."""
    login, places, gives_text = source.login, Places.of(source), source.gives_text
    if login is None:
        return Target(endpoint, source.http_method, source.endpoint_path, headers, places=places, gives_text=gives_text)
    value = _value(source, login, secrets)
    encoded = base64.b64encode(value.encode()).decode() if login.scheme == "Basic" else value
    masked = tuple(dict.fromkeys((value, encoded, quote(value, safe=""))))
    path, shown = source.endpoint_path, dict(headers)
    match login.place:
        case "header":
            shown[login.name] = f"{login.scheme} {encoded}".strip()
        case "cookie":
            shown["Cookie"] = f"{login.name}={quote(value, safe='')}"
        case "query":
            path = f"{path}{'&' if '?' in path else '?'}{quote(login.name, safe='')}={quote(value, safe='')}"
    return Target(endpoint, source.http_method, path, shown, masked, places=places, gives_text=gives_text)


def _value(source: LocalSource | DockerSource, login: Login, secrets: Secrets) -> str:
    given = variables_of(source, source.host_dir or "the tool", secrets)
    value = {**given.plain, **given.secret}.get(login.variable, "").strip()
    if login.scheme == "Basic" and ":" not in value:
        raise _not_sent(login, "has to be `user:password`")
    if not value:
        raise _not_sent(login, "is not set")
    if login.place == "header" and login.scheme != "Basic" and not _HEADER_TEXT.fullmatch(value):
        raise _not_sent(login, "cannot be sent in a header: it holds characters outside ASCII")
    return value


def _not_sent(login: Login, said: str) -> NotSent:
    message = f"The tool is shown its variable {login.variable!r}, which {said}. Set it in the `environment` of its source."
    return NotSent(ErrorType.DEPENDENCY_ERROR, message, {"variable": login.variable})
