"""The certificates that connections to other servers trust."""

import ssl
from functools import cache

import httpx


@cache
def machine_tls() -> ssl.SSLContext:
    """Those of this machine. One for all connections of the process: each reading takes a twentieth of a second."""
    return ssl.create_default_context()


@cache
def usual_tls() -> ssl.SSLContext:
    """Those of the usual bundle, and of this machine."""
    context = httpx.create_ssl_context(trust_env=False)
    context.load_default_certs()
    return context
