"""Serves one tool on 127.0.0.1: `GET /health`, and `POST /` with the params as a JSON object."""

import importlib
import logging
import os
import re
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import waitress

HOST = "127.0.0.1"
THREADS = 32  # more than the calls that Tool Agent sends at once, so that /health always finds a free one
MAX_BODY = 8 * 1024 * 1024
FIELD = re.compile(r"`\$\.?(?P<path>.+?)`$|field `(?P<missing>.+?)`")

Answer = tuple[str, dict[str, Any]]


class InvalidInput(ValueError):
    """Bad input that only the tool itself can see; `field` names the param."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field


class App:
    """A WSGI application around `run(params, output folder)` of a tool module, whose `Params` is a msgspec Struct."""

    def __init__(self, module: str) -> None:
        self.module = module
        self.active = 0
        self.lock = threading.Lock()

    def load(self) -> None:
        """Imports the tool while the port already answers; a tool that cannot be imported must not look healthy."""
        try:
            importlib.import_module(self.module)
        except Exception:
            logging.exception("the tool cannot be loaded")
            os._exit(1)

    def count(self, change: int) -> None:
        with self.lock:
            self.active += change

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        status, body = self.answer(environ)
        content = msgspec.json.encode(body)
        start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(content)))])
        return [content]

    def answer(self, environ: dict[str, Any]) -> Answer:
        match environ["REQUEST_METHOD"], environ["PATH_INFO"]:
            case "GET", "/health":
                return "200 OK", {"status": "ok", "active": self.active}
            case "POST", "/":
                self.count(1)
                try:
                    return self.call(environ)
                finally:
                    self.count(-1)
            case _:
                return failure("404 Not Found", "not_found", "this tool answers GET /health and POST /")

    def call(self, environ: dict[str, Any]) -> Answer:
        header = environ.get("HTTP_X_OUTPUT_DIR", "output").encode("latin-1").decode(errors="surrogateescape")
        try:
            tool = importlib.import_module(self.module)
            params = msgspec.json.decode(environ["wsgi.input"].read(), type=tool.Params)
            folder = Path(header).absolute()
            folder.mkdir(parents=True, exist_ok=True)
            return "200 OK", tool.run(params, folder)
        except InvalidInput as error:
            return failure("422 Unprocessable Entity", "validation_error", str(error), {"field": error.field})
        except msgspec.MsgspecError as error:
            found = FIELD.search(str(error))
            return failure("422 Unprocessable Entity", "validation_error", str(error), {"field": found and found[found.lastgroup or 0]})
        except Exception as error:
            logging.exception("call %s failed", environ.get("HTTP_IDEMPOTENCY_KEY", "without a key"))
            return failure("500 Internal Server Error", "execution_error", f"{type(error).__name__}: {error}")


def failure(status: str, kind: str, message: str, details: Any = None) -> Answer:
    return status, {"error": {"type": kind, "message": message, "details": details}}


def serve(module: str, port: int) -> None:
    """Serves until SIGTERM, which ends it at once, work under way included."""
    logging.basicConfig(level=logging.INFO)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    app = App(module)
    server = waitress.create_server(app, host=HOST, port=port, threads=THREADS, max_request_body_size=MAX_BODY)
    threading.Thread(target=app.load, daemon=True).start()
    server.run()
