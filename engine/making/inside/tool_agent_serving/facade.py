"""Stands before an app: gives pages and redirects as JSON, and says what the routes of one are that does not describe itself."""

import json

DOCUMENT = "/.tool-agent/openapi.json"
HEALTH = "/-/health"
_TEXT = ("text/", "application/xml", "image/svg+xml")
_STREAM = "text/event-stream"
_SUCCESS, _REDIRECT = 2, 3


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
    """Of one answer: a page is given as its text, a redirect as where it leads; JSON and failures go through as they are."""

    def __init__(self, send):
        self._send, self._held, self._body = send, None, []

    async def send(self, message):
        if message["type"] == "http.response.start":
            if _is_text(message) or message["status"] // 100 == _REDIRECT:
                self._held = message
                return
        elif message["type"] == "http.response.body" and self._held is not None:
            self._body.append(message.get("body", b""))
            if not message.get("more_body"):
                await answer(self._send, json.dumps(self._meaning()).encode())
            return
        await self._send(message)

    def _meaning(self):
        headers = _headers(self._held)
        if self._held["status"] // 100 == _REDIRECT:
            return {"status": self._held["status"], "location": headers.get("location", "")}
        charset = headers["content-type"].partition("charset=")[2].strip(" \"'") or "utf-8"
        try:
            return b"".join(self._body).decode(charset, "replace")
        except LookupError:
            return b"".join(self._body).decode("utf-8", "replace")


def _is_text(message):
    headers = _headers(message)
    kind = headers.get("content-type", "").lower()
    is_page = kind.startswith(_TEXT) and not kind.startswith(_STREAM)
    return message["status"] // 100 == _SUCCESS and is_page and "content-encoding" not in headers


def _headers(message):
    return {bytes(name).decode("latin-1").lower(): bytes(value).decode("latin-1") for name, value in message.get("headers", ())}
