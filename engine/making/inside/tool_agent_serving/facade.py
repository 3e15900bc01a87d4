"""Wraps an app: answers pages and redirects as JSON, and serves a document and a health path if the app has none."""

import json

DOCUMENT = "/.tool-agent/openapi.json"
HEALTH = "/-/health"
HEALTHY = {HEALTH: {"get": {"responses": {"200": {"description": "It serves."}}}}}
_MOST = 16 * 1024 * 1024
"""Most bytes of a page, which is held until its end."""
_STREAM = "text/event-stream"
_SUCCESS, _NOTHING, _REDIRECT = 2, 204, 3


class Facade:
    def __init__(self, app, document):
        self._app = app
        self._document = document and json.dumps(document, default=str).encode()

    async def __call__(self, scope, receive, send):
        own = {DOCUMENT: self._document, HEALTH: b'{"status": "ok"}'} if self._document is not None else {}
        if scope["type"] != "http":
            await self._app(scope, receive, send)
        elif scope["path"] in own:
            await answer(send, own[scope["path"]])
        else:
            await self._app(scope, receive, _Sender(send).send)


def whole(title, paths):
    return {"openapi": "3.1.0", "info": {"title": title, "version": "0"}, "paths": paths}


async def answer(send, body, status=200):
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


class _Sender:
    """Sends one answer: a page as its text, a redirect as its target; JSON and failures unchanged."""

    def __init__(self, send):
        self._send, self._held, self._body = send, None, bytearray()

    async def send(self, message):
        if message["type"] == "http.response.start":
            if _is_text(message) or _is_redirect(message):
                self._held = message
                return
        elif message["type"] == "http.response.body" and self._held is not None:
            # A larger body is read to its end too, so that the app goes on as usual.
            self._body += message.get("body", b"")[: _MOST + 1 - len(self._body)]
            if not message.get("more_body"):
                await self._answer()
            return
        await self._send(message)

    async def _answer(self):
        status, headers = 200, _headers(self._held)
        if _is_redirect(self._held):
            text = json.dumps({"status": self._held["status"], "location": headers["location"]})
        elif len(self._body) > _MOST:
            status, text = 502, json.dumps({"error": "the page is larger than {} bytes".format(_MOST)})
        else:
            text = _decoded(self._body, headers["content-type"])
            text = text if _is_json(text) else json.dumps(text)
        await answer(self._send, text.encode(), status)


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
    """Whether the text is a JSON object or list. Other texts may be JSON by chance: `12`, `true`."""
    if not text.lstrip().startswith(("{", "[")):
        return False
    try:
        # `int` refuses NaN and the like, which are no JSON.
        json.loads(text, parse_constant=int)
    except (ValueError, RecursionError):
        return False
    return True


def _headers(message):
    return {bytes(name).decode("latin-1").lower(): bytes(value).decode("latin-1") for name, value in message.get("headers", ())}
