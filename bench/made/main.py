"""Counts the words of a text: what the scripted model of the measurements writes.

`python main.py --port N`.
"""

import argparse
import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import cast

_WRONG = {"error": {"type": "validation_error", "message": "An object with a text is wanted, and nothing else."}}


class Counter(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1

    def do_GET(self) -> None:
        self._answer(200, {"status": "ok"})

    def do_POST(self) -> None:
        text = _text(self.rfile.read(int(self.headers.get("Content-Length", "0"))))
        if text is None:
            self._answer(422, _WRONG)
        else:
            self._answer(200, {"words": len(text.split())})

    def log_message(self, format: str, *args: object) -> None:
        """A log for each request is not wanted."""

    def _answer(self, status: int, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _text(body: bytes) -> str | None:
    try:
        given: object = json.loads(body)
    except ValueError:
        return None
    match given:
        case {"text": str(text)} if len(cast("dict[str, object]", given)) == 1:
            return text
        case _:
            return None


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    ThreadingHTTPServer(("127.0.0.1", parser.parse_args().port), Counter).serve_forever()
