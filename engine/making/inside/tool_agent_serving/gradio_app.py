"""Runs a module that launches a Gradio app, and serves each named endpoint as a POST operation, by Gradio's own client.

The app listens on another port in the sandbox.
"""

import asyncio
import functools
import importlib
import inspect
import os
import runpy
import socket
import sys
import threading

from .gradio_calls import GradioCalls

_HOST = "127.0.0.1"
_SET = {"GRADIO_ANALYTICS_ENABLED": "False", "GRADIO_SSR_MODE": "False", "NO_PROXY": _HOST, "no_proxy": _HOST}
_NOT_THE_AUTHORS = ("auth", "auth_dependency", "root_path", "ssl_certfile", "ssl_keyfile", "ssl_keyfile_password", "share_server_address")
"""Options of a launch that are dropped, because only the launcher reaches the app."""


def run(module, port):
    """Returns when the server has ended."""
    os.environ.update(_SET)
    import gradio

    launch, served = gradio.Blocks.launch, []

    @functools.wraps(launch)
    def launch_here(demo, *args, **given):
        values = dict(inspect.signature(launch).bind(demo, *args, **given).arguments)
        extra = values.pop("kwargs", {}) if isinstance(values.get("kwargs"), dict) else {}
        goes_on = bool(values.get("prevent_thread_lock"))
        own = {name: value for name, value in {**values, **extra}.items() if name not in ("self", *_NOT_THE_AUTHORS)}
        inner = _free_port()
        own.update(server_name=_HOST, server_port=inner, share=False, inbrowser=False, prevent_thread_lock=True, quiet=True)
        came = launch(demo, **own)
        if not served:
            served.append(_serving(GradioCalls("http://{}:{}/".format(_HOST, inner)), port))
        if not goes_on:
            served[0].join()
        return came

    gradio.Blocks.launch = launch_here
    sys.argv = [module]
    left = runpy.run_module(module, run_name="__main__", alter_sys=True)
    if not served:
        made = [value for value in left.values() if isinstance(value, gradio.Blocks)]
        if not made:
            raise SystemExit("The module {} makes no Gradio app that could be launched.".format(module))
        made[-1].launch()
    served[0].join()


def _serving(calls, port):
    uvicorn = importlib.import_module("uvicorn")  # a package of the sandbox, which the service itself does not have
    server = uvicorn.Server(uvicorn.Config(calls, host=_HOST, port=port, access_log=False, lifespan="off"))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve()), daemon=True)
    thread.start()
    return thread


def _free_port():
    with socket.socket() as taken:
        taken.bind((_HOST, 0))
        return taken.getsockname()[1]
