"""Serves an app on a port of 127.0.0.1, by uvicorn."""

import importlib
import inspect

from .databases import fill
from .described import described
from .facade import Facade


def serve(interface, module, attribute, is_factory, port):
    """Returns when the server has ended."""
    if interface == "gradio":
        # The script keeps the main thread, because it blocks at its launch, and sets signal handlers.
        from .gradio_app import run

        run(module, port)
        return

    def make():
        app = getattr(importlib.import_module(module), attribute)
        app = app() if is_factory else app
        fill(app)
        return Facade(app if interface == "asgi" or _is_asgi(app) else _as_asgi(app), described(app))

    # By name: a package of the sandbox, which the service itself does not have.
    importlib.import_module("uvicorn").run(make, factory=True, host="127.0.0.1", port=port, access_log=False)


def _is_asgi(app):
    return inspect.iscoroutinefunction(app) or inspect.iscoroutinefunction(getattr(app, "__call__", None))  # noqa: B004 - of its type


def _as_asgi(app):
    from a2wsgi import WSGIMiddleware

    return WSGIMiddleware(app)
