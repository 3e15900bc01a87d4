"""Stands before an app: gives pages and redirects as JSON, and says what the routes of one are that does not describe itself."""

import json

DOCUMENT = "/.tool-agent/openapi.json"
HEALTH = "/-/health"
_MOST = 16 * 1024 * 1024
"""Of a text, in bytes: it is held until its end."""
_STREAM = "text/event-stream"
_SUCCESS, _NOTHING, _REDIRECT = 2, 204, 3


class Facade:
    def __init__(self, app, document):
        self._app = app
        self._document = document and json.dumps(document, default=str).encode()

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif self._document is not None and scope["path"] == DOCUMENT:
            await answer(send, self._document)
        elif self._document is not None and scope["path"] == HEALTH:
            await answer(send, b'{"status": "ok"}')
        else:
            await self._app(scope, receive, _Sender(send).send)


async def answer(send, body, status=200):
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class _Sender:
    """Of one answer: a page is given as its text, a redirect as where it leads; JSON of any type and failures go through as they are."""

    def __init__(self, send):
        self._send, self._held, self._body = send, None, bytearray()

    async def send(self, message):
        if message["type"] == "http.response.start":
            if _is_text(message) or _is_redirect(message):
                self._held = message
                return
        elif message["type"] == "http.response.body" and self._held is not None:
            # What is larger is read to its end all the same: so the app goes on as it would.
            self._body += message.get("body", b"")[: _MOST + 1 - len(self._body)]
            if not message.get("more_body"):
                await self._answer()
            return
        await self._send(message)

    async def _answer(self):
        if _is_redirect(self._held):
            told = {"status": self._held["status"], "location": _headers(self._held)["location"]}
            await answer(self._send, json.dumps(told).encode())
        elif len(self._body) > _MOST:
            told = {"error": "the page is larger than {} bytes".format(_MOST)}
            await answer(self._send, json.dumps(told).encode(), 502)
        else:
            text = _decoded(self._body, _headers(self._held)["content-type"])
            await answer(self._send, (text if _is_json(text) else json.dumps(text)).encode())


def _is_redirect(message):
    return message["status"] // 100 == _REDIRECT and "location" in _headers(message)


def _is_text(message):
    headers = _headers(message)
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    is_page = (kind.startswith("text/") and kind != _STREAM) or kind == "application/xml" or kind.endswith("+xml")
    is_full = message["status"] // 100 == _SUCCESS and message["status"] != _NOTHING
    return is_full and is_page and "content-encoding" not in headers


def _decoded(body, kind):
    charset = kind.lower().partition("charset=")[2].partition(";")[0].strip(" \"'") or "utf-8"
    try:
        return body.decode(charset, "replace")
    except (LookupError, ValueError):
        return body.decode("utf-8", "replace")


def _is_json(text):
    """An object or a list. Other texts may happen to be JSON: `12`, `true`."""
    if not text.lstrip().startswith(("{", "[")):
        return False
    try:
        # NaN and the like are no JSON: `int` refuses them.
        json.loads(text, parse_constant=int)
    except (ValueError, RecursionError):
        return False
    return True


def _headers(message):
    return {bytes(name).decode("latin-1").lower(): bytes(value).decode("latin-1") for name, value in message.get("headers", ())}
