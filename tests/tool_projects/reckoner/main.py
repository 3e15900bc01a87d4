"""A good tool: POST /run `{"numbers": […], "operation": "sum" | "mean"}` answers `{"result": …, "count": …}`."""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HOME = Path(os.environ["HOME"])  # noqa: TID251 - a tool has no settings of ours


class Invalid(Exception):
    """The input is invalid."""


def checked(body: bytes) -> dict:
    try:
        params = json.loads(body)
    except ValueError as error:
        raise Invalid("the body is no JSON") from error
    if not isinstance(params, dict) or set(params) != {"numbers", "operation"}:
        raise Invalid("numbers and operation are needed, and nothing else")
    numbers, operation = params["numbers"], params["operation"]
    if not isinstance(numbers, list) or any(isinstance(number, bool) or not isinstance(number, int | float) for number in numbers):
        raise Invalid("numbers is a list of numbers")
    if operation not in ("sum", "mean"):
        raise Invalid("operation is sum or mean")
    if operation == "mean" and not numbers:
        raise Invalid("there is no mean of nothing")
    return params


def reckon(numbers: list, operation: str) -> dict:
    total = sum(numbers)
    return {"result": total if operation == "sum" else total / len(numbers), "count": len(numbers)}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.answer(200 if self.path == "/health" else 404, {"status": "ok", "active": 0})

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            self.answer(200, reckon(**checked(body)))
        except Invalid as error:
            self.answer(422, {"error": {"type": "validation_error", "message": str(error), "details": None}})
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            self.answer(500, {"error": {"type": "execution_error", "message": repr(error), "details": None}})

    def answer(self, status: int, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """No log output."""


class Server(ThreadingHTTPServer):
    daemon_threads = True


if __name__ == "__main__":
    Server(("127.0.0.1", int(sys.argv[2])), Handler).serve_forever()
