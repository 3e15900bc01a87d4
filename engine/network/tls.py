"""Trusted certificates for connections to other servers."""

import ssl
from functools import cache

import httpx


@cache
def machine_tls() -> ssl.SSLContext:
    """This machine's certificates. Shared by all connections of the process: reading them takes 50 ms."""
    return ssl.create_default_context()


@cache
def usual_tls() -> ssl.SSLContext:
    """The certificates of httpx's bundle and of this machine."""
    context = httpx.create_ssl_context(trust_env=False)
    context.load_default_certs()
    return context
