"""The page that a browser shows after a login at an MCP server."""

from html import escape
from http import HTTPStatus

from starlette.responses import HTMLResponse

from toolagent_service.contracts.mcp_logins import LoginEnd

_PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{title}</title>
<h1>{title}</h1>
<p>{text}</p>
</html>
"""
_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}


def login_page(end: LoginEnd) -> HTMLResponse:
    """The text of the end is escaped."""
    title, status = ("Logged in", HTTPStatus.OK) if end.is_done else ("Not logged in", HTTPStatus.BAD_REQUEST)
    return HTMLResponse(_PAGE.format(title=title, text=escape(end.said)), status, _HEADERS)
